"""How slices of a track lie in each other: levels and parents, exactly.

Slices of a track are taken by (start, -end), without a walk where they nest as they
should. One lies in another if it ends no later. Its parent is the innermost that holds it
whole; its level is the lowest below its parent's at which nothing lies, so slices that
overlap without nesting are side by side and nothing is dropped.

Profilers write overlaps in nearly every trace: a step begins inside the call that begins
it, and clocks round. So what overlaps is cut out as narrowly as can be, and that alone is
walked.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import place_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.analysis.arrays import Flags, Ints

_MOST_HOLDING: Final = 64
"""Slices in each other that are looked into for the shortest stretches that overlap."""
_SHORT: Final = 256
"""Slices that are walked sooner than cut further."""
_MOST_LOOKED_AT: Final = 16
"""Slices, for each of a stretch, that are looked at to cut it further."""
_LEAST_LOOKED_AT: Final = 64
"""As many slices are looked at in the time that a slice takes itself."""


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
    parent = _last_above(level)
    has_parent = parent >= 0
    wrong = np.zeros(len(start), np.bool_)
    wrong[has_parent] = end[has_parent] > end[parent[has_parent]]
    overlapping = 0
    for first, stop in _overlapping_stretches(level, end, wrong):
        base, around = level[first], parent[first]
        nest_stretch = _walk if stop - first < _SHORT else _cut
        levels, parents, count = nest_stretch(start[first:stop], end[first:stop])
        level[first:stop] = levels + base
        parent[first:stop] = np.where(parents >= 0, parents + first, around)
        overlapping += count
    return level, parent, overlapping


def _overlapping_stretches(
    level: Ints, end: Ints, wrong: Ints
) -> Iterator[tuple[int, int]]:
    """First and stop of short stretches of rows outside of which all nests.

    A stretch begins where nothing is open but slices that hold all that begins in them: on
    what lies in these, what lies outside has no effect.

    Args:
        level: (rows,) how many slices were open before each.
        end: (rows,)
        wrong: (rows,) flags: whether each outlasts the last one that is a level above it.
    """
    rows = np.arange(len(level))
    for depth in range(_MOST_HOLDING + 1):
        first = np.flatnonzero(level[rows] == depth)
        if not len(first):
            return
        num = np.diff(first, append=len(rows))
        overlaps = np.logical_or.reduceat(wrong[rows], first)
        holds_all = end[rows[first]] == np.maximum.reduceat(end[rows], first)
        if depth == _MOST_HOLDING:
            holds_all[:] = False
        for place in np.flatnonzero(overlaps & ~holds_all).tolist():
            row = int(rows[first[place]])
            yield row, row + int(num[place])
        is_inside = np.repeat(overlaps & holds_all, num)
        is_inside[first] = False
        rows = rows[is_inside]


def _cut(start: Ints, end: Ints) -> tuple[Ints, Ints, int]:
    """As `_walk`, of a long stretch: what lies in a root is nested for itself.

    What begins in a root lies in it and nowhere else. Of what lies beside each other in
    one, all is walked from where some overlap until all have ended.
    """
    roots_and_overlaps = _roots(start, end)
    if roots_and_overlaps is None:
        return _walk(start, end)
    is_root, overlaps = roots_and_overlaps
    level = _open_before(start, end)
    depth = _open_before(start, end, is_root)
    root = _last_above(depth, is_root)
    beside = level - depth
    beside[root >= 0] -= beside[root[root >= 0]]
    order = np.argsort(root, kind="stable")
    bounds = np.append(np.flatnonzero(beside[order] == 0), len(order))
    above = beside.copy()
    parent = np.where(beside > 0, _last_above(level), root)
    num_overlapping = 0
    has_overlap = np.logical_or.reduceat(overlaps[order], bounds[:-1])
    for place in np.flatnonzero(has_overlap).tolist():
        rows = order[bounds[place] : bounds[place + 1]]
        levels, parents, count = _walk(start[rows], end[rows])
        above[rows] = levels
        parent[rows] = np.where(parents >= 0, rows[parents], root[rows])
        num_overlapping += count
    # All that lies in a root is as much higher as the root.
    roots = np.flatnonzero(is_root)
    higher = np.zeros(len(start) + 1, np.int64)
    np.add.at(higher, roots + 1, above[roots])
    np.subtract.at(higher, np.searchsorted(start, end[roots]), above[roots])
    return depth + above + np.cumsum(higher)[:-1], parent, num_overlapping


def _roots(start: Ints, end: Ints) -> tuple[Flags, Flags] | None:
    """Slices that hold all that begins in them, in slices that hold each other.

    Returns:
        (rows,) flags: whether each is one, and whether each overlaps others. None: so many
        overlap that a walk takes less time.
    """
    is_outlasted, stop = _outlasted(start, end)
    rows = np.flatnonzero(is_outlasted)
    looked_at = int((stop[rows] - rows + _LEAST_LOOKED_AT).sum())
    if looked_at > _MOST_LOOKED_AT * len(start):
        return None
    order = np.lexsort((start, -end))
    outlasts = np.zeros(len(start), np.bool_)
    outlasts[order] = _outlasted(-end[order], -start[order])[0]
    overlaps = is_outlasted | outlasts
    within = np.zeros(len(start) + 1, np.int64)
    """How many more slices are outlasted by another that is open, from each row on."""
    for row, last in zip(rows.tolist(), stop[rows].tolist(), strict=True):
        within[row + 1 + np.argmax(end[row + 1 : last] > end[row])] += 1
        within[last] -= 1
    return ~overlaps & (np.cumsum(within)[:-1] == 0) & (end > start), overlaps


def _outlasted(start: Ints, end: Ints) -> tuple[Flags, Ints]:
    """Whether what begins in each slice ends after it; the first row that begins later."""
    first = np.arange(1, len(start) + 1)
    stop = np.maximum(np.searchsorted(start, end), first)
    _, width_class = np.frexp(stop - first)
    latest, highest = end.copy(), end
    """The latest end of what begins in each slice, and of the rows from each one on."""
    for power in range(1, int(width_class.max()) + 1):
        width = 1 << (power - 1)  # of what `highest` is of
        rows = np.flatnonzero(width_class == power)
        latest[rows] = np.maximum(highest[first[rows]], highest[stop[rows] - width])
        highest = np.maximum(highest[:-width], highest[width:])
    return latest > end, stop


def _open_before(start: Ints, end: Ints, counted: Flags | None = None) -> Ints:
    """How many slices before each one have begun and not ended; of all, or some."""
    if counted is None:
        counted = np.ones(len(start), np.bool_)
    begun: Ints = np.cumsum(counted) - counted
    ended = np.searchsorted(np.sort(end[counted]), start, "right")
    # Slices without duration end where they start, also those that come later.
    empty = np.concatenate(([0], np.cumsum(counted & (start == end))))
    same_start = np.searchsorted(start, start, "right")
    ended -= empty[same_start] - empty[:-1]
    return (begun - ended).astype(np.int32)


def _last_above(level: Ints, counted: Flags | None = None) -> Ints:
    """The last slice before each one that is a level above it; of all, or some."""
    num = len(level)
    key = level.astype(np.int64) * num + np.arange(num)
    keys = np.sort(key if counted is None else key[counted])
    above = np.searchsorted(keys, key - num) - 1
    parent = np.full(num, -1, np.int64)
    has_parent = level > 0
    parent[has_parent] = keys[above[has_parent]] % num
    return parent


def _walk(starts: Ints, ends: Ints) -> tuple[Ints, Ints, int]:
    """As `_track`, one slice at a time, in the logarithm of how many are open for each."""
    start, end = starts.tolist(), ends.tolist()
    levels: list[int] = []
    parents: list[int] = []
    free = _FreeLevels()
    open_ends: list[tuple[int, int]] = []
    """Heap of what has begun and not ended: end and level."""
    holding: list[int] = []
    """Of these, rows that no later one outlasts: ends fall, so the last that holds a slice
    is the last that is left once all that end before it are dropped."""
    overlapping = 0
    for row, (begin, stop) in enumerate(zip(start, end, strict=True)):
        while open_ends and open_ends[0][0] <= begin:
            free.give(heapq.heappop(open_ends)[1])
        while holding and (end[holding[-1]] < stop or end[holding[-1]] <= begin):
            holding.pop()
        overlapping += bool(open_ends) and open_ends[0][0] < stop
        parent = holding[-1] if holding else -1
        level = free.take(levels[parent] + 1 if parent >= 0 else 0)
        heapq.heappush(open_ends, (stop, level))
        holding.append(row)
        levels.append(level)
        parents.append(parent)
    return np.array(levels), np.array(parents), overlapping


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
