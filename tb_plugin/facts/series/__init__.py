"""The ranks and axis of a request, and the ranks' rows on it."""
