"""Drawing of a trace's timeline: tiles, instants, counters, sums over a range."""
