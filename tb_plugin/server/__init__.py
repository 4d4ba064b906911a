"""What answers requests: who may ask, routes and parameters, files, and dropped files."""
