"""How fast memory grows, against noise, spikes and the warm-up.

The first tenth of the rows, and at least five of them, is left out: allocator caches
and optimizer state fill there. The rest is reduced to at most `GROUPS` groups of equal
length by their medians, which removes single spikes, and the slope is Theil and Sen's:
the median of the slopes between all pairs. Up to 29 % of the groups may be wild without
moving it. A sawtooth of any shape without a trend gives a slope near zero.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]

GROUPS: Final = 48
WARMUP_ROWS: Final = 5
WARMUP_FRACTION: Final = 0.1
MIN_ROWS: Final = 8
"""Rows needed behind the warm-up for a slope to mean anything."""
FEW_ROWS: Final = 30
"""Below this many rows behind the warm-up a slope is said to rest on few steps."""

_RANKS_AT_ONCE: Final = 512
"""Pairs of groups times this many ranks is what is held in memory."""


def warmup_rows(num_rows: int) -> int:
    """How many rows at the start are left out."""
    return max(WARMUP_ROWS, int(num_rows * WARMUP_FRACTION))


def slopes(steps: Floats, values: Floats) -> Floats:
    """Growth per step of each row of `values` (ranks by steps).

    `steps` ascends and is common to all ranks. NaN where a rank has too few values.
    """
    start = warmup_rows(len(steps))
    steps, values = steps[start:], values[:, start:]
    if len(steps) < MIN_ROWS:
        return np.full(len(values), np.nan)
    bounds = np.linspace(0, len(steps), min(GROUPS, len(steps)) + 1).astype(np.intp)
    pairs = list(pairwise(bounds))
    x = np.array([np.median(steps[a:b]) for a, b in pairs])
    first, second = np.triu_indices(len(pairs), 1)
    distance = x[second] - x[first]
    usable = distance > 0
    first, second, distance = first[usable], second[usable], distance[usable]
    result = np.empty(len(values))
    for at in range(0, len(values), _RANKS_AT_ONCE):
        part = values[at : at + _RANKS_AT_ONCE]
        y = np.stack([_median(part[:, a:b]) for a, b in pairs], axis=1)
        enough = np.count_nonzero(~np.isnan(y), axis=1) >= MIN_ROWS
        slope = _median((y[:, second] - y[:, first]) / distance)
        result[at : at + _RANKS_AT_ONCE] = np.where(enough, slope, np.nan)
    return result


def _median(values: Floats) -> Floats:
    """Median along the last axis; NaN are left out, all NaN gives NaN."""
    if not np.isnan(values).any():
        return np.median(values, axis=-1)
    ordered = np.sort(values, axis=-1)
    counts = np.count_nonzero(~np.isnan(values), axis=-1)
    row = np.arange(len(values))
    low = ordered[row, np.maximum((counts - 1) // 2, 0)]
    high = ordered[row, np.minimum(counts // 2, values.shape[-1] - 1)]
    return np.where(counts > 0, (low + high) / 2, np.nan)
