"""The verdict: why memory ran out, on which rank first, and what to try."""
