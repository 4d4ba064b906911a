"""Facts of a run: one definition of each number, for page, report and comparison."""
