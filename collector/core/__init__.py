"""Foundations of every part of the recorder: the guard at the border, and contracts."""
