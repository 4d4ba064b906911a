"""Which ranks stand out.

A rank is an outlier where its peak lies more than `DEVIATIONS` robust standard
deviations (1.4826 times the median absolute deviation) above the median rank, and at
least `FLOOR` of the median above it. The floor keeps runs quiet whose ranks agree to
within a fraction of a percent: there the deviation is nearly nothing, and every
harmless difference would count as many of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]

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
    median = float(np.median(present))
    deviation = 1.4826 * float(np.median(np.abs(present - median)))
    limit = median + max(DEVIATIONS * deviation, FLOOR * abs(median))
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
