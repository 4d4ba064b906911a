"""Simulated snapshots of the allocator, as torch would dump them."""
