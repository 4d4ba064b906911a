"""Memory through a trace at a picture's width: categories, and the allocator's totals.

No peak is lost, however wide a column is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.arrays import (
    begins,
    first_highest,
    highest_within,
    picked,
)

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.analysis.trace.details import MemoryEvents


@dataclass(frozen=True, slots=True, eq=False)
class MemoryColumns:
    """Column c covers x0 + c * width and what follows."""

    x0: float
    width: float
    held: Floats
    """(categories, columns): at the moment of the highest total in each column."""
    peak_x: Floats
    """(columns,) where that moment lies."""

    @property
    def total_bytes(self) -> Floats:
        """(columns,): the highest total of all categories together."""
        total: Floats = self.held.sum(axis=0)
        return total


def memory_columns(
    x: Floats, live_bytes: Ints, x0: float, x1: float, num: int
) -> MemoryColumns:
    """The highest of each column, so that no peak vanishes.

    Args:
        x: (moments,) ascending.
        live_bytes: (moments, categories), each until the next moment.
        x0: start of the window.
        x1: its end, behind x0.
        num: columns, at least 1.

    Returns:
        NaN in columns before the first moment.
    """
    width = (x1 - x0) / num
    edges = x0 + width * np.arange(num + 1)
    # By place: the moment before it; what a column begins with may be the highest in it.
    first = np.searchsorted(x, edges[:-1], "right")
    last = np.maximum(np.searchsorted(x, edges[1:], "left"), first)
    total = np.append(-1, live_bytes.sum(axis=1))
    row = highest_within(total, first, last) - 1
    peak_x = np.where(row + 1 == first, edges[:-1], picked(x, row, np.nan))
    columns = np.where(row[:, None] >= 0, live_bytes[np.maximum(row, 0)], np.nan)
    return MemoryColumns(x0, width, columns.T, peak_x)


@dataclass(frozen=True, slots=True, eq=False)
class MemoryCurve:
    """Columns of equal length, in order of time."""

    time_ns: Ints
    allocated_bytes: Floats
    reserved_bytes: Floats
    """NaN where an event does not say it; so are the others."""

    def as_steps(self, end_ns: int) -> MemoryCurve:
        """Each event twice: its totals hold until the next one, the last to the end."""
        time_ns = np.repeat(self.time_ns, 2)
        if len(time_ns):
            time_ns = np.append(time_ns[1:], max(end_ns, time_ns[-1]))
        allocated, reserved = self.allocated_bytes, self.reserved_bytes
        return MemoryCurve(time_ns, np.repeat(allocated, 2), np.repeat(reserved, 2))


def memory_curve(
    memory: MemoryEvents, events: Ints, window_ns: tuple[int, int], px: int
) -> MemoryCurve:
    """Of `events`, all of one device, at most four points for each of `px` columns.

    A column keeps its first and last event, and those with the highest allocated and
    reserved totals. One event on each side of the range stays, so that the line runs
    to its edges.
    """
    present = events[memory.allocated_bytes[events] >= 0]
    times = memory.time_ns[present]
    start, end = window_ns
    first = max(int(np.searchsorted(times, start, "left")) - 1, 0)
    stop = int(np.searchsorted(times, end, "right")) + 1
    rows = present[first:stop]
    if len(rows) > 4 * px and end > start:
        rows = rows[_kept(memory, rows, start, end, px)]
    return MemoryCurve(
        memory.time_ns[rows].astype(np.int64),
        _totals(memory.allocated_bytes[rows]),
        _totals(memory.reserved_bytes[rows]),
    )


def _totals(values: Ints) -> Floats:
    return np.where(values < 0, np.nan, values.astype(np.float64))


def _kept(memory: MemoryEvents, rows: Ints, start: int, end: int, px: int) -> Ints:
    """Places of the events that are kept, ascending."""
    times = memory.time_ns[rows].astype(np.float64)
    column = np.floor((times - start) * (px / (end - start))).astype(np.int64)
    starts = np.flatnonzero(begins(column))
    totals = (memory.allocated_bytes[rows], memory.reserved_bytes[rows])
    kept = [starts, np.append(starts[1:], len(rows)) - 1]
    kept += [first_highest(values, starts) for values in totals]
    return np.unique(np.concatenate(kept))
