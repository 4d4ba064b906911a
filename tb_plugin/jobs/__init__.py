"""Histories and traces are opened in the background and cached, with all derived from them."""
