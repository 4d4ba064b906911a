"""Finds the runs of a logdir: a walk through its folders."""
