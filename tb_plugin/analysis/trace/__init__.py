"""A timeline of slices, whatever it was read from."""
