"""This process among others: its identity, its children, its end, and its own files."""
