"""An allocator snapshot as columns: what torch's `_snapshot()` returns, and back.

The tables of a capture of kind `history`. Nothing of the snapshot is lost, known or not:
`rebuilt` returns a structure equal to the one given to `tables_of`, and any key that some
torch adds travels along. Index columns hold -1 where there is nothing.

strings         text: every distinct text of the columns below
frames          one row per distinct frame: name, filename, line, whatever else it has
stacks          num_frames of each distinct stack
stack_frames    frame: the stacks' frames, one stack after the other
segments        num_blocks (-1: no list of blocks), address, total_size, ...
blocks          segment (row in `segments`), address, size, state, ...
traces          num_events of each list of events; torch has one list per device
events          device (row in `traces`), action, addr, size, stream, time_us, ...
annotations     stage, name, device, time_us: `external_annotations`
host_segments   and host_blocks, host_traces, host_events: the same of pinned memory
root            key, kind, value: the snapshot's own entries, in order; value is the
                whole of an entry that has no table, as text (see `plain_text`)
layout          table, key, column, kind, optional: what each column holds

Kinds of columns (`layout.kind`), with what stands where a row lacks an optional key:

int     the number itself                                        ABSENT
uint    the same modulo 2**64, for addresses above 2**63         ABSENT
float   the number itself                                        NaN
bool    0 or 1                                                   -1
text    a row of `strings`                                       -1
stack   a row of `stacks`                                        -1
pair    two columns `.0` and `.1`, for a pair of integers        ABSENT
value   a row of `strings` that is `plain_text` of anything else -1

A column bears the name of its key; a key that one of the tables' own columns took has an
underscore behind its name.
"""

from memboard.collector.format.snapshots.decode import rebuilt
from memboard.collector.format.snapshots.encode import HeldColumn, HeldEvents, tables_of

__all__ = ["HeldColumn", "HeldEvents", "rebuilt", "tables_of"]
