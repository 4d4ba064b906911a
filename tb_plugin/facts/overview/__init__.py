"""A run, or one of its ranks, at a glance: for the page, the report and files."""
