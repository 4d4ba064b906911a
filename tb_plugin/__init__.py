"""MemBoard's TensorBoard plugin: reads what the collector wrote and serves the page."""
