"""A snapshot of the allocator in columns, and its marks and steps."""
