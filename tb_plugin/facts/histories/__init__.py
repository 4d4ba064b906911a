"""Allocator histories of a run: found, opened, described."""
