"""Spans, instants and counters: named stretches and moments of the training loop."""
