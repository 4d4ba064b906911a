"""The Overview: the run, or one rank of it, at a glance."""
