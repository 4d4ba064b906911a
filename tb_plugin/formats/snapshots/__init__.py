"""Allocator snapshots that torch dumped, or others saved as JSON, without unpickling.

`tb_plugin.jobs.worker` runs this in a worker process of its own:

- `snapshot_file`: a file to the tables of `collector.format.snapshots`;
- `window`: the few megabytes of it that are looked at, inflated and without frames;
- `machine`: the few pickle opcodes that build plain data, within limits;
- `memo`: what the pickle may refer back to, and `stacks`: lists of frames by number;
- `shapes`, `batch`, `event_reader`: events recognised side by side, which is what makes
  it fast;
- `events`, `packed`, `held_events`: events as columns while and after they are read;
- `json_snapshot`: JSON made a pickle;
- `extent`: what a value stands for when it is walked.

A pickle of a snapshot holds plain data alone, so whatever else is in one is refused: no
class is looked up and nothing is called. Memory stays a small multiple of the columns,
whatever the file claims.
"""
