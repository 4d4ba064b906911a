"""What happened at one time in a trace: thinned to what can be told apart, and searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tb_plugin.analysis.trace.trace import Trace

    Ints: TypeAlias = npt.NDArray[Any]

_CELL_BITS: Final = 2
"""Instants in a cell of 2^(zoom + 2) ns, about 2 to 4 pixels, are drawn as one."""


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """Instants as they are drawn, by track and time; columns of equal length."""

    row: Ints
    """Of `Trace.instants`: the first of those that fall together."""
    count: Ints
    """How many do."""

    def __len__(self) -> int:
        return len(self.row)


def rows_of_track(trace: Trace, track: int) -> tuple[int, int]:
    """First and one past the last instant of a track."""
    first, stop = np.searchsorted(trace.instants.track, (track, track + 1)).tolist()
    return first, stop


def marks(
    trace: Trace, track: int, start_ns: int, end_ns: int, zoom: int, most: int
) -> Marks:
    """The instants of a track in a window, those next to each other as one.

    Which fall together depends on the zoom alone; it is made coarser until at most
    `most` remain.
    """
    first, stop = rows_of_track(trace, track)
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
        begins = np.flatnonzero(np.concatenate(([True], cell[1:] != cell[:-1])))
        if len(begins) <= max(1, most):
            break
        zoom += 1
    count = np.diff(begins, append=len(inside))
    return Marks(begins + first + begin, count)


def found_instants(
    trace: Trace, tracks: Sequence[int], wanted: Ints | None, most: int
) -> tuple[Ints, int]:
    """Instants of some tracks by their names, in order of time, and how many there are.

    Args:
        trace: whose they are.
        tracks: theirs.
        wanted: by string, whether it is meant; None: all are.
        most: rows that are given.
    """
    parts = [np.empty(0, np.int64)]
    for track in tracks:
        first, stop = rows_of_track(trace, track)
        rows = np.arange(first, stop)
        if wanted is not None:
            rows = rows[wanted[trace.instants.name[first:stop]]]
        parts.append(rows)
    found = np.concatenate(parts)
    order = np.argsort(trace.instants.time_ns[found], kind="stable")[:most]
    return found[order], len(found)


def slices_around(trace: Trace, row: int) -> tuple[int, ...]:
    """Rows of the slices of its track that an instant falls into, innermost first."""
    track, at = int(trace.instants.track[row]), int(trace.instants.time_ns[row])
    held = []
    for level in reversed(range(trace.tracks[track].num_levels)):
        first, stop = trace.rows_of_level(track, level, at, at)
        starts = trace.slices.start_ns[first:stop]
        ends = starts + trace.slices.duration_ns[first:stop]
        held += (first + np.flatnonzero((starts <= at) & (ends >= at))).tolist()
    return tuple(held)
