"""Spans, instants and counters of a recording as a trace."""
