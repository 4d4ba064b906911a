"""Forward, backward, optimizer: which of them a training was in, told from slices.

A phase begins where the first slice of its kind does, on whichever thread of the host,
and goes on until one of another kind begins: so what runs between two modules of a
forward belongs to it. Where a closure ran a forward and a backward inside an optimizer,
that goes on behind them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tb_plugin.analysis.categories.phases import NONE, Phases
from tb_plugin.analysis.time.slice_tree import SliceTree
from tb_plugin.analysis.trace.trace import NOTHING

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.trace.trace import Trace
    from tb_plugin.analysis.trace_memory.marks import TraceMarks

    Ints: TypeAlias = npt.NDArray[Any]


def trace_phases(trace: Trace, marks: TraceMarks, time_ns: Ints) -> tuple[Phases, Ints]:
    """Instances of phases of a trace, with the one that holds each of these times.

    And when each begins, but for the first, which is there from the start.
    """
    begins_ns, kinds = _changes(trace, marks)
    of_time = np.searchsorted(begins_ns, time_ns, "right")
    return Phases(of_time, np.concatenate(([NONE], kinds))), begins_ns


def _changes(trace: Trace, marks: TraceMarks) -> tuple[Ints, Ints]:
    """When another phase begins, and its kind; ascending."""
    slices = trace.slices
    tree = SliceTree(slices, (marks.own != 0) & (marks.kind != NONE))
    rows = np.flatnonzero(tree.kept)
    starts = slices.start_ns[rows].astype(np.int64)
    # What is around goes on behind the last slice of another kind in it.
    inner = rows[tree.parent[rows] != NOTHING]
    ends = slices.start_ns[inner].astype(np.int64) + slices.duration_ns[inner]
    around = tree.parent[inner]
    by = np.lexsort((ends, around))
    last = by[np.append(np.diff(around[by]) != 0, True)[: len(by)]]
    time_ns = np.concatenate((starts, ends[last]))
    kind = np.concatenate((marks.kind[rows], marks.kind[around[last]]))
    # At one time what ends comes before what begins, and the outer before the inner.
    is_start = np.arange(len(time_ns)) < len(rows)
    level = np.concatenate((slices.level[rows], np.zeros(len(last), np.int64)))
    order = np.lexsort((level, is_start, time_ns))
    time_ns, kind = time_ns[order], kind[order]
    changes = np.diff(kind, prepend=NONE) != 0
    return time_ns[changes], kind[changes]
