"""Frames and slices of the recorder among a program's own."""
