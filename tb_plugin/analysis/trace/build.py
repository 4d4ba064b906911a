"""Slices in any order to the sorted form of `trace`: with levels and parents, exactly.

Slices of a track are taken by (start, -end), without a walk where they nest as they
should. One lies in another if it ends no later. Its parent is the innermost that holds it
whole; its level is the lowest below its parent's at which nothing lies, so slices that
overlap without nesting are side by side and nothing is dropped.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from memboard.tb_plugin.analysis.arrays import place_of
from memboard.tb_plugin.analysis.trace.details import (
    Collectives,
    DeviceWork,
    Launches,
    MemoryEvents,
    Operators,
    Synchronisations,
)
from memboard.tb_plugin.analysis.trace.trace import (
    Counters,
    Flows,
    Instants,
    Slices,
    Trace,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.trace.trace import Track


Table = TypeVar("Table")


@dataclass(frozen=True, slots=True, eq=False)
class PlacedSlices:
    tracks: tuple[Track, ...]
    """As given, each knowing its rows."""
    slices: Slices
    order: Ints
    """(rows,): the given slice that stands at each row."""
    row_of: Ints
    """(slices,): the row of each given slice."""
    num_overlapping: int
    """Slices that begin in another of their track and end after it."""


def place(
    tracks: Sequence[Track],
    *,
    track: Ints,
    start_ns: Ints,
    duration_ns: Ints,
    name: Ints,
    category: Ints,
    args: Ints,
) -> PlacedSlices:
    """Sort slices, give them levels and parents, and tell tracks where theirs are.

    Args:
        tracks: their places in rows are not looked at.
        track: (slices,) index in `tracks`; the other columns as in `trace.Slices`.
        start_ns: (slices,)
        duration_ns: (slices,) none negative.
        name: (slices,)
        category: (slices,)
        args: (slices,)
    """
    nested = nest(track, start_ns, start_ns + duration_ns, len(tracks))
    order = nested.order
    row_of = place_of(order, len(order))
    slices = Slices(
        track[order],
        nested.level,
        start_ns[order],
        duration_ns[order],
        name[order],
        category[order],
        nested.parent,
        args[order],
    )
    tracks_of_slices = tuple(
        replace(
            track,
            first_row=rows[0],
            num_slices=rows[-1] - rows[0],
            level_rows=rows,
        )
        for track, rows in zip(tracks, nested.level_rows, strict=True)
    )
    return PlacedSlices(tracks_of_slices, slices, order, row_of, nested.num_overlapping)


def no_rows(table: type[Table]) -> Table:
    """A table of `trace` or `trace_details` without rows."""
    columns = fields(table)  # type: ignore[arg-type]  # all of them are dataclasses
    kinds = (
        np.float64 if "Floats" in str(column.type) else np.int64 for column in columns
    )
    return table(*(np.empty(0, kind) for kind in kinds))


@dataclass(frozen=True, slots=True, eq=False)
class NestedSlices:
    """Slices in the order of `trace.Slices`."""

    order: Ints
    """(rows,): the given slice that stands at each row."""
    level: Ints  # (rows,): int32
    parent: Ints
    """(rows,): row, not given slice; -1: none."""
    level_rows: tuple[tuple[int, ...], ...]
    """By track: where its levels begin and the last ends; see `trace.Track`."""
    num_overlapping: int
    """Slices that begin in another of their track and end after it."""


def nest(track: Ints, start_ns: Ints, end_ns: Ints, num_tracks: int) -> NestedSlices:
    """Order slices by (track, level, start) and find their parents.

    Args:
        track: (slices,), from 0 to `num_tracks` - 1.
        start_ns: (slices,) signed.
        end_ns: (slices,), none before its start.
        num_tracks: tracks without slices included.
    """
    taken = np.lexsort((-end_ns, start_ns, track))
    num = len(taken)
    bounds = np.searchsorted(track[taken], np.arange(num_tracks + 1)).tolist()
    level = np.zeros(num, np.int32)
    parent = np.full(num, -1, np.int64)
    overlapping = 0
    for first, stop in itertools.pairwise(bounds):
        if stop - first < 2:
            continue
        rows = taken[first:stop]
        levels_and_parents = _track(start_ns[rows], end_ns[rows])
        level[first:stop] = levels_and_parents[0]
        parent[first:stop] = np.where(
            levels_and_parents[1] >= 0, levels_and_parents[1] + first, -1
        )
        overlapping += levels_and_parents[2]
    # Stable, so that starts ascend in every level.
    placed = np.lexsort((level, track[taken]))
    row_of = place_of(placed, num)
    parent = parent[placed]
    level = level[placed]
    has_parent = parent >= 0
    parent[has_parent] = row_of[parent[has_parent]]
    level_rows = tuple(
        _level_rows(level, first, stop) for first, stop in itertools.pairwise(bounds)
    )
    return NestedSlices(taken[placed], level, parent, level_rows, overlapping)


def _level_rows(level: Ints, first: int, stop: int) -> tuple[int, ...]:
    if first == stop:
        return (first,)
    of_track = level[first:stop]
    starts = np.searchsorted(of_track, np.arange(int(of_track[-1]) + 2)) + first
    return tuple(starts.tolist())


def _track(start: Ints, end: Ints) -> tuple[Ints, Ints, int]:
    """Levels, parents and the number of overlapping, of slices by (start, -end)."""
    level = _open_before(start, end)
    parent = _parents(level)
    has_parent = parent >= 0
    wrong = np.zeros(len(start), np.bool_)
    wrong[has_parent] = end[has_parent] > end[parent[has_parent]]
    if not wrong.any():
        return level, parent, 0
    # Only stretches in which something overlaps are walked.
    first = np.flatnonzero(level == 0)
    stretch = np.cumsum(level == 0) - 1
    stop = np.append(first[1:], len(start))
    overlapping = 0
    for index in np.unique(stretch[wrong]).tolist():
        low, high = int(first[index]), int(stop[index])
        levels, parents, count = _walk(start[low:high].tolist(), end[low:high].tolist())
        level[low:high] = levels
        parent[low:high] = [low + row if row >= 0 else -1 for row in parents]
        overlapping += count
    return level, parent, overlapping


def _open_before(start: Ints, end: Ints) -> Ints:
    """How many slices before each one have begun and not ended."""
    num = len(start)
    ended = np.searchsorted(np.sort(end), start, "right")
    # Slices without duration end where they start, also those that come later.
    empty = np.concatenate(([0], np.cumsum(start == end)))
    same_start = np.searchsorted(start, start, "right")
    ended -= empty[same_start] - empty[:-1]
    return (np.arange(num) - ended).astype(np.int32)


def _parents(level: Ints) -> Ints:
    """The last slice before each one that is a level above it."""
    num = len(level)
    place = np.arange(num)
    key = level.astype(np.int64) * num + place
    keys = np.sort(key)
    above = np.searchsorted(keys, key - num) - 1
    parent = np.full(num, -1, np.int64)
    has_parent = level > 0
    parent[has_parent] = keys[above[has_parent]] % num
    return parent


def _walk(start: list[int], end: list[int]) -> tuple[list[int], list[int], int]:
    """As `_track`, one slice at a time, in the logarithm of how many are open for each."""
    levels: list[int] = []
    parents: list[int] = []
    free = _FreeLevels()
    open_ends: list[tuple[int, int]] = []
    """Heap of what has begun and not ended: end and level."""
    holding: list[int] = []
    """Of these, rows that no later one outlasts: ends fall, so the last that holds a slice
    is the last that is left once all that end before it are dropped."""
    overlapping = 0
    for row, (begins, ends) in enumerate(zip(start, end, strict=True)):
        while open_ends and open_ends[0][0] <= begins:
            free.give(heapq.heappop(open_ends)[1])
        while holding and (end[holding[-1]] < ends or end[holding[-1]] <= begins):
            holding.pop()
        overlapping += bool(open_ends) and open_ends[0][0] < ends
        parent = holding[-1] if holding else -1
        level = free.take(levels[parent] + 1 if parent >= 0 else 0)
        heapq.heappush(open_ends, (ends, level))
        holding.append(row)
        levels.append(level)
        parents.append(parent)
    return levels, parents, overlapping


class _FreeLevels:
    """Levels at which nothing lies; the lowest from some level on is found at once."""

    _WIDTH: Final = 1024

    def __init__(self) -> None:
        self._blocks: list[int] = []
        self._some = 0
        """Bits of blocks that have any."""

    def take(self, least: int) -> int:
        """The lowest free level that is no lower than one."""
        block, bit = divmod(least, self._WIDTH)
        while block >= len(self._blocks):
            self._add_block()
        bits = self._blocks[block] >> bit << bit
        if not bits:
            others = self._some >> (block + 1)
            if not others:
                self._add_block()
                others = self._some >> (block + 1)
            block += (others & -others).bit_length()
            bits = self._blocks[block]
        lowest = bits & -bits
        self._blocks[block] ^= lowest
        if not self._blocks[block]:
            self._some ^= 1 << block
        return block * self._WIDTH + lowest.bit_length() - 1

    def give(self, level: int) -> None:
        block, bit = divmod(level, self._WIDTH)
        self._blocks[block] |= 1 << bit
        self._some |= 1 << block

    def _add_block(self) -> None:
        self._some |= 1 << len(self._blocks)
        self._blocks.append((1 << self._WIDTH) - 1)


EMPTY_TRACE: Final = Trace(
    tracks=(),
    strings=("",),
    slices=no_rows(Slices),
    instants=no_rows(Instants),
    series=(),
    counters=no_rows(Counters),
    flows=no_rows(Flows),
    operators=no_rows(Operators),
    launches=no_rows(Launches),
    device_work=no_rows(DeviceWork),
    synchronisations=no_rows(Synchronisations),
    collectives=no_rows(Collectives),
    memory=no_rows(MemoryEvents),
)
"""Of it others are made with `dataclasses.replace`."""
