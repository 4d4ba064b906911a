"""Modules: memory by module at one state."""
