"""Simulated runs: thousands of ranks without a GPU, with faults whose truth is known.

Cast, in the order a simulated run comes to be:

- `allocator`: a caching allocator that follows torch's, with `allocator_settings` (sizes
  and settings), `allocator_blocks`, `allocator_device`, `allocator_expandable` and
  `allocator_release`;
- `stats`: its counters, current and peak, in total and by pool;
- `transformer`: a sharded transformer training that drives the allocator;
- `curves`: what that training leaves per step, modelled for a few ranks;
- `faults`: what is wrong with which rank, in words and in numbers;
- `ranks`: the curves of all other ranks, derived by vectorised perturbation;
- `step_parts`: what the time of each step goes to;
- `span_captures`: which ranks and steps have spans, one by one;
- `host`: the timed tables (process, CPU, memory, GPU sensors ...);
- `modules`: one step's memory by module, as an event log;
- `module_captures`: which ranks and steps have one;
- `history_captures`: allocators of a few ranks, and the report of an error;
- `notes`: what a rank says about its sources, epochs and faults;
- `rank_file`: the bytes of one rank's file, digests and all;
- `run`: a whole logdir, by several processes.

And of simulated allocator snapshots:

- `history` and `history_sites`: what an allocator did, when and from which line;
- `snapshot_form`, `snapshot_events`, `snapshot_pickle`: that history in torch's own
  structure, in memory or written as it is made;
- `snapshot_stacks`, `snapshot_training`: a transformer training with realistic stacks;
- `snapshot_rank`: one rank of it, and what can be done to it;
- `snapshot_stories`, `snapshot_label`, `snapshot_oom`: out-of-memory errors of seven
  known causes.

Everything is seeded: the same `SimulatedRun` gives the same bytes, however many
processes write it. Every file says that it is simulated and which faults were planted.
Nothing here is shared with the plugin's analysis, so it can judge that analysis.
"""

from __future__ import annotations

from collector.simulate.run import Metrics, SimulatedRun, WrittenRun, write_run
from collector.simulate.snapshots.form import Form
from collector.simulate.snapshots.label import OOM_CAUSES, OomCause, OomLabel
from collector.simulate.snapshots.oom import OomCase, oom_case, second_causes
from collector.simulate.snapshots.rank import SimulatedRank, trained_rank

__all__ = [
    "OOM_CAUSES",
    "Form",
    "Metrics",
    "OomCase",
    "OomCause",
    "OomLabel",
    "SimulatedRank",
    "SimulatedRun",
    "WrittenRun",
    "oom_case",
    "second_causes",
    "trained_rank",
    "write_run",
]
