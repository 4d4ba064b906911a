"""The times of a trace: exact, paired, and at the ends of flows."""
