"""Answers of the pages under Time, and of traces."""
