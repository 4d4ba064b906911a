"""Our own recordings: one file a rank, opened from its end and followed."""
