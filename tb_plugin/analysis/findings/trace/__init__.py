"""Findings over one profiled trace: rules, and what they advise."""
