"""Simulated memory of modules."""
