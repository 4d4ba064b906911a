"""Nesting of slices: a tree of some of them, sums along it, the innermost at a time."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, picked, sums

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.trace.trace import Slices, Trace


class SliceTree:
    """The kept slices of a trace, each below the nearest kept one around it."""

    def __init__(self, slices: Slices, kept: Flags) -> None:
        """`kept`: (slices,). Those that are not kept have a place, and nothing below."""
        self.kept = kept
        self._levels = slices.by_level
        self.parent = self._nearest(slices)
        """(slices,): the nearest kept slice around each, or NOTHING."""

    def _nearest(self, slices: Slices) -> Ints:
        nearest = np.full(len(slices), NOTHING, dtype=np.int64)
        for rows in self._levels:
            parents = slices.parent[rows].astype(np.int64)
            inner = parents != NOTHING
            rows, parents = rows[inner], parents[inner]  # noqa: PLW2901
            nearest[rows] = np.where(self.kept[parents], parents, nearest[parents])
        return nearest

    def around(self, rows: Ints) -> Ints:
        """The nearest kept slice that holds each of some rows, itself included."""
        own = picked(self.kept, rows, False)
        return np.where(own, rows, picked(self.parent, rows))

    def inner_sums(self, values: Ints) -> Ints:
        """By slice, the sum of the values of the kept ones directly below it."""
        rows = np.flatnonzero(self.kept & (self.parent != NOTHING))
        return sums(self.parent[rows], values[rows], len(self.kept))

    def total_sums(self, values: Ints) -> Ints:
        """By slice, its own value and those of all kept ones below it."""
        totals = np.where(self.kept, values, 0).astype(np.int64)
        for rows in reversed(self._levels):
            inner = rows[self.kept[rows] & (self.parent[rows] != NOTHING)]
            np.add.at(totals, self.parent[inner], totals[inner])
        return totals


def innermost(trace: Trace, track: Ints, time_ns: Ints) -> Ints:
    """The deepest slice around each time on its track, or NOTHING.

    A slice holds its start and not its end.
    """
    rows = np.full(len(time_ns), NOTHING, dtype=np.int64)
    for index in np.unique(track).tolist():
        chosen = np.flatnonzero(track == index)
        rows[chosen] = _on_track(trace, index, time_ns[chosen])
    return rows


def _on_track(trace: Trace, track: int, time_ns: Ints) -> Ints:
    slices, rows = trace.slices, trace.tracks[track].level_rows
    rows_found = np.full(len(time_ns), NOTHING, dtype=np.int64)
    for first, stop in pairwise(rows):
        starts = slices.start_ns[first:stop]
        index = np.searchsorted(starts, time_ns, "right") - 1
        row = first + np.maximum(index, 0)
        inside = (index >= 0) & (time_ns < slices.ends(row))
        rows_found[inside] = row[inside]
    return rows_found
