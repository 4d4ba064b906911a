"""Requests are answered: access, routes and parameters, files, and dropped files."""
