"""Pure functions over columns: numpy in, numpy out; no files, no HTTP."""
