"""Reads a stopped profiler."""
