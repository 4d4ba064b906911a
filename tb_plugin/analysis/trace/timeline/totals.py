"""Sums over slices of a trace: by name over a range of time, and what a text is found in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.arrays import (
    NOTHING,
    Table,
    highest,
    numbered,
    picked,
    place_of,
    sums,
)
from memboard.tb_plugin.analysis.trace.timeline.instants import rows_of_track
from memboard.tb_plugin.analysis.trace.trace import Instants

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memboard.tb_plugin.analysis.arrays import Flags, Floats, Ints
    from memboard.tb_plugin.analysis.trace.trace import Slices, Trace


@dataclass(frozen=True, slots=True, eq=False)
class SliceSums(Table):
    """Sums over slices that are alike; columns of equal length, longest in all first."""

    count: Ints
    """Slices that touch the range."""
    total_ns: Ints
    """Of their times what lies in the range."""
    self_ns: Ints
    """The same without what lies in slices inside them."""
    max_ns: Ints
    """The whole duration of the longest."""
    longest: Ints
    """Row of the longest slice, in its source."""


@dataclass(frozen=True, slots=True, eq=False)
class Totals(SliceSums):
    """Of one source, by name and category."""

    name: Ints
    """Row of `Trace.strings`; likewise category."""
    category: Ints
    track: Ints
    """Where the longest slice is: without `by_track` others may be elsewhere."""


def totals(
    trace: Trace,
    tracks: Iterable[int],
    start_ns: int,
    end_ns: int,
    *,
    by_track: bool = False,
) -> Totals:
    """Sums over the slices of some tracks that touch a range of time; `by_track`: of each."""
    rows = _rows(trace, tracks, start_ns, end_ns)
    slices = trace.slices
    start = slices.starts(rows)
    length = slices.duration_ns[rows].astype(np.int64)
    # What only meets the range at an end is not in it, unless it takes no time.
    meets = (start < end_ns) & ((start + length > start_ns) | (length == 0))
    rows, start, length = rows[meets], start[meets], length[meets]
    inside = np.minimum(start + length, end_ns) - np.maximum(start, start_ns)
    inside = np.maximum(inside, 0)
    own = inside - _of_children(rows, slices.parent[rows], inside)
    alike = [slices.name[rows], slices.category[rows]]
    if by_track:
        alike.append(slices.track[rows])
    first, group = numbered(*alike)
    num = len(first)
    longest = highest(group, length, num)
    is_longest = np.flatnonzero(length == longest[group])[::-1]
    row = np.zeros(num, np.int64)
    row[group[is_longest]] = rows[is_longest]
    total = sums(group, inside, num)
    table = Totals(
        name=slices.name[rows[first]].astype(np.int64),
        category=slices.category[rows[first]].astype(np.int64),
        track=slices.track[row].astype(np.int64),
        count=np.bincount(group, minlength=num),
        total_ns=total,
        self_ns=sums(group, np.maximum(own, 0), num),
        max_ns=longest,
        longest=row,
    )
    return table.take(np.argsort(-total, kind="stable"))


@dataclass(frozen=True, slots=True, eq=False)
class RangeRows(SliceSums):
    """Of several sources, by name and category, or also by track."""

    source: Ints
    """That of the longest, in the order of `RangeSums.add`; likewise its track."""
    track: Ints
    name: Sequence[str]
    category: Sequence[str]

    @property
    def mean_ns(self) -> Floats:
        mean: Floats = self.total_ns / np.maximum(self.count, 1)
        return mean


class RangeSums:
    """Sums of one range of time over several sources.

    Equal names are one row, or with `by_track` one of each track.
    """

    def __init__(self, *, by_track: bool = False) -> None:
        self._by_track = by_track
        self._rows: dict[tuple[str, str, tuple[int, ...]], list[int]] = {}
        """count, total_ns, self_ns, max_ns, longest, source, track."""
        self._num_sources = 0
        self.num_slices = 0

    @property
    def num_rows(self) -> int:
        return len(self._rows)

    @property
    def num_names(self) -> int:
        """Names that differ by category alone are two."""
        return len({key[:2] for key in self._rows})

    def add(
        self, trace: Trace, tracks: Iterable[int], start_ns: int, end_ns: int
    ) -> None:
        """Add tracks of the next source; the range is in its own time."""
        parent_place = totals(trace, tracks, start_ns, end_ns, by_track=self._by_track)
        self.num_slices += int(parent_place.count.sum())
        columns = (
            parent_place.name,
            parent_place.category,
            parent_place.count,
            parent_place.total_ns,
            parent_place.self_ns,
            parent_place.max_ns,
            parent_place.longest,
            parent_place.track,
        )
        values = (column.tolist() for column in columns)
        for name, category, *own, most, longest, track in zip(*values, strict=True):
            place = (self._num_sources, track) if self._by_track else ()
            key = (trace.strings[name], trace.strings[category], place)
            row = self._rows.setdefault(key, [0, 0, 0, -1, 0, 0, 0])
            row[:3] = [a + b for a, b in zip(row[:3], own, strict=True)]
            if most > row[3]:
                row[3:] = [most, longest, self._num_sources, track]
        self._num_sources += 1

    def rows(self, most: int) -> RangeRows:
        ordered = sorted(self._rows.items(), key=lambda item: -item[1][1])[:most]
        columns = np.array([row for _, row in ordered], np.int64).reshape(-1, 7).T
        count, total_ns, self_ns, max_ns, longest, source, track = columns
        return RangeRows(
            count=count,
            total_ns=total_ns,
            self_ns=self_ns,
            max_ns=max_ns,
            longest=longest,
            source=source,
            track=track,
            name=[name for (name, _, _), _ in ordered],
            category=[category for (_, category, _), _ in ordered],
        )


def _of_children(rows: Ints, parent: Ints, inside: Ints) -> Ints:
    """By row: the times of the rows directly in it; rows ascend."""
    if not len(rows):
        return inside
    first = int(rows[0])
    place = place_of(rows - first, int(rows[-1]) - first + 1)
    has_parent = picked(place, np.where(parent <= rows[-1], parent - first, NOTHING))
    row_ranges = has_parent >= 0
    return sums(has_parent[row_ranges], inside[row_ranges], len(rows))


def found_rows(
    table: Slices | Instants, tracks: Sequence[int], wanted: Flags | None, most: int
) -> tuple[Ints, int]:
    """Rows of some tracks by their names, in order of time, and how many there are.

    `wanted`: by string, of `matching`; None: all are.
    """
    time_ns = table.time_ns if isinstance(table, Instants) else table.start_ns
    row_ranges = [np.empty(0, np.int64)]
    for track in tracks:
        first, stop = rows_of_track(table, track)
        chosen = slice(None) if wanted is None else wanted[table.name[first:stop]]
        row_ranges.append(np.arange(first, stop)[chosen])
    rows = np.concatenate(row_ranges)
    return rows[np.argsort(time_ns[rows], kind="stable")[:most]], len(rows)


def matching(strings: Sequence[str], text: str) -> Flags:
    """By string: whether it holds a text, whatever the case."""
    folded = text.casefold()
    return np.fromiter(
        (folded in row_ranges.casefold() for row_ranges in strings),
        np.bool_,
        len(strings),
    )


def _rows(trace: Trace, tracks: Iterable[int], start_ns: int, end_ns: int) -> Ints:
    """Rows of the slices that touch a range, ascending."""
    row_ranges = []
    for track in sorted(set(tracks)):
        for level in range(trace.tracks[track].num_levels):
            first, stop = trace.rows_of_level(track, level, start_ns, end_ns)
            row_ranges.append(np.arange(first, stop))
    return np.concatenate(row_ranges) if row_ranges else np.empty(0, np.int64)
