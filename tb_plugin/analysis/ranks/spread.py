"""The spread over ranks at each x, and the ranks that stand out.

A rank is an outlier where its peak lies more than `DEVIATIONS` robust standard
deviations (1.4826 times the median absolute deviation) above the median rank, and at
least `FLOOR` of the median above it. The floor keeps runs quiet whose ranks agree to
within a fraction of a percent: there the deviation is nearly nothing, and every
harmless difference would count as many of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import median, robust_deviation
from memboard.tb_plugin.api.timeline import RankBand

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Floats


def spread(matrix: Floats, ranks: Sequence[int], x: Floats) -> RankBand:
    """Spread over the rows of a matrix of ranks by columns of x, NaN where absent.

    Columns in which no rank recorded anything are left out; of several that are highest
    the first rank is named.
    """
    is_recorded = ~np.isnan(matrix)
    num_ranks = int(np.count_nonzero(is_recorded.any(axis=1)))
    has_any = is_recorded.any(axis=0)
    matrix = matrix[:, has_any]
    counts = np.count_nonzero(~np.isnan(matrix), axis=0)
    # Sorting puts NaN last, so each column's values are its first `counts` entries.
    ordered = np.sort(np.ascontiguousarray(matrix.T), axis=1)
    filled = np.where(np.isnan(matrix), -np.inf, matrix)
    return RankBand(
        num_ranks=num_ranks,
        x=x[has_any],
        low=_quantile(ordered, counts, 0.0),
        p5=_quantile(ordered, counts, 0.05),
        median=_quantile(ordered, counts, 0.5),
        p95=_quantile(ordered, counts, 0.95),
        high=_quantile(ordered, counts, 1.0),
        high_rank=np.asarray(ranks)[np.argmax(filled, axis=0)],
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


DEVIATIONS: Final = 5.0
FLOOR: Final = 0.05
MAX_OUTLIERS: Final = 16
_MIN_RANKS: Final = 4
"""Among fewer there is no majority to differ from."""


def outliers(peaks: Floats) -> tuple[int, ...]:
    """Indices of the ranks far above the others, worst first."""
    present = peaks[~np.isnan(peaks)]
    if len(present) < _MIN_RANKS:
        return ()
    middle = median(present)
    deviation = robust_deviation(present, middle)
    limit = middle + max(DEVIATIONS * deviation, FLOOR * abs(middle))
    # Nothing recorded is not above anything.
    above = np.flatnonzero(np.nan_to_num(peaks, nan=-np.inf) > limit)
    worst = above[np.argsort(-peaks[above], kind="stable")]
    return tuple(int(index) for index in worst[:MAX_OUTLIERS])


def extremes(peaks: Floats, num_high: int, num_low: int) -> tuple[list[int], list[int]]:
    """Indices of the highest and the lowest ranks; no rank is both."""
    order = np.argsort(peaks, kind="stable")
    order = order[: np.count_nonzero(~np.isnan(peaks))]
    high = [int(index) for index in order[::-1][:num_high]]
    low = [int(index) for index in order[:num_low] if int(index) not in high]
    return high, low
