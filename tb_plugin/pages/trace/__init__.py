"""The trace: slices, counters and instants of all ranks on one clock."""
