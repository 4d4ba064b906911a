"""MemProfiler's statistics, from YAML and from pickles."""
