"""Profiles: where the time of profiled steps went, and what slows it."""
