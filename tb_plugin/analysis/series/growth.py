"""The growth of memory per step, robust to noise, spikes and the warm-up.

The first tenth of the rows, and at least five of them, is left out: allocator caches
and optimizer state fill there. The rest is reduced to at most `GROUPS` groups of equal
length by their medians, which removes single spikes, and the slope is Theil and Sen's:
the median of the slopes between all pairs. Up to 29 % of the groups may be wild without
moving it. A sawtooth of any shape without a trend gives a slope near zero.

One slope over a whole run understates what began late. So the last third of the groups
has a slope of its own, told where it is another than the whole's by `DIFFERS` and by
more than the noise there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.arrays import median

if TYPE_CHECKING:
    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Floats, Indices


GROUPS: Final = 48
WARMUP_ROWS: Final = 5
WARMUP_FRACTION: Final = 0.1
MIN_ROWS: Final = 8
"""Rows needed behind the warm-up for a slope to mean anything."""
FEW_ROWS: Final = 30
"""Below this many rows behind the warm-up a slope is said to rest on few steps."""

DIFFERS: Final = 0.2
"""Of the larger of two slopes."""
STILL: Final = 0.5
"""Of the whole's slope: what the last third's must reach. Below it memory settles, as that of
a process does in its first steps."""
_LATE: Final = 3
"""The last groups, one of so many; at least `MIN_ROWS` of them."""
NOISE: Final = 6.0
"""Times the median deviation from the line."""


@dataclass(frozen=True, slots=True)
class RankGrowth:
    """Memory of one rank that rises steadily, in bytes."""

    rank: int
    slope: float
    """Per step, at the end."""
    rise: float
    num_steps: int
    """In which it rose by so much: those behind the warm-up."""
    last_step: int
    peak: float


class Trend(NamedTuple):
    """Of values by step; NaN where there are too few values."""

    slope: float
    """Per step, behind the warm-up."""
    rise: float
    """What they rose by behind it."""
    late: float
    """Slope of the last third alone; NaN where it is no other."""
    noise: float
    """Median distance of the values from the line."""
    num_steps: int
    """Behind the warm-up, from the first row to the last."""

    @property
    def pace(self) -> float:
        """Per step, at the end."""
        return self.slope if np.isnan(self.late) else self.late

    @property
    def is_steady(self) -> bool:
        """Whether they rise for sure, and still did at the end.

        Where most steps are behind a rise that has ended, the slope is that of the noise.
        """
        goes_on = self.pace > self.slope * STILL
        explains = self.pace * self.num_steps >= STILL * self.rise
        is_seen = self.rise > NOISE * self.noise
        return bool(self.slope > 0 and is_seen and goes_on and explains)


_NAN: Final = float("nan")
_NONE: Final = Trend(_NAN, _NAN, _NAN, _NAN, 0)


def warmup_rows(num_rows: int) -> int:
    """How many rows at the start are left out."""
    return max(WARMUP_ROWS, int(num_rows * WARMUP_FRACTION))


def slope(steps: npt.NDArray[np.int64], values: Floats) -> float:
    """Growth per step of one rank in one attempt; NaN where there are too few values.

    Steps ascend; values are NaN where nothing was recorded.
    """
    return trend(steps, values).slope


def trend(
    steps: npt.NDArray[np.int64], values: Floats, *, least_rise: float = -inf
) -> Trend:
    """Growth per step as `slope` has it, in all, and in the last third.

    Values that rose by no more than `least_rise` have none: most columns of most ranks do
    not rise, which their first and last groups tell.
    """
    start = warmup_rows(len(steps))
    steps, values = steps[start:], values[start:]
    present = ~np.isnan(values)
    if not present.all():
        steps, values = steps[present], values[present]
    if len(steps) < MIN_ROWS:
        return _NONE
    num_groups = min(GROUPS, len(steps))
    per_group = len(steps) // num_groups
    # What does not fill a group is left out at the front, next to the warm-up.
    used = slice(len(steps) - num_groups * per_group, None)
    ends = slice(per_group), slice(-per_group, None)
    first, last = (median(steps[end]) for end in ends)
    begins, ends_at = (median(values[end]) for end in ends)
    # Medians stand for the middles of their groups: the ends lie half a group further out.
    length = float(steps[-1] - steps[0])
    whole = length / (last - first) if last > first else 1.0
    rise = (ends_at - begins) * whole
    if rise <= least_rise:
        return _NONE
    x = _median_of_rows(steps[used].reshape(num_groups, per_group).astype(np.float64))
    y = _median_of_rows(values[used].reshape(num_groups, per_group))
    slope = theil_sen(x, y)
    if np.isnan(slope):
        return _NONE
    num_late = num_groups // _LATE
    late = float("nan")
    if num_late >= MIN_ROWS:
        late = _another(slope, x[-num_late:], y[-num_late:])
    return Trend(slope, rise, late, _noise(slope, x, y), round(length) + 1)


def theil_sen(x: Floats, y: Floats) -> float:
    """The median of the slopes between all pairs; NaN where no two differ in `x`."""
    first, second = _pairs(len(x))
    distance = x[second] - x[first]
    rising = distance > 0
    if not rising.all():
        first, second, distance = first[rising], second[rising], distance[rising]
    if len(first) == 0:
        return float("nan")
    return median((y[second] - y[first]) / distance)


def _another(whole: float, x: Floats, y: Floats) -> float:
    """The slope of these, where it is another than the whole's; else NaN."""
    late = theil_sen(x, y)
    apart = abs(late - whole)
    if not (apart > 0 and apart >= DIFFERS * max(abs(late), abs(whole))):
        return float("nan")
    is_seen = apart * float(x[-1] - x[0]) > NOISE * _noise(late, x, y)
    return late if is_seen else float("nan")


def _noise(slope: float, x: Floats, y: Floats) -> float:
    rest = y - slope * x
    return median(np.abs(rest - median(rest)))


@cache
def _pairs(num_groups: int) -> tuple[Indices, Indices]:
    return np.triu_indices(num_groups, 1)


def _median_of_rows(values: Floats) -> Floats:
    ordered = np.sort(values, axis=1)
    middle = values.shape[1] // 2
    if values.shape[1] % 2:
        return ordered[:, middle]
    result: Floats = (ordered[:, middle - 1] + ordered[:, middle]) / 2
    return result
