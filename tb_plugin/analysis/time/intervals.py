"""Sets of time as ranges: unions, and how several sets lie over each other.

Ranges are an array (n, 2) of starts and ends in whole nanoseconds, in any order and
overlapping as they like; those without a length count for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import distinct, ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Flags, Floats, Ints

    Ranges: TypeAlias = npt.NDArray[np.int64]


def union(ranges: Ranges) -> Ranges:
    """The same set as ascending ranges that neither overlap nor touch."""
    ranges = ranges[ranges[:, 1] > ranges[:, 0]]
    if not len(ranges):
        return np.empty((0, 2), np.int64)
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    reach = np.maximum.accumulate(ranges[:, 1])
    first = np.flatnonzero(np.append(True, ranges[1:, 0] > reach[:-1]))
    last = np.append(first[1:], len(ranges)) - 1
    return np.stack((ranges[first, 0], reach[last]), axis=1)


def total_ns(ranges: Ranges) -> int:
    """The length of the set: what overlaps counts once."""
    whole = union(ranges)
    return int((whole[:, 1] - whole[:, 0]).sum())


def integral(time_ns: Ints, level: Ints, at_ns: Ints) -> Ints:
    """Of levels that hold from each time to the next: the sum before some times.

    The last level is nothing: all that was stacked has ended.
    """
    if not len(time_ns):
        return np.zeros(len(at_ns), level.dtype)
    sums = np.concatenate(([0], np.cumsum(level[:-1] * np.diff(time_ns))))
    clipped_ns = np.clip(at_ns, time_ns[0], time_ns[-1])
    last = np.searchsorted(time_ns, clipped_ns, "right") - 1
    before: Ints = sums[last] + level[last] * (clipped_ns - time_ns[last])
    return before


def covered_ns(whole: Ranges, at_ns: Ints) -> Ints:
    """How long a union is before some times."""
    return integral(whole.ravel(), np.tile((1, 0), len(whole)), at_ns)


def step_means(time_ns: Ints, value: Floats, edges_ns: Ints) -> Floats:
    """The mean of each piece of time, by what of it lies behind the first point.

    Args:
        time_ns: (points,) ascending.
        value: (points,) from its time to the next; the last one holds on.
        edges_ns: (pieces + 1,) ascending.

    Returns:
        (pieces,); NaN where a piece ends before the first point.
    """
    if not len(time_ns):
        return np.full(max(len(edges_ns) - 1, 0), np.nan)
    inside_ns = np.maximum(edges_ns, time_ns[0])
    end = max(int(inside_ns[-1]), int(time_ns[-1]))
    integrals = integral(np.append(time_ns, end), np.append(value, 0.0), inside_ns)
    return ratio(np.diff(integrals), np.diff(inside_ns))


class Overlay:
    """Several sets over each other: pieces of time, and which sets cover each."""

    def __init__(self, sets: Sequence[Ranges]) -> None:
        unions = [union(ranges) for ranges in sets]
        points = [whole.ravel() for whole in unions]
        edges = distinct(np.concatenate([*points, np.empty(0, np.int64)]))
        self.start_ns = edges[:-1]
        self.length_ns = np.diff(edges)
        self.covers: tuple[Flags, ...] = tuple(
            _covered(edges, whole) for whole in unions
        )
        """By set: whether it covers each piece."""

    def first(self) -> Ints:
        """By piece, the first set that covers it; the number of sets where none does."""
        first_range = np.full(len(self.start_ns), len(self.covers), dtype=np.int64)
        for index in range(len(self.covers) - 1, -1, -1):
            first_range[self.covers[index]] = index
        return first_range

    def overlap_ns(self, *sets: int) -> int:
        """How long all of these lie over each other."""
        if not sets:
            return 0
        together = np.logical_and.reduce([self.covers[index] for index in sets])
        return int(self.length_ns[together].sum())


def _covered(edges: Ints, whole: Ranges) -> Flags:
    changes = np.zeros(len(edges), dtype=np.int8)
    # Ranges of a union do not touch, so no edge is both an end and a start.
    changes[np.searchsorted(edges, whole[:, 0])] = 1
    changes[np.searchsorted(edges, whole[:, 1])] = -1
    return np.cumsum(changes, dtype=np.int8)[:-1] > 0
