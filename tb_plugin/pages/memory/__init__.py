"""Allocations and segments of one history, at a moment or over time."""
