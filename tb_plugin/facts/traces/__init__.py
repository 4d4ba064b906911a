"""Traces of a run: found, opened, on one clock, and profiled."""
