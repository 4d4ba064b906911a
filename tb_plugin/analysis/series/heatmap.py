"""Ranks by steps as a picture: each cell is the highest value inside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Floats


MOST: Final = 65535
"""Cells are 1..65535 on a linear scale; 0 is nothing recorded."""

MAX_CELLS: Final = 140_000
"""Of two bytes each: an answer stays below 300 KB."""
_LEAST_ROWS: Final = 64
_LEAST_COLUMNS: Final = 400


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Quantized cells and their scale."""

    values: npt.NDArray[np.uint16]
    low: float
    high: float


def size_of(num_ranks: int, px: int, rows: int) -> tuple[int, int]:
    """Rows and columns at most of a picture of `rows` by `px`, so that it stays small.

    Ranks are kept apart first: which rank it was is what is looked for.
    """
    rows = max(1, min(num_ranks, rows))
    columns = min(px, MAX_CELLS // rows)
    least = min(px, MAX_CELLS // _LEAST_ROWS, _LEAST_COLUMNS)
    if columns < least:
        rows, columns = max(1, MAX_CELLS // least), least
    return rows, max(1, columns)


def step_edges(low: float, high: float, px: int) -> tuple[Floats, int]:
    """Edges of at most `px` columns over the steps `low..high`, and steps per column.

    Columns hold whole steps, so that a step never lies in two of them.
    """
    num_steps = max(1, int(high) - int(low) + 1)
    per_column = -(-num_steps // max(1, px))
    num_columns = -(-num_steps // per_column)
    edges = float(int(low)) + per_column * np.arange(num_columns + 1, dtype=np.float64)
    return edges, per_column


def pooled_ranks(matrix: Floats, ranks_per_row: int) -> Floats:
    """Highest of each group of neighbouring ranks (rows of the matrix)."""
    if ranks_per_row <= 1 or len(matrix) == 0:
        return matrix
    starts = np.arange(0, len(matrix), ranks_per_row)
    return np.fmax.reduceat(matrix, starts, axis=0)


def farthest_ranks(values: Floats, ranks_per_row: int) -> Floats:
    """Of neighbouring ranks the value that is farthest from the column's middle.

    (ranks, columns) to (rows, columns). Who comes last waits least: the longest of some
    ranks would hide the one that is looked for.
    """
    if ranks_per_row <= 1 or not values.size:
        return values
    num_rows = -(-len(values) // ranks_per_row)
    missing = num_rows * ranks_per_row - len(values)
    padded = np.pad(values, ((0, missing), (0, 0)), constant_values=np.nan)
    blocks = padded.reshape(num_rows, ranks_per_row, -1)
    distance = np.abs(blocks - _middle(values))
    place = np.where(np.isnan(distance), -1.0, distance).argmax(axis=1, keepdims=True)
    farthest: Floats = np.take_along_axis(blocks, place, axis=1)[:, 0]
    return farthest


def beyond_median(values: Floats) -> Floats:
    """How far each rank is above or below the median of its column."""
    return values - _middle(values)


def rows_among(values: Floats, ranks: Sequence[int], wanted: Sequence[int]) -> Floats:
    """The rows of some ranks; `ranks`: that of each row."""
    chosen: Floats = values[np.isin(ranks, wanted)]
    return chosen


def _middle(values: Floats) -> Floats:
    """The median of each column; 0 where nothing is known."""
    middle = np.zeros(values.shape[1])
    some = (~np.isnan(values)).any(axis=0)
    middle[some] = np.nanmedian(values[:, some], axis=0)
    return middle


def quantized(matrix: Floats) -> Cells:
    """Cells as 16-bit numbers; the error is at most one part in 131,068 of the range."""
    absent = np.isnan(matrix)
    if absent.all():
        return Cells(np.zeros(matrix.shape, np.uint16), 0.0, 0.0)
    low, high = float(np.nanmin(matrix)), float(np.nanmax(matrix))
    share = np.where(absent, low, matrix) - low
    if high > low:
        share /= high - low
    codes = np.rint(share * (MOST - 1)) + 1
    codes[absent] = 0
    return Cells(codes.astype(np.uint16), low, high)
