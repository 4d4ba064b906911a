"""Clocks: the one that stamps what is recorded, and how far it is from rank 0's.

- `process_clock` stamps records: wall time at its start, carried on by the monotonic clock,
  so that it never goes back whatever happens to the wall clock.
- `exchange` makes an offset with an error bound of four times of a round trip.
- `files` and `distributed` are two ways to make round trips; `system` says how far the
  system takes its own wall clock to be off.
- `comparing` ties them to a recording: notes of kind `clock` and `clock_jump`.
"""
