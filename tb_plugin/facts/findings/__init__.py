"""Findings of a run, made from facts."""
