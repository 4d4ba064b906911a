"""Instants of a trace, thinned to what can be told apart.

Where slices and instants are told by one number, that of an instant is `~row`: below 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import Table, begins

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.trace.trace import Instants, Slices, Trace


_CELL_BITS: Final = 2
"""Instants in a cell of 2^(zoom + 2) ns, about 2 to 4 pixels, are drawn as one."""


@dataclass(frozen=True, slots=True, eq=False)
class Marks(Table):
    """Instants as they are drawn, by track and time; columns of equal length."""

    row: Ints
    """Of `Trace.instants`: the first of those that fall together."""
    count: Ints


def rows_of_track(table: Slices | Instants, track: int) -> tuple[int, int]:
    """First and one past the last row of a track."""
    first, stop = np.searchsorted(table.track, (track, track + 1)).tolist()
    return first, stop


def marks(
    trace: Trace, track: int, start_ns: int, end_ns: int, zoom: int, most: int
) -> Marks:
    """The instants of a track in a window, those next to each other as one.

    Which fall together depends on the zoom alone; it is made coarser until at most
    `most` remain.
    """
    first, stop = rows_of_track(trace.instants, track)
    time_ns = np.asarray(trace.instants.time_ns[first:stop], np.int64)
    zoom += _CELL_BITS
    # Whole cells: those at the window's edges hold the same wherever it lies.
    low = start_ns >> zoom << zoom
    high = ((end_ns >> zoom) + 1) << zoom
    begin, end = np.searchsorted(time_ns, (low, high)).tolist()
    if begin == end:
        return Marks(np.empty(0, np.int64), np.empty(0, np.int64))
    inside = time_ns[begin:end]
    while True:
        cell = inside >> zoom
        starts = np.flatnonzero(begins(cell))
        if len(starts) <= max(1, most):
            break
        zoom += 1
    count = np.diff(starts, append=len(inside))
    return Marks(starts + first + begin, count)


def slices_around(trace: Trace, row: int) -> tuple[int, ...]:
    """Rows of the slices of its track that an instant falls into, innermost first."""
    track, time_ns = int(trace.instants.track[row]), int(trace.instants.time_ns[row])
    rows = []
    for level in reversed(range(trace.tracks[track].num_levels)):
        first, stop = trace.rows_of_level(track, level, time_ns, time_ns)
        starts, ends = trace.slices.ranges(slice(first, stop)).T
        rows += (
            first + np.flatnonzero((starts <= time_ns) & (ends >= time_ns))
        ).tolist()
    return tuple(rows)
