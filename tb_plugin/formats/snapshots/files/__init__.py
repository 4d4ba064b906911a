"""Files of allocator snapshots: which there are, of which rank and step; none is read."""
