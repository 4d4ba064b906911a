"""One file per route: index, readers and analysis in, a dataclass of `api` out."""
