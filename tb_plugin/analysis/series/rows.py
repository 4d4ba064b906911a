"""Rows of one rank on one x axis, and the rule for steps that were run twice.

A `Rows` holds rows, or buckets of consecutive rows, as parallel columns. On the step
axis the latest wins: a row is kept only where every later row, of the same attempt or
of a later one, has a higher step. So a restart from a checkpoint replaces the steps it
runs again, and x ascends. On time axes nothing is repeated and all rows stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Floats

    Axis: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.float64]

NO_STEP: Final = -(2**63)
"""The step of rows written before the first step."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows(Table):
    """Parallel columns, one entry per row or bucket, in the order they were written."""

    first: Axis
    """x of the first row of each bucket."""
    last: Axis
    high: Floats
    """Highest value inside; NaN where nothing was recorded."""
    low: Floats
    width: int
    """Rows in the widest bucket; 1 where these are rows themselves."""

    @property
    def peak(self) -> float | None:
        """The highest value; None where nothing was recorded."""
        return None if np.isnan(self.high).all() else float(np.nanmax(self.high))

    @property
    def is_flat(self) -> bool:
        """Whether its value never changed, at the grain that was kept, or there is none.

        One value alone does not tell.
        """
        num_known = int(np.count_nonzero(~np.isnan(self.high)))
        if num_known < 2:
            return num_known == 0
        return bool(np.nanmin(self.low) == np.nanmax(self.high))

    def row_at(self, x: float) -> int | None:
        """Index of the row or bucket that covers `x`; x must ascend."""
        row = int(np.searchsorted(self.last, x, "left"))
        return row if row < len(self) and self.first[row] <= x else None


def with_value(rows: Rows | None, x: float, value: float) -> Rows:
    """One more value at `x`: the row that covers it rises to it, or it has its own."""
    place: Axis = np.array([x], np.float64)
    if rows is not None and rows.first.dtype == np.int64:
        place = place.astype(np.int64)
    size = np.array([value])
    point = Rows(place, place, size, size, width=1)
    if rows is None:
        return point
    covering = np.flatnonzero((rows.first <= x) & (rows.last >= x))
    if len(covering):
        high = rows.high.copy()
        high[covering[-1]] = np.fmax(high[covering[-1]], value)
        return replace(rows, high=high)
    behind = int(np.searchsorted(rows.last, x))
    parts = [rows.take(slice(behind)), point, rows.take(slice(behind, None))]
    return Rows.joined(parts, width=rows.width)


def concatenated(pieces: Sequence[Rows]) -> Rows:
    """Pieces one after the other; at least one is needed."""
    if len(pieces) == 1:
        return pieces[0]
    return Rows.joined(pieces, width=max(piece.width for piece in pieces))


def on_steps(pieces: Sequence[Rows], *, repeats: bool = False) -> Rows:
    """Attempts of one rank, in order, on the step axis.

    Of a bucket that is run again in part, the part that was not stays, with the
    bucket's extremes: a peak may then stand among steps that were replaced, but it
    never vanishes. With `repeats`, rows that follow each other at the same step all
    stay (timed sources sample several times per step).
    """
    rows = concatenated(pieces)
    ascends = (
        rows.first[1:] >= rows.last[:-1] if repeats else rows.first[1:] > rows.last[:-1]
    )
    if (len(rows) == 0 or rows.first[0] != NO_STEP) and bool(np.all(ascends)):
        return rows
    stepless = rows.first == NO_STEP
    if stepless.any():
        rows = replace(rows, first=np.where(stepless, rows.last, rows.first))
        rows = rows.take(rows.last != NO_STEP)
    if len(rows) == 0:
        return rows
    later = np.empty(len(rows), np.int64)
    later[-1] = np.iinfo(np.int64).max
    later[:-1] = np.minimum.accumulate(rows.first[::-1])[::-1][1:]
    keep = rows.first <= later if repeats else rows.first < later
    last = np.minimum(rows.last, later if repeats else later - 1)
    return replace(rows, last=np.maximum(last, rows.first)).take(keep)


def on_time(pieces: Sequence[Rows]) -> Rows:
    """Attempts of one rank on a time axis: all rows, in order of time."""
    rows = concatenated(pieces)
    if bool(np.all(rows.first[1:] >= rows.first[:-1])):
        return rows
    return rows.take(np.argsort(rows.first, kind="stable"))
