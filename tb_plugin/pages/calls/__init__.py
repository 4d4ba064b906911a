"""Functions: memory around each collected call."""
