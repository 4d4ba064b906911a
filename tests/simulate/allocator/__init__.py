"""A model of torch's caching allocator, compared with torch's own in tests."""
