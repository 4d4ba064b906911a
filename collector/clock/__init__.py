"""Clocks: the one that stamps what is recorded, and how far it is from rank 0's.

- `process_clock` stamps records: wall time at its start, carried on by the monotonic clock,
  so that it never goes back whatever happens to the wall clock.
- `system` says which host a process is on, and how far off its wall clock may be;
  `distributed` makes round trips with rank 0.
- `comparing` ties them to a recording: notes of kind `clock` and `clock_jump`.
"""
