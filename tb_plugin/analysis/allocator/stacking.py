"""Live allocations as a picture: which lies where in each pixel column.

No polygon per allocation: a column of pixels stands for the one event inside it at
which the total is highest, so no peak is ever lost, and what lived at that event is
stacked in it. Allocations lie in bands, one upon the other, and in their band in order
of birth. Neighbouring columns in which an allocation lies at the same height of its band
make one run. What is thinner than a fraction of a pixel is summed up on top of its band.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.allocator.lifetimes import BEFORE
from memboard.tb_plugin.analysis.arrays import (
    Table,
    begins,
    changes,
    first_highest,
    within,
)

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.lifetimes import Levels, Lifetimes
    from memboard.tb_plugin.analysis.arrays import Floats, Ints


MAX_COLUMNS: Final = 1 << 13

MAX_PAIRS: Final = 2_000_000
"""Allocations times columns that are laid out; beyond it the thinnest are summed up."""

_THIN_FACTOR: Final = 2


@dataclass(frozen=True, slots=True)
class Columns(Table):
    """Pixel columns from left to right."""

    at: Ints
    """The event each stands for: the first of the highest in it; where it holds none,
    the last one before it; -1: what was there before all."""
    start: Ints
    """The first event in it, or after it where it holds none."""
    edge: Floats
    """(columns + 1,): where each begins on the axis, and the end of the last."""


@dataclass(frozen=True, slots=True)
class Stacking:
    """Runs of one allocation at one height over columns `first` to `last`, inclusive."""

    life: Ints
    """Row of `Lifetimes`; bands ascend, in each the rows, for each its columns."""
    first: Ints
    last: Ints
    offset: Ints
    """Bytes below it in its band."""
    rest: Ints
    """(bands, columns): bytes of what was summed up, on top of its band."""
    band_bytes: Ints
    """(bands, columns): all bytes of each band, rests included."""
    min_bytes: int
    """What is smaller is in `rest`."""

    @property
    def begins(self) -> Ints:
        """The first run of each life."""
        return np.flatnonzero(np.diff(self.life, prepend=-1))

    @property
    def slots(self) -> Ints:
        """By run, which of the lives in `begins` it is of."""
        begins = self.begins
        counts = np.diff(begins, append=len(self.life))
        return np.repeat(np.arange(len(begins)), counts)

    @property
    def total(self) -> Ints:
        # (columns,): bytes of all
        return np.asarray(self.band_bytes.sum(axis=0))


@dataclass(frozen=True, slots=True)
class VisibleLives(Table):
    """Allocations that live in some column: most live between two columns alone."""

    rows: Ints  # Rows of `Lifetimes`, ascending
    first: Ints
    """The first column each is seen in."""
    end: Ints
    """The one behind the last."""


def columns(after: Ints, start: int, stop: int, num_columns: int) -> Columns:
    """At most `num_columns` equally wide columns over the events `start` to `stop`.

    Where there are no events one column stands for what was there all the time.
    """
    stop, start = min(stop, len(after)), max(start, 0)
    if stop <= start:
        moment = np.array([min(start, len(after)) - 1])
        return Columns(moment, moment + 1, np.array([start, start + 1], np.float64))
    num_columns = max(1, min(num_columns, stop - start, MAX_COLUMNS))
    edges = np.linspace(start, stop, num_columns + 1).astype(np.int64)
    peaks = first_highest(after[:stop], edges[:-1])
    return Columns(peaks, edges[:-1], edges.astype(np.float64))


def time_columns(
    after: Ints, time_us: Ints, start_us: float, stop_us: float, num_columns: int
) -> Columns:
    """Columns that are equally long in time.

    Args:
        after: bytes after each event.
        time_us: of each event, ascending.
        start_us: where the first column begins, in the unit of `time_us`.
        stop_us: where the last one ends.
        num_columns: how many.
    """
    num_columns = max(1, min(num_columns, MAX_COLUMNS))
    edge = np.linspace(start_us, max(stop_us, start_us), num_columns + 1)
    # The last column holds the events at its end too: there is none after it.
    bounds = np.searchsorted(time_us, edge, "left")
    bounds[-1] = np.searchsorted(time_us, edge[-1], "right")
    start, end = bounds[:-1], bounds[1:]
    peaks = start - 1
    columns_with_events = np.flatnonzero(end > start)
    if len(columns_with_events):
        peaks[columns_with_events] = first_highest(
            after[: int(end[columns_with_events[-1]])], start[columns_with_events]
        )
    return Columns(peaks, start, edge)


def with_start(columns: Columns, level: Levels) -> Columns:
    """The first column shows what was there before all events, where that was most.

    So no peak is lost of what only falls.
    """
    highest = int(level.at(columns.at[:1])[0])
    peaks_before = level.first == highest and level.peak[1] == BEFORE
    if columns.start[0] == 0 and (level.first > highest or peaks_before):
        return replace(columns, at=np.append(BEFORE, columns.at[1:]))
    return columns


def num_events_until(time_us: Ints, end_us: float) -> int:
    """Events up to a time, it included; `time_us` ascends."""
    return int(np.searchsorted(time_us, end_us, "right"))


def seen(lives: Lifetimes, events: Ints) -> VisibleLives:
    """What lives at any of `events`, which ascend; lives are in order of birth."""
    if not len(events):
        nothing = np.empty(0, np.int64)
        return VisibleLives(nothing, nothing, nothing)
    stop = int(np.searchsorted(lives.born, events[-1], "right"))
    rows = np.flatnonzero(lives.gone[:stop] > events[0])
    # By event from the first column's on: how many columns lie before it. Looking up is
    # several times faster than searching for each of millions of lives.
    lengths = np.diff(events, prepend=events[0] - 1, append=events[-1] + 1)
    before = np.repeat(np.arange(len(events) + 1, dtype=np.uint16), lengths)
    first = before[np.maximum(lives.born[rows] - events[0], 0)]
    end = before[np.minimum(lives.gone[rows] - events[0], len(before) - 1)]
    is_seen = np.flatnonzero(end > first)
    return VisibleLives(
        rows[is_seen], first[is_seen].astype(np.int64), end[is_seen].astype(np.int64)
    )


def stacked(
    lives: Lifetimes,
    band: Ints,
    num_bands: int,
    events: Ints,
    min_bytes: int,
    *,
    bottom: int = 0,
    top: int | None = None,
) -> Stacking:
    """Stack what lives at `events`: band by band, in each in order of birth.

    Args:
        lives: the allocations, in order of birth.
        band: by allocation, to which of `num_bands` it belongs; 0 lies lowest. One
            below 0 is not in the picture.
        num_bands: how many.
        events: those of the columns, ascending; at least one.
        min_bytes: what is smaller is summed up.
        bottom: runs that lie below it in all are left out.
        top: those above it likewise.
    """
    visible = _seen(lives, band, events)
    rows, first, end = visible.rows, visible.first, visible.end
    size = lives.size[rows]
    counts = end - first
    while True:
        drawn = size >= min_bytes
        if int(counts[drawn].sum()) <= MAX_PAIRS:
            break
        min_bytes = max(1, min_bytes) * _THIN_FACTOR
    thin = ~drawn
    rest = _summed(
        band[rows[thin]], num_bands, first[thin], end[thin], size[thin], len(events)
    )
    rows, first, counts = rows[drawn], first[drawn], counts[drawn]
    order = np.argsort(band[rows], kind="stable")
    rows, first, counts = rows[order], first[order], counts[order]
    pairs = _laid_out(
        lives.size[rows], band[rows], num_bands, first, counts, len(events)
    )
    band_bytes = pairs.band_bytes + rest
    kept = None
    if bottom > 0 or top is not None:
        base = np.cumsum(band_bytes, axis=0) - band_bytes
        lower = pairs.offset + base[band[rows[pairs.place]], pairs.column]
        kept = lower + lives.size[rows[pairs.place]] > bottom
        if top is not None:
            kept &= lower < top
    place, begin, last, offset = pairs.runs(kept)
    return Stacking(rows[place], begin, last, offset, rest, band_bytes, min_bytes)


def band_bytes(lives: Lifetimes, band: Ints, num_bands: int, events: Ints) -> Ints:
    """(bands, columns): bytes that live at `events`, without laying them out."""
    visible = _seen(lives, band, events)
    size = lives.size[visible.rows]
    return _summed(
        band[visible.rows], num_bands, visible.first, visible.end, size, len(events)
    )


def pending_bytes(lives: Lifetimes, events: Ints) -> Ints:
    """(columns,): bytes that were freed by `events`, and not gone yet."""
    rows = np.flatnonzero((lives.freed <= events[-1]) & (lives.gone > events[0]))
    rows = rows[lives.gone[rows] > lives.freed[rows]]
    # Those that were freed before they were born are of contradicting files.
    since = np.maximum(lives.freed[rows], lives.born[rows])
    first = np.searchsorted(events, since, "left")
    end = np.searchsorted(events, lives.gone[rows], "left")
    seen = end > first
    rows, zero = rows[seen], np.zeros(int(np.count_nonzero(seen)), np.int64)
    return np.asarray(
        _summed(zero, 1, first[seen], end[seen], lives.size[rows], len(events))[0]
    )


def _seen(lives: Lifetimes, band: Ints, events: Ints) -> VisibleLives:
    """What lives in some column and is in a band."""
    visible = seen(lives, events)
    kept = band[visible.rows] >= 0
    return visible if kept.all() else visible.take(kept)


def _summed(
    band: Ints, num_bands: int, first: Ints, end: Ints, size: Ints, num_columns: int
) -> Ints:
    """Bytes by band and column."""
    return np.cumsum(changes(first, end, size, num_columns, band, num_bands), axis=1)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Allocations in columns, one by one: by allocation, then by column."""

    place: Ints
    column: Ints
    offset: Ints
    band_bytes: Ints

    def runs(self, kept: Ints | None) -> tuple[Ints, Ints, Ints, Ints]:
        """Allocation, first and last column and offset of each run."""
        place, column, offset = self.place, self.column, self.offset
        if kept is not None:
            place, column, offset = place[kept], column[kept], offset[kept]
        # A column goes on where it is one more than the one before.
        starts = begins(place) | begins(offset)
        starts |= begins(column - np.arange(len(column), dtype=column.dtype))
        begin = np.flatnonzero(starts)
        last = np.append(begin[1:], len(place))[: len(begin)] - 1
        return place[begin], column[begin], column[last], offset[begin]


def _laid_out(
    size: Ints, band: Ints, num_bands: int, first: Ints, counts: Ints, width: int
) -> _Pairs:
    """Where each lies in each of its columns; they are given by band, then by birth."""
    place = np.repeat(np.arange(len(size), dtype=np.int32), counts)
    column = (within(counts) + np.repeat(first, counts)).astype(np.int32)
    # Within a column by band, then by birth: a stable sort of what is in that order.
    # Of 16 bits it goes by digits.
    order = np.argsort(column.astype(np.uint16), kind="stable")
    sizes = size[place[order]]
    below = np.cumsum(sizes) - sizes
    band_bytes = _summed(band, num_bands, first, first + counts, size, width)
    # A column's bands begin where what was summed up to there ends.
    begins = np.cumsum(band_bytes.T.reshape(-1))
    begins -= band_bytes.T.reshape(-1)
    offset = np.empty(len(place), np.int64)
    offset[order] = below
    offset -= begins[column * np.int64(num_bands) + band[place]]
    return _Pairs(place, column, offset, band_bytes)
