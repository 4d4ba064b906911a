"""Nests the events of each thread: all at once, without a loop of Python's.

Events of a thread nest: of two that overlap one holds the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memboard.collector.torch_profiler.digest.events import ASYNC, MEMORY

if TYPE_CHECKING:
    from memboard.collector.format.records import FloatArray, IntArray
    from memboard.collector.torch_profiler.digest.events import Events


@dataclass(frozen=True, slots=True)
class Nesting:
    """Of some events, sorted by thread and time: what holds comes before what it holds."""

    rows: IntArray
    """Of the events, in this order."""
    parent: IntArray
    """Position here of the innermost event around each; -1: none."""
    level: IntArray
    """How many events are around each."""

    def upwards(self, own: FloatArray) -> FloatArray:
        """What each event has of its own and all inside it together."""
        total: FloatArray = own.copy()
        for level in range(int(self.level.max(initial=0)), 0, -1):
            at = np.flatnonzero(self.level == level)
            np.add.at(total, self.parent[at], total[at])
        return total

    def without_inner(self, whole: FloatArray) -> FloatArray:
        """What each event has without the events right inside it."""
        own: FloatArray = whole.copy()
        inside = np.flatnonzero(self.parent >= 0)
        np.subtract.at(own, self.parent[inside], whole[inside])
        return own


def nested(events: Events, rows: IntArray) -> Nesting:
    """The nesting of these events; allocations hold nothing."""
    thread, start = events.thread[rows], events.start_ns[rows]
    duration = np.maximum(events.duration_ns[rows], 0)
    is_memory = events.named(MEMORY)[rows]
    duration[is_memory] = 0
    order = np.lexsort((is_memory, -duration, start, thread))
    rows, thread = rows[order], thread[order]
    end = (start + duration)[order]
    # What holds nothing ends, as a holder, before time began.
    holds_until = np.where(is_memory[order] | (thread == ASYNC), -1, end)
    parent = _parents(thread, end, holds_until)
    return Nesting(rows, parent, _levels(parent))


def _parents(thread: IntArray, end: IntArray, holds_until: IntArray) -> IntArray:
    """The nearest earlier event of the thread that ends no sooner.

    All begin with the event before them, and those that are not held by it go on to
    where that one has got: whatever it has passed over ends before it does.
    """
    parent = np.arange(len(end), dtype=np.int64) - 1
    waiting = np.flatnonzero(parent >= 0)
    while len(waiting):
        at = parent[waiting]
        same = thread[at] == thread[waiting]
        parent[waiting[~same]] = -1
        waiting, at = waiting[same], at[same]
        outside = holds_until[at] < end[waiting]
        waiting, at = waiting[outside], at[outside]
        parent[waiting] = parent[at]
        waiting = waiting[parent[waiting] >= 0]
    return parent


def _levels(parent: IntArray) -> IntArray:
    level = np.zeros(len(parent), dtype=np.int64)
    at = parent.copy()
    inside = np.flatnonzero(at >= 0)
    while len(inside):
        level[inside] += 1
        at[inside] = parent[at[inside]]
        inside = inside[at[inside] >= 0]
    return level
