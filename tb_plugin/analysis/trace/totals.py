"""Sums over slices of a trace: by name over a range of time, and what a text is found in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tb_plugin.analysis.series.distinct import grouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from tb_plugin.analysis.trace.trace import Trace

    Ints: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """Sums by name and category; columns of equal length, longest in all first."""

    name: Ints
    """Row of `Trace.strings`; likewise category."""
    category: Ints
    count: Ints
    """Slices that touch the range."""
    total_ns: Ints
    """Of their times what lies in the range."""
    self_ns: Ints
    """The same without what lies in slices inside them."""
    max_ns: Ints
    """The whole duration of the longest."""
    longest: Ints
    """Its row."""


def totals(trace: Trace, tracks: Iterable[int], start_ns: int, end_ns: int) -> Totals:
    """Sums over the slices of some tracks that touch a range of time."""
    rows = _rows(trace, tracks, start_ns, end_ns)
    slices = trace.slices
    start = slices.start_ns[rows].astype(np.int64)
    length = slices.duration_ns[rows].astype(np.int64)
    # What only meets the range at an end is not in it, unless it takes no time.
    meets = (start < end_ns) & ((start + length > start_ns) | (length == 0))
    rows, start, length = rows[meets], start[meets], length[meets]
    inside = np.minimum(start + length, end_ns) - np.maximum(start, start_ns)
    inside = np.maximum(inside, 0)
    own = inside - _of_children(rows, slices.parent[rows], inside)
    keys, group = _grouped(trace, rows)
    num = len(keys)
    longest = np.zeros(num, np.int64)
    np.maximum.at(longest, group, length)
    is_longest = np.flatnonzero(length == longest[group])[::-1]
    row = np.zeros(num, np.int64)
    row[group[is_longest]] = rows[is_longest]
    total = _summed(group, inside, num)
    self_ns = _summed(group, np.maximum(own, 0), num)
    order = np.argsort(-total, kind="stable")
    return Totals(
        (keys >> 32)[order],
        (keys & 0xFFFFFFFF)[order],
        np.bincount(group, minlength=num)[order],
        total[order],
        self_ns[order],
        longest[order],
        row[order],
    )


def _of_children(rows: Ints, parent: Ints, inside: Ints) -> Ints:
    """By row: the times of the rows directly in it; rows ascend."""
    if not len(rows):
        return inside
    first = int(rows[0])
    place = np.full(int(rows[-1]) - first + 1, -1, np.int64)
    place[rows - first] = np.arange(len(rows))
    among = (parent >= first) & (parent <= rows[-1])
    at = np.where(among, place[np.where(among, parent - first, 0)], -1)
    held = at >= 0
    return _summed(at[held], inside[held], len(rows))


def _grouped(trace: Trace, rows: Ints) -> tuple[Ints, Ints]:
    """Distinct pairs, name * 2^32 + category, and by row which of them."""
    num_texts = len(trace.strings)
    kinds, kind = grouped(trace.slices.category[rows], num_texts)
    num_kinds = max(1, len(kinds))
    names = trace.slices.name[rows].astype(np.int64)
    known, place = grouped(names * num_kinds + kind, num_texts * num_kinds)
    keys = (known // num_kinds) << 32
    if len(known):
        keys |= kinds[known % num_kinds]
    return keys, place


def _summed(group: Ints, values: Ints, num: int) -> Ints:
    """Sums by group: exact up to 104 days of nanoseconds."""
    return np.bincount(group, values, num).astype(np.int64)


def found_slices(
    trace: Trace, tracks: Sequence[int], wanted: Ints, most: int
) -> tuple[Ints, int]:
    """Slices of some tracks by their names, in order of time, and how many there are.

    `wanted`: by string, of `matching`.
    """
    found = []
    for track in tracks:
        one = trace.tracks[track]
        names = trace.slices.name[one.first_row : one.first_row + one.num_slices]
        found.append(np.flatnonzero(wanted[names]) + one.first_row)
    rows = np.concatenate(found) if found else np.empty(0, np.int64)
    order = np.argsort(trace.slices.start_ns[rows], kind="stable")[:most]
    return rows[order], len(rows)


def matching(strings: Sequence[str], text: str) -> Ints:
    """By string: whether it holds a text, whatever the case."""
    folded = text.casefold()
    return np.fromiter(
        (folded in one.casefold() for one in strings), np.bool_, len(strings)
    )


def _rows(trace: Trace, tracks: Iterable[int], start_ns: int, end_ns: int) -> Ints:
    """Rows of the slices that touch a range, ascending."""
    found = []
    for track in sorted(set(tracks)):
        for level in range(trace.tracks[track].num_levels):
            first, stop = trace.rows_of_level(track, level, start_ns, end_ns)
            found.append(np.arange(first, stop))
    return np.concatenate(found) if found else np.empty(0, np.int64)
