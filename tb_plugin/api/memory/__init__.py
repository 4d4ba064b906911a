"""Answers of the pages under Memory."""
