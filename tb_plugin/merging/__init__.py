"""Traces, spans and counters of all ranks to one Chrome trace on one clock, streamed.

- `finding` says what there is to merge: recordings, torch's traces, Composer's.
- `clocks`, and `analysis.rank_clocks` for recordings, say how far each rank's clock is
  from the reference's, and at most how wrong that is.
- `recorded` and `rewriting` make events of the output of a recording and of a trace.
- `merged` puts it all together, rank by rank, and `output` writes it.

Nothing is held longer than the rank at hand: memory grows neither with the number of
ranks nor with the size of files.
"""
