"""What is read out of a stopped profiler."""
