"""The timeline of a run: its sources, the ranks shown first, one step, counters."""
