"""Files that MemProfiler leaves in a log directory, read without running any of them."""
