"""Live allocations as a picture: which lies where in each pixel column.

No polygon per allocation: a column of pixels stands for the one event inside it at
which the total is highest, so no peak is ever lost, and what lived at that event is
stacked in it. Neighbouring columns in which an allocation lies at the same height make
one run. What is thinner than a fraction of a pixel is summed up per group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.lifetimes import Lifetimes

    Ints: TypeAlias = npt.NDArray[np.int64]

MAX_PAIRS: Final = 8_000_000
"""Allocations times columns that are laid out; beyond it the thinnest are summed up."""

_THIN_FACTOR: Final = 2


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that hold events, from left to right."""

    at: Ints
    """The event each stands for: the first of the highest in it."""
    start: Ints
    """Its first event; the next one's start, or the range's end, is its end."""


@dataclass(frozen=True, slots=True)
class Stacking:
    """Runs of one allocation at one height over columns `first` to `last`, inclusive."""

    life: Ints
    """Row of `Lifetimes`."""
    first: Ints
    last: Ints
    offset: Ints
    """Bytes below it."""
    rest: Ints
    """(groups, columns): bytes of what was summed up, on top of its group."""
    total: Ints
    """(columns,): bytes of all."""
    min_bytes: int
    """What is smaller is in `rest`."""


def columns(after: Ints, start: int, stop: int, num_columns: int) -> Columns:
    """At most `num_columns` equally wide columns over the events `start` to `stop`."""
    stop, start = min(stop, len(after)), max(start, 0)
    if stop <= start:
        empty = np.empty(0, np.int64)
        return Columns(empty, empty)
    edges = np.linspace(start, stop, min(num_columns, stop - start) + 1).astype(
        np.int64
    )
    starts = edges[:-1]
    levels = after[start:stop]
    highest = np.maximum.reduceat(levels, starts - start)
    widths = np.diff(edges)
    is_highest = levels == np.repeat(highest, widths)
    index = np.where(is_highest, np.arange(start, stop), stop)
    return Columns(np.minimum.reduceat(index, starts - start), starts)


def stacked(
    lives: Lifetimes,
    group: Ints,
    num_groups: int,
    at: Ints,
    min_bytes: int,
) -> Stacking:
    """Stack what lives at the events `at`, ascending: group by group, in order of birth.

    `group` says to which of `num_groups` each allocation belongs; group 0 lies lowest.
    """
    first = np.searchsorted(at, lives.born, "left")
    end = np.searchsorted(at, lives.gone, "left")
    seen = end > first
    while True:
        drawn = seen & (lives.size >= min_bytes)
        if int((end - first)[drawn].sum()) <= MAX_PAIRS:
            break
        min_bytes = max(1, min_bytes) * _THIN_FACTOR
    rest = _summed(lives, group, num_groups, first, end, seen & ~drawn, len(at))
    rows = np.flatnonzero(drawn)
    rows = rows[np.argsort(group[rows], kind="stable")]
    counts = end[rows] - first[rows]
    life = np.repeat(rows, counts)
    column = _spread(first[rows], counts)
    # Within a column by group, then by birth: a stable sort of what is in that order.
    order = np.argsort(column.astype(np.int32), kind="stable")
    sizes = lives.size[life[order]]
    below = np.cumsum(sizes) - sizes
    in_column = column[order]
    begins = np.searchsorted(in_column, np.arange(len(at)))
    below -= np.append(below, 0)[begins][in_column] if len(below) else 0
    # On top of each group lies its rest: what follows is lifted by it.
    lifted = np.cumsum(rest, axis=0) - rest
    offset = np.empty(len(life), np.int64)
    offset[order] = below + lifted[group[life[order]], in_column]
    return _runs(life, column, offset, rest, lives, min_bytes)


def _summed(
    lives: Lifetimes,
    group: Ints,
    num_groups: int,
    first: Ints,
    end: Ints,
    thin: npt.NDArray[np.bool_],
    num_columns: int,
) -> Ints:
    """Bytes of thin allocations by group and column."""
    change = np.zeros((num_groups, num_columns + 1), np.int64)
    np.add.at(change, (group[thin], first[thin]), lives.size[thin])
    np.subtract.at(change, (group[thin], end[thin]), lives.size[thin])
    return np.cumsum(change, axis=1)[:, :-1]


def _spread(first: Ints, counts: Ints) -> Ints:
    """first, first + 1, ... of each, `counts` long, one after the other."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return (
        np.arange(total) - np.repeat(ends - counts, counts) + np.repeat(first, counts)
    )


def _runs(
    life: Ints,
    column: Ints,
    offset: Ints,
    rest: Ints,
    lives: Lifetimes,
    min_bytes: int,
) -> Stacking:
    goes_on = (np.diff(life) == 0) & (np.diff(offset) == 0)
    begins = np.flatnonzero(np.concatenate([[True], ~goes_on])[: len(life)])
    ends = np.append(begins[1:], len(life))[: len(begins)] - 1
    total = rest.sum(axis=0)
    np.add.at(total, column, lives.size[life])
    return Stacking(
        life=life[begins],
        first=column[begins],
        last=column[ends],
        offset=offset[begins],
        rest=rest,
        total=total,
        min_bytes=min_bytes,
    )
