"""MemBoard's TensorBoard plugin: reads what the collector wrote and serves the page."""

PLUGIN_NAME = "memboard"
"""In URLs, and what the entry point is called."""
