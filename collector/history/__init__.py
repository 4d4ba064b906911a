"""Snapshots of the allocator's segments, blocks and what happened to them."""
