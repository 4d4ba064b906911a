"""Histories of a run: which there are, one at a glance, two beside each other."""
