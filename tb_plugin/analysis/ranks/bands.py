"""The spread over ranks at each x, where there are too many ranks for lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """One value per column of the matrix; NaN where no rank recorded anything."""

    low: Floats
    p5: Floats
    median: Floats
    p95: Floats
    high: Floats
    high_row: npt.NDArray[np.intp]
    """Row of the highest value (the first where several are)."""


def spread(matrix: Floats) -> Bands:
    """Spread over the rows of a matrix of ranks by columns, NaN where absent."""
    counts = np.count_nonzero(~np.isnan(matrix), axis=0)
    # Sorting puts NaN last, so each column's values are its first `counts` entries.
    ordered = np.sort(np.ascontiguousarray(matrix.T), axis=1)
    filled = np.where(np.isnan(matrix), -np.inf, matrix)
    return Bands(
        low=_quantile(ordered, counts, 0.0),
        p5=_quantile(ordered, counts, 0.05),
        median=_quantile(ordered, counts, 0.5),
        p95=_quantile(ordered, counts, 0.95),
        high=_quantile(ordered, counts, 1.0),
        high_row=np.argmax(filled, axis=0),
    )


def _quantile(ordered: Floats, counts: npt.NDArray[np.intp], fraction: float) -> Floats:
    """Linear interpolation between neighbours, as numpy's default."""
    position = np.maximum(counts - 1, 0) * fraction
    below = np.floor(position).astype(np.intp)
    above = np.minimum(below + 1, np.maximum(counts - 1, 0))
    row = np.arange(len(ordered))
    low, high = ordered[row, below], ordered[row, above]
    value: Floats = low + (high - low) * (position - below)
    return value
