"""Two runs, ranks, moments or traces against each other: both sides, and what differs."""
