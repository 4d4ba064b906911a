"""Distributed: ranks of one profiled cycle beside each other."""
