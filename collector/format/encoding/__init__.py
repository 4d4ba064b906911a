"""Bytes of the disk contract: frames, heads as JSON, columns of numbers."""
