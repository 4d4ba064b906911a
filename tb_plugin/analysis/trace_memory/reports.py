"""Memory by category through a trace, as columns as wide as pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints: TypeAlias = npt.NDArray[Any]
    Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MemoryColumns:
    """Column c covers x0 + c * width and what follows."""

    x0: float
    width: float
    held: Floats
    """(columns, categories): at the moment of the highest total in each column."""
    peak_x: Floats
    """(columns,) where that moment lies."""


def memory_columns(
    x: Floats, held: Ints, x0: float, x1: float, num: int
) -> MemoryColumns:
    """The highest of each column, so that no peak vanishes.

    Args:
        x: (moments,) ascending.
        held: (moments, categories) bytes, each until the next moment.
        x0: start of the window.
        x1: its end, behind x0.
        num: columns, at least 1.

    Returns:
        NaN in columns before the first moment.
    """
    width = (x1 - x0) / num
    total = held.sum(axis=1)
    begins = x0 + width * np.arange(num)
    # What holds where a column begins, unless something higher comes inside it.
    row = np.searchsorted(x, begins, "right") - 1
    at = begins.copy()
    first, stop = np.searchsorted(x, (x0, x1)).tolist()
    column = np.clip(((x[first:stop] - x0) // width).astype(np.int64), 0, num - 1)
    # The highest of each column last; of equal ones the earliest.
    order = np.lexsort((-np.arange(len(column)), total[first:stop], column))
    last = np.flatnonzero(np.diff(column[order], append=num))
    inside, where = order[last] + first, column[order[last]]
    is_higher = (row[where] < 0) | (total[inside] > total[row[where]])
    row[where[is_higher]] = inside[is_higher]
    at[where[is_higher]] = x[inside[is_higher]]
    known = np.where(row[:, None] >= 0, held[np.maximum(row, 0)], np.nan)
    return MemoryColumns(x0, width, known, at)
