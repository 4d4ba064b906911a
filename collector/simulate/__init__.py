"""Simulated runs: thousands of ranks without a GPU, with faults whose truth is known.

Cast, in the order a simulated run comes to be:

- `allocator`: a caching allocator that follows torch's definitions;
- `stats`: its counters, current and peak, in total and by pool;
- `transformer`: a sharded transformer training that drives the allocator;
- `curves`: what that training leaves per step, modelled for a few ranks;
- `faults`: what is wrong with which rank, in words and in numbers;
- `ranks`: the curves of all other ranks, derived by vectorised perturbation;
- `host`: the timed tables (process, CPU, memory, GPU sensors ...);
- `modules`: one step's memory by module, as an event log;
- `module_captures`: which ranks and steps have one;
- `notes`: what a rank says about its sources, epochs and faults;
- `rank_file`: the bytes of one rank's file, digests and all;
- `run`: a whole logdir, by several processes.

Everything is seeded: the same `SimulatedRun` gives the same bytes, however many
processes write it. Every file says that it is simulated and which faults were planted.
Nothing here is shared with the plugin's analysis, so it can judge that analysis.
"""

from __future__ import annotations

from collector.simulate.run import Metrics, SimulatedRun, WrittenRun, write_run

__all__ = ["Metrics", "SimulatedRun", "WrittenRun", "write_run"]
