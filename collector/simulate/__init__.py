"""Simulated runs: thousands of ranks without a GPU, with faults whose truth is known.

- `device`: a device's memory, and the log of what is done to it;
- `program`: a sharded transformer training, allocation by allocation;
- `memory`: the memory columns of any rank and step, looked up from a few steps of it;
- `faults`: what is wrong with which rank, in words and in numbers;
- `series`: the step table of one rank; `host`: its timed tables;
- `replay`: some steps run once more, for `captures` (modules, spans) and `histories`
  (the allocator, the report of an error);
- `run`: a whole logdir, by several processes, through the recorder's own writer.

It is one small program and no recorded template: the table, the captures, the history and
the error of any rank and step follow from the same allocations, so they agree for any
number of ranks and steps. The demo needs 64 ranks and 200 steps of it, the benchmarks 4,096
and 10,000.

Everything is seeded: the same `SimulatedRun` gives the same bytes, however many
processes write it. Every file says that it is simulated and which faults were planted.
"""

from __future__ import annotations

from memboard.collector.simulate.run import WrittenRun, available_processes, write_run
from memboard.collector.simulate.series import Metrics, SimulatedRun

__all__ = ["Metrics", "SimulatedRun", "WrittenRun", "available_processes", "write_run"]
