"""Captures in a rank's file: which there are, and what each kind holds."""
