"""Findings: what is wrong, what shows it, what it costs, and what to try."""
