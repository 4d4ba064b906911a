"""The allocator's totals over time, at a picture's width; no peak of either is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.trace.details import MemoryEvents

    Ints: TypeAlias = npt.NDArray[Any]
    Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MemoryCurve:
    """Columns of equal length, in order of time."""

    time_ns: Ints
    allocated_bytes: Floats
    reserved_bytes: Floats
    """NaN where an event does not say it; so are the others."""


def memory_curve(
    memory: MemoryEvents, events: Ints, window_ns: tuple[int, int], px: int
) -> MemoryCurve:
    """Of `events`, all of one device, at most four points for each of `px` columns.

    A column keeps its first and last event, and those with the highest allocated and
    reserved totals. One event on each side of the range stays, so that the line runs
    to its edges.
    """
    known = events[memory.allocated_bytes[events] >= 0]
    times = memory.time_ns[known]
    start, end = window_ns
    first = max(int(np.searchsorted(times, start, "left")) - 1, 0)
    stop = int(np.searchsorted(times, end, "right")) + 1
    rows = known[first:stop]
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
    starts = np.flatnonzero(np.diff(column, prepend=column[:1] - 1))
    stops = np.append(starts[1:], len(rows))
    group = np.repeat(np.arange(len(starts)), stops - starts)
    kept = [starts, stops - 1]
    for values in (memory.allocated_bytes[rows], memory.reserved_bytes[rows]):
        highest = np.maximum.reduceat(values, starts)
        hits = np.flatnonzero(values == highest[group])
        _, first = np.unique(group[hits], return_index=True)
        kept.append(hits[first])
    return np.unique(np.concatenate(kept))
