"""Out-of-memory errors: their state, their holders and the verdict."""
