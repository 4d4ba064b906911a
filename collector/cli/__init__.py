"""The verbs that record: `memboard demo` and `memboard import-config`."""
