"""MemProfiler's module reports."""
