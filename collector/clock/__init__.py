"""Clocks: the one that stamps what is recorded, and how far it is from rank 0's.

- `process_clock` stamps records: wall time at its start, carried on by the monotonic clock,
  so that it never goes back whatever happens to the wall clock.
- `distributed` makes round trips with rank 0.
- `comparing` ties them to a recording, with the host's own bound: notes of kind `clock`
  and `clock_jump`.
"""
