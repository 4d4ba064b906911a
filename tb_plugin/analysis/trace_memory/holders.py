"""Who holds a device's memory when most of it is allocated: by category, module, phase.

The moment is the one of the highest total that the allocator said; where it said none,
of the highest sum of allocations that the trace shows. What the total has and no event
explains, because it was allocated before the trace began and never freed in it, or its
release was not seen, is told apart: of that nothing is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tb_plugin.analysis.trace.trace import NOTHING
from tb_plugin.analysis.trace_memory.attribution import OTHER

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.trace.details import MemoryEvents
    from tb_plugin.analysis.trace_memory.attribution import TraceLives

    Ints: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class MemoryHolders:
    """What is alive at one moment; columns of equal length, most bytes first."""

    time_ns: int
    allocated_bytes: int | None
    """The allocator's total; None: the trace does not say it."""
    seen_bytes: int
    """Of what the trace shows events of."""
    unseen_bytes: int
    """Of the total, what no event explains."""
    unknown_bytes: int
    """Unseen, or of no known category."""
    category: Ints
    module: Ints
    """Index in `TraceLives.modules`, or NOTHING; likewise the phase it was made in."""
    phase: Ints
    num_bytes: Ints
    num_allocations: Ints

    def __len__(self) -> int:
        return len(self.category)


def memory_holders(
    memory: MemoryEvents, lives: TraceLives, events: Ints, window_ns: tuple[int, int]
) -> MemoryHolders | None:
    """At the highest moment of a device in a range; `events`: its own, in order.

    None where no event lies in the range.
    """
    times = memory.time_ns[events]
    inside = events[(times >= window_ns[0]) & (times <= window_ns[1])]
    if not len(inside):
        return None
    own = np.zeros(len(memory), dtype=bool)
    own[events] = True
    rows = np.flatnonzero(own[lives.event] & ~lives.is_lost)
    at = _highest(memory, lives, rows, inside)
    alive = rows[(lives.born[rows] <= at) & (lives.gone[rows] > at)]
    total = int(memory.allocated_bytes[at])
    seen = int(lives.num_bytes[alive].sum())
    unseen = max(total - seen, 0)
    keys = np.stack(
        (lives.category[alive], lives.module[alive], lives.phase[alive]), axis=1
    )
    known, group = np.unique(keys, axis=0, return_inverse=True)
    group = group.reshape(-1)
    num_bytes = np.zeros(len(known), dtype=np.int64)
    np.add.at(num_bytes, group, lives.num_bytes[alive])
    order = np.argsort(-num_bytes, kind="stable")
    of_other = int(num_bytes[known[:, 0] == OTHER].sum())
    return MemoryHolders(
        time_ns=int(memory.time_ns[at]),
        allocated_bytes=None if total == NOTHING else total,
        seen_bytes=seen,
        unseen_bytes=unseen,
        unknown_bytes=unseen + of_other,
        category=known[order, 0],
        module=known[order, 1],
        phase=known[order, 2],
        num_bytes=num_bytes[order],
        num_allocations=np.bincount(group, minlength=len(known))[order],
    )


def _highest(memory: MemoryEvents, lives: TraceLives, rows: Ints, inside: Ints) -> int:
    """The event behind which most is allocated."""
    totals = memory.allocated_bytes[inside]
    if (totals >= 0).any():
        return int(inside[np.argmax(totals)])
    changes = np.zeros(len(memory) + 1, dtype=np.int64)
    np.add.at(changes, np.maximum(lives.born[rows], 0), lives.num_bytes[rows])
    np.add.at(changes, lives.gone[rows], -lives.num_bytes[rows])
    return int(inside[np.argmax(np.cumsum(changes)[inside])])
