"""What the timeline draws of a trace: tiles, instants, counters, sums over a range."""
