"""Kinds of routes: of a recorded run, of an open history, of open traces."""
