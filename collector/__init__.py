"""MemBoard's collector: records memory, host and timing data inside PyTorch training."""
