"""The digest of a trace, made beside training: operators and memory by category."""
