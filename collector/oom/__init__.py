"""Out-of-memory errors and other ends: a report at once, then a snapshot.

What the report and the snapshot look like on disk is said in `memboard.collector.format.oom`.
"""
