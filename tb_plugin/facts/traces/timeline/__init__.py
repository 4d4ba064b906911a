"""What the timeline of a run shows: its sources, the ranks first, one step, counters."""
