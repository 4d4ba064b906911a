"""Simulated allocator histories of a rank."""
