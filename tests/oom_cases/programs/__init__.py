"""Programs that run out of memory, each with the answer of an expert."""
