"""Tiles of a trace: slices drawn at a zoom; the rest is summed up, never lost.

At zoom `k` a pixel is about 2^k nanoseconds. A slice of at least 2^k ns is drawn by
itself. Shorter ones become one *block* with their neighbours of the same level, where
the gap between two is no longer than 2^k ns and both begin in the same cell of a grid of
2^(k+3) ns; a block knows how many slices it holds, how long they took in all, and which
is the longest. Neither the window shown nor its width in pixels decides what a block
holds, so panning changes no block; and what joins at one zoom also joins at every coarser
one, so coarse zooms are made of finer ones exactly.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.arrays import Table, first_highest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.trace.trace import Trace


MAX_PIECES: Final = 20_000
"""Of one answer: beyond it a coarser zoom is taken."""

MAX_ZOOM: Final = 62
_CELL_BITS: Final = 3
_MANY_ROWS: Final = 300_000
"""From so many on in sight a zoom of the whole trace is made, and kept."""


class Lane(NamedTuple):
    """One level of one track: slices that do not overlap."""

    track: int
    level: int


@dataclass(frozen=True, slots=True, eq=False)
class Pieces(Table):
    """Slices and blocks in order of rows; columns of equal length."""

    first: Ints
    """The piece's first row; its rows are those before the next piece's first, in its
    lane."""
    start_ns: Ints
    end_ns: Ints
    count: Ints
    """Slices in it; 1: it is a slice."""
    busy_ns: Ints
    longest: Ints
    """Row of the longest slice."""


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """What is drawn of some lanes in a window of time."""

    zoom: int
    pieces: Pieces
    lane_start: Ints
    """(lanes + 1,): the pieces of each lane."""


def zoom_of(span_ns: int, px: int) -> int:
    """The zoom at which a piece of its own takes 0.5 to 1 pixel at least."""
    return max(0, min(MAX_ZOOM, (max(1, span_ns) // max(1, px)).bit_length() - 1))


def merged(pieces: Pieces, lane: Ints | None, zoom: int, duration_ns: Ints) -> Pieces:
    """Pieces of a coarser zoom.

    Args:
        pieces: of any finer zoom, whole cells of `zoom` of each lane.
        lane: (pieces,) which lane each is of; None: all are of one.
        zoom: the coarser one.
        duration_ns: (rows,) of all slices of the trace.
    """
    if len(pieces) < 2:
        return pieces
    least = 1 << zoom
    start, end = pieces.start_ns, pieces.end_ns
    small = (pieces.count > 1) | (end - start < least)
    cell = start >> (zoom + _CELL_BITS)
    joins = small[1:] & small[:-1]
    joins &= cell[1:] == cell[:-1]
    joins &= start[1:] - end[:-1] <= least
    if lane is not None:
        joins &= lane[1:] == lane[:-1]
    if not joins.any():
        return pieces
    begins = np.flatnonzero(np.concatenate(([True], ~joins)))
    count = np.add.reduceat(pieces.count, begins)
    return Pieces(
        pieces.first[begins],
        start[begins],
        end[np.append(begins[1:], len(pieces)) - 1],
        count,
        np.add.reduceat(pieces.busy_ns, begins),
        pieces.longest[first_highest(duration_ns[pieces.longest], begins)],
    )


def _joined(parts: Sequence[Pieces]) -> Pieces:
    none = np.empty(0, np.int64)
    return Pieces.joined(parts or [Pieces(*(none,) * 6)])


class TraceTiles:
    """Tiles of one trace. Safe for threads."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._zooms: dict[int, Pieces] = {}
        self._lock = threading.Lock()

    def tile(
        self,
        lanes: Sequence[Lane],
        start_ns: int,
        end_ns: int,
        zoom: int,
        most: int = MAX_PIECES,
    ) -> Tile:
        """What touches a window of time (of the trace), at a zoom or a coarser one.

        `lanes` come in order of their rows, `start_ns` and `end_ns` are relative to the
        trace, the zoom is of `zoom_of`. Where even the coarsest zoom has more than
        `most` pieces, all are given.
        """
        while True:
            tile = self._tile(lanes, start_ns, end_ns, zoom)
            if len(tile.pieces) <= most or zoom >= MAX_ZOOM:
                return tile
            zoom += max(1, (len(tile.pieces) // most).bit_length() - 1)
            zoom = min(zoom, MAX_ZOOM)

    def _tile(
        self, lanes: Sequence[Lane], start_ns: int, end_ns: int, zoom: int
    ) -> Tile:
        cell = 1 << (zoom + _CELL_BITS)
        low = start_ns // cell * cell - cell
        high = -(-end_ns // cell) * cell
        bounds = [self._window(lane, low, high) for lane in lanes]
        kept = None
        if sum(stop - first for first, stop in bounds) > _MANY_ROWS and zoom > 1:
            kept = self._zoom(zoom - zoom % 2)
        parts = [self._of_rows(kept, *bound) for bound in bounds]
        every = _joined(parts)
        lane = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        pieces = merged(every, lane, zoom, self._trace.slices.duration_ns)
        starts = np.searchsorted(every.first, pieces.first)
        lane = lane[starts]
        # Cells reach beyond the window.
        seen = (pieces.end_ns >= start_ns) & (pieces.start_ns < end_ns)
        if not seen.all():
            pieces = pieces.take(seen)
            lane = lane[seen]
        return Tile(zoom, pieces, np.searchsorted(lane, np.arange(len(lanes) + 1)))

    def _window(self, lane: Lane, low: int, high: int) -> tuple[int, int]:
        """Rows of a lane that begin in a window, and the one that reaches into it."""
        rows = self._trace.tracks[lane.track].level_rows
        first, stop = rows[lane.level], rows[lane.level + 1]
        starts = self._trace.slices.start_ns[first:stop]
        begin, end = np.searchsorted(starts, (low, high)).tolist()
        begin = max(begin - 1, 0)
        if begin < end:
            # What does not reach in may be the middle of a block: leave it out.
            row = first + begin
            ends = int(starts[begin]) + int(self._trace.slices.duration_ns[row])
            if int(starts[begin]) < low and ends <= low:
                begin += 1
        return first + begin, first + end

    def _of_rows(self, kept: Pieces | None, first: int, stop: int) -> Pieces:
        if kept is None or first >= stop:
            return self._base(first, stop)
        begin, end = np.searchsorted(kept.first, (first, stop)).tolist()
        # The piece that holds the first row may begin before it.
        if begin > 0 and (begin == len(kept) or int(kept.first[begin]) != first):
            lane_first = self._lane_first(first)
            if int(kept.first[begin - 1]) >= lane_first:
                begin -= 1
        return kept.take(slice(begin, end))

    def _lane_first(self, row: int) -> int:
        slices = self._trace.slices
        track = self._trace.tracks[int(slices.track[row])]
        return track.level_rows[int(slices.level[row])]

    def _base(self, first: int, stop: int) -> Pieces:
        slices = self._trace.slices
        start = np.asarray(slices.start_ns[first:stop], np.int64)
        length = np.asarray(slices.duration_ns[first:stop], np.int64)
        rows = np.arange(first, stop)
        ones = np.ones(stop - first, np.int64)
        return Pieces(rows, start, start + length, ones, length, rows)

    def _zoom(self, zoom: int) -> Pieces:
        """A zoom of the whole trace, made of the next finer one that is there."""
        with self._lock:
            pieces = self._zooms.get(zoom)
            if pieces is not None:
                return pieces
            finer = max((k for k in self._zooms if k < zoom), default=None)
            parts = []
            for first, stop in self._lanes():
                rows = (
                    self._base(first, stop)
                    if finer is None
                    else self._of_rows(self._zooms[finer], first, stop)
                )
                parts.append(merged(rows, None, zoom, self._trace.slices.duration_ns))
            made = self._zooms[zoom] = _joined(parts)
            return made

    def _lanes(self) -> Iterable[tuple[int, int]]:
        for track in self._trace.tracks:
            for level in range(track.num_levels):
                yield track.level_rows[level], track.level_rows[level + 1]
