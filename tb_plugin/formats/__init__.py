"""One file per input format, and what reading them shares."""
