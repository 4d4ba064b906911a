"""The HTTP contract: one module of responses for each page."""
