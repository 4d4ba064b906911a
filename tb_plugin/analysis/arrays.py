"""Columns of numbers, tables of them, and what all analyses do with both.

Tables are dataclasses whose fields are columns of equal length. A row of another table is
given by its index, and `NOTHING` where there is none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

Ints: TypeAlias = npt.NDArray[Any]
"""Whole numbers of any width."""
Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Indices: TypeAlias = npt.NDArray[np.intp]

NOTHING: Final = -1
"""In columns of rows and of numbers that cannot be negative: there is none."""

_MAX_SPREAD: Final = 1 << 22
"""Numbers so near to each other have a mark each; others are sorted."""
_FEW: Final = 64
_TURN: Final = 1 << 16


def median(values: Sequence[float] | Ints) -> float:
    """Of some thousand numbers at most; NaN of none, and where one is NaN.

    numpy's own takes several times as long for these, and 25 ms at its first call.
    """
    ordered = np.sort(values)
    if not len(ordered):
        return float("nan")
    middle, last = len(ordered) // 2, float(ordered[-1])
    if last != last:  # noqa: PLR0124  # NaN is not itself, and the last of all
        return last
    if len(ordered) % 2:
        return float(ordered[middle])
    return (float(ordered[middle - 1]) + float(ordered[middle])) / 2


def robust_deviation(values: Floats, middle: float) -> float:
    """Standard deviation of a normal distribution, by the median distance from its middle.

    1.4826 times the median absolute deviation: a few far values do not change it.
    """
    return 1.4826 * median(np.abs(values - middle))


def neighbour_spread(values: Floats) -> float:
    """Noise from step to step: the median difference of neighbours along the last axis.

    Growth hardly moves it. NaN are no neighbours; 0 where there are none.
    """
    distances = np.abs(np.diff(values))
    present = distances[~np.isnan(distances)]
    return float(median(present)) if len(present) else 0.0


class Table:
    """A table of columns; what is no array belongs to all rows."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __len__(self) -> int:
        return len(getattr(self, next(iter(self.__dataclass_fields__))))

    def take(self, rows: Ints | slice, **changed: Any) -> Self:
        """Some of its rows; columns that are given stand as they are.

        Of columns with several numbers a row the last axis is that of the rows.
        """
        columns = {
            field: column[rows] if column.ndim == 1 else column[..., rows]
            for field in self.__dataclass_fields__
            if field not in changed
            and isinstance(column := getattr(self, field), np.ndarray)
        }
        return replace(self, **columns, **changed)

    @classmethod
    def joined(cls, tables: Sequence[Self], **changed: Any) -> Self:
        """One after the other; what is no array, or given, is of all. At least one."""
        columns = {
            field: np.concatenate([getattr(table, field) for table in tables], axis=-1)
            for field in cls.__dataclass_fields__
            if field not in changed
            and isinstance(getattr(tables[0], field), np.ndarray)
        }
        return replace(tables[0], **columns, **changed)


def distinct(values: Ints) -> Ints:
    """Each once, ascending.

    `np.unique` puts them into a hash table (since numpy 2.3), which takes a hundred
    times as long where nearly all are distinct, as times and addresses are.
    """
    ordered = np.sort(values)
    ordered_once: Ints = ordered[begins(ordered)]
    return ordered_once


def grouped(values: Ints) -> tuple[Ints, Ints]:
    """The distinct values, ascending, and which of them each one is.

    As `np.unique` with its inverse, but without sorting millions of rows where few
    values occur, as in columns of streams, pools and names.
    """
    if not len(values):
        return values[:0], np.empty(0, np.int32)
    least, most = int(values.min()), int(values.max())
    if least == most:
        return values[:1], constant(0, len(values))
    if most - least < _MAX_SPREAD:
        place = np.subtract(values, least, dtype=np.int64)
        occurs = np.zeros(most - least + 1, np.bool_)
        occurs[place] = True
        number = (np.cumsum(occurs) - 1).astype(np.int32)
        return np.flatnonzero(occurs) + least, number[place]
    return _few(values) or _many(values)


def _few(values: Ints) -> tuple[Ints, Ints] | None:
    """The same of values that lie far apart; None where there are many."""
    place = np.empty(len(values), np.int32)
    values_found: list[int] = []
    # In pieces that stay near the processor: memory that is used once costs most.
    for start in range(0, len(values), _TURN):
        piece, own = values[start : start + _TURN], place[start : start + _TURN]
        is_placed, row = np.zeros(len(piece), np.bool_), 0
        while not is_placed.all():
            if row == len(values_found):
                if row == _FEW:
                    return None
                values_found.append(int(piece[np.argmin(is_placed)]))
            same = piece == values_found[row]
            own[same] = row
            is_placed |= same
            row += 1
    order = sorted(range(len(values_found)), key=values_found.__getitem__)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    if order != sorted(order):
        for start in range(0, len(place), _TURN):
            place[start : start + _TURN] = rank[place[start : start + _TURN]]
    return np.array([values_found[row] for row in order], np.int64), place


def _many(values: Ints) -> tuple[Ints, Ints]:
    kept, inverse = np.unique(values, return_inverse=True)
    return kept, inverse.astype(np.int32)


def constant(value: int, num: int) -> Ints:
    """A column of one number, which takes no memory; read-only."""
    return np.broadcast_to(np.int32(value), num)


def numbered(*columns: Ints) -> tuple[Ints, Ints]:
    """Rows in which all columns are the same: the first of each, and by row its number.

    Numbers are dense and in the order of the columns' values, the first column's first.
    """
    group: Ints = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        distinct_values, place = grouped(column)
        _, group = grouped(group.astype(np.int64) * len(distinct_values) + place)
    first = np.empty(int(group.max(initial=-1)) + 1, np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]
    return first, group


def sums(group: Ints, values: Ints, num: int) -> Ints:
    """Whole numbers added up by group; exact."""
    added = np.zeros(num, np.int64)
    np.add.at(added, group, values)
    return added


def highest(group: Ints, values: Ints, num: int) -> Ints:
    """The highest value of each group; 0 where it has none, or none above 0."""
    maxima = np.zeros(num, np.int64)
    np.maximum.at(maxima, group, values)
    return maxima


def first_highest(values: Ints, starts: Ints) -> Ints:
    """The place of the first highest value from each start to the next one."""
    first = int(starts[0]) if len(starts) else 0
    inside = values[first:]
    most = np.maximum.reduceat(inside, starts - first) if len(starts) else inside[:0]
    lengths = np.diff(starts, append=len(values))
    places = np.flatnonzero(inside == np.repeat(most, lengths))
    rows: Ints = places[np.searchsorted(places, starts - first)] + first
    return rows


def highest_within(values: Ints, first: Ints, last: Ints) -> Ints:
    """The place of the first highest value from each first place to a last one.

    Stretches ascend: each ends where the next one begins, or just before.
    """
    rows = first_highest(values[: int(last[-1]) + 1], first)
    # An empty stretch shows what it begins with.
    beyond = (rows > last) | (values[last] > values[rows])
    return np.where(beyond, last, rows)


def longest_of(group: Ints, values: Ints, num: int) -> Ints:
    """The place of the first highest value of each group; every group has one."""
    order = np.lexsort((-values, group))
    return order[np.searchsorted(group[order], np.arange(num))]


def largest_groups(
    group: Ints, size: Ints, most: int | None = None
) -> tuple[Ints, Ints, Ints]:
    """Groups by their sums, the largest first, and of each value which it is of.

    Those that are not among the first `most` have no group: their number is beyond.
    """
    distinct_groups, place = grouped(group)
    total = sums(place, size, len(distinct_groups))
    order = np.argsort(-total, kind="stable")
    rank, order = place_of(order, len(order)), order[:most]
    return distinct_groups[order], total[order], rank[place]


def changes(
    first: Ints,
    end: Ints,
    size: Ints,
    width: int,
    row: Ints | int = 0,
    num_rows: int = 1,
) -> Ints:
    """(rows, columns): what comes less what goes.

    Of each value the first column it is in, and the one behind the last: up to `width`.
    """
    deltas = np.zeros(num_rows * (width + 1), np.int64)
    starts = np.asarray(row, np.int64) * (width + 1)  # rows may be of 16 bits
    np.add.at(deltas, starts + first, size)
    np.subtract.at(deltas, starts + end, size)
    return deltas.reshape(num_rows, width + 1)[:, :width]


def begins(values: npt.NDArray[Any]) -> Flags:
    """Which are other than the one before; the first is."""
    differs = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=differs[1:])
    return differs


def within(counts: Ints) -> Ints:
    """0, 1, ... of each, `counts` long, one after the other."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers: Ints = np.arange(total) - np.repeat(ends - counts, counts)
    return numbers


def nth(key: Ints) -> Ints:
    """By row, how many rows before it have its key."""
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(begins(key[order]))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = within(np.diff(starts, append=len(order)))
    return numbers


def places_in(ascending: Ints, wanted: Ints) -> Ints:
    """Where numbers stand first in an ascending column; NOTHING where they do not."""
    if not len(ascending):
        return np.full(len(wanted), NOTHING, np.int64)
    index = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    places: Ints = np.where(ascending[index] == wanted, index, NOTHING)
    return places


def depths(parent: Ints) -> Ints:
    """0 for roots; parents come before children."""
    depth = np.zeros(len(parent), np.int64)
    above = parent
    while (inside := above >= 0).any():
        depth += inside
        above = np.where(inside, parent[above], -1)
    return depth


def with_below(parent: Ints, values: Ints) -> Ints:
    """By row of a tree, its value and those of all rows below it.

    Parents come before their children. Of values with several axes the last is the rows'.
    """
    sums_below: Ints = np.array(values, order="C")
    depth = depths(parent)
    for level in range(int(depth.max(initial=0)), 0, -1):
        rows = np.flatnonzero(depth == level)
        for column in sums_below.reshape(-1, len(parent)):
            np.add.at(column, parent[rows], column[rows])
    return sums_below


def place_of(rows: Ints, num: int) -> Ints:
    """By number below `num`: where it stands in `rows`; NOTHING where it does not."""
    places = np.full(num, NOTHING, np.int64)
    places[rows] = np.arange(len(rows))
    return places


def picked(values: npt.NDArray[Any], rows: Ints, otherwise: float = NOTHING) -> Ints:
    """The values at some rows, and something else where there is none."""
    # No unsigned number says that there is none.
    kind = np.int64 if values.dtype.kind == "u" else values.dtype
    values_picked = np.full(len(rows), otherwise, kind)
    there = rows >= 0
    values_picked[there] = values[rows[there]]
    return values_picked


def ratio(part: Ints, whole: Ints) -> Floats:
    """NaN where there is no whole."""
    quotients: Floats = np.full(len(whole), np.nan)
    np.divide(part, whole, out=quotients, where=whole > 0)
    return quotients
