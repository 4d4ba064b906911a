"""Logdirs, runs and their files, found cheaply."""
