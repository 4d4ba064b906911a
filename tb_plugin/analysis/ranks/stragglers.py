"""Stragglers: ranks that the others wait for, and the part of the step they are late in.

Ranks that train together end a step together: who is late is waited for, in
communication or in a backward that holds it. A late rank may therefore show in the
step's time (nobody waits inside the step), or only in the part it is late with. Both
are looked at, always against the rank in the middle of the same steps.

A rank stands out where its median excess over the steps is at least `FLOOR` of the
middle step time, and more than `DEVIATIONS` robust standard deviations beyond the
excess of the middle rank. Time in communication never counts against a rank: that is
where ranks wait. They wait in a backward too (DDP and FSDP communicate there), so that
a longer backward counts only as far as the step is longer.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import median, robust_deviation
from memboard.tb_plugin.analysis.series.step_parts import (
    OTHER,
    middle_values,
    other_part,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Floats


FLOOR: Final = 0.05
DEVIATIONS: Final = 5.0
_WAITS: Final = "communication"
_HOLDS_WAITS: Final = "backward"
_MIN_COLUMNS: Final = 8
"""Of fewer steps a median says little."""


@dataclass(frozen=True, slots=True, eq=False)
class StepTimes:
    """Step times of a run: (ranks, columns) each, means of the steps of a column."""

    ranks: Sequence[int]
    seconds: Floats
    parts: Mapping[str, Floats]
    """By name, `other` not among them; columns may be fewer than those of `seconds`."""
    coarse_seconds: Floats
    """As `seconds`, with the columns of `parts`."""


@dataclass(frozen=True, slots=True)
class Straggler:
    """One rank beside the one in the middle."""

    rank: int
    slowest_share: float
    """Share of the columns where its step took longest."""
    excess_seconds: float
    """Median over the columns, beyond the middle rank's step."""
    part: str
    """The part that is longest beyond the middle rank's; empty: none is."""
    part_excess_seconds: float
    stands_out: bool
    by_part: bool
    """It stands out by the part, not by its step: the others wait for it."""


def middle_of(values: Floats) -> float:
    """The value in the middle, of two the lower; NaN where there is none."""
    present = np.sort(values[~np.isnan(values)])
    return float(present[(len(present) - 1) // 2]) if len(present) else np.nan


def middle_rank(own_seconds: Floats, is_known: npt.NDArray[np.bool_]) -> int:
    """Row of the rank whose step, (ranks,), is in the middle, of those with parts."""
    rows = np.flatnonzero(is_known.any(axis=1))
    order = np.argsort(own_seconds[rows], kind="stable")
    return int(rows[order[(len(order) - 1) // 2]])


def usual_parts(
    times: StepTimes, parts: Mapping[str, Floats], row: int, seconds: float
) -> dict[str, float]:
    """Seconds of each part in a rank's usual step, of which they are all.

    Medians of parts do not sum to the median step. These are the parts' shares of the
    steps in the middle half of all, so that a slow first step counts for nothing.
    """
    steps = times.coarse_seconds[row]
    is_known = ~np.isnan(parts[OTHER][row]) & (steps > 0)
    if not is_known.any():
        return {}
    low, high = np.quantile(steps[is_known], (0.25, 0.75))
    middle = is_known & (steps >= low) & (steps <= high)
    sums = {
        part_name: float(np.nansum(values[row][middle]))
        for part_name, values in parts.items()
        if not np.isnan(values[row][middle]).all()
    }
    whole = sum(sums.values())
    return {part_name: seconds * part / whole for part_name, part in sums.items()}


def stragglers(times: StepTimes) -> list[Straggler]:
    """Every rank, those that cost most first."""
    num_ranks, num_columns = times.seconds.shape
    if num_ranks < 2 or num_columns < _MIN_COLUMNS:
        return []
    usual = median_known(middle_values(times.seconds))
    excess = _excess(times.seconds)
    shares = _slowest_shares(times.seconds)
    by_part = _part_excesses(times)
    limit = _limit(excess, usual)
    part_limits = {
        part_name: _limit(values, usual) for part_name, values in by_part.items()
    }
    all_ranks = []
    for row, rank in enumerate(times.ranks):
        own = {part_name: values[row] for part_name, values in by_part.items()}
        if _HOLDS_WAITS in own:
            # Who waits there for others has the same step time as they.
            own[_HOLDS_WAITS] = min(own[_HOLDS_WAITS], excess[row])
        part = max(own, key=lambda part_name: own[part_name], default="")
        part_excess = own.get(part, np.nan)
        if not part_excess > 0:
            part, part_excess = "", np.nan
        by_step = bool(excess[row] >= limit)
        late = bool(part) and bool(part_excess >= part_limits[part])
        all_ranks.append(
            Straggler(
                rank=rank,
                slowest_share=float(shares[row]),
                excess_seconds=float(excess[row]),
                part=part,
                part_excess_seconds=float(part_excess),
                stands_out=by_step or late,
                by_part=late and not by_step,
            )
        )
    return sorted(all_ranks, key=_cost, reverse=True)


def _cost(straggler: Straggler) -> tuple[bool, float]:
    worst = np.fmax(straggler.excess_seconds, straggler.part_excess_seconds)
    return straggler.stands_out, float(np.nan_to_num(worst, nan=-np.inf))


def _part_excesses(times: StepTimes) -> dict[str, Floats]:
    """By part: the median excess of every rank, NaN becoming -inf."""
    if not times.parts:
        return {}
    times_by_part = dict(times.parts)
    stacked = np.stack(list(times_by_part.values()))
    times_by_part[OTHER] = other_part(times.coarse_seconds, stacked)
    excesses = {}
    for part_name, values in times_by_part.items():
        if part_name != _WAITS:
            excesses[part_name] = np.nan_to_num(_excess(values), nan=-np.inf)
    return excesses


def _excess(values: Floats) -> Floats:
    """Median over the columns of what each rank takes beyond the middle one."""
    beyond = values - middle_values(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a rank without any value
        excess: Floats = np.nanmedian(beyond, axis=1)
    return excess


def _limit(excess: Floats, usual: float) -> float:
    present = excess[np.isfinite(excess)]
    if not len(present) or not usual > 0:
        return np.inf
    middle = middle_of(present)
    deviation = robust_deviation(present, middle)
    if len(present) < 4:
        deviation = 0.0  # among so few, one that differs is half of the spread
    return max(FLOOR * usual, middle + DEVIATIONS * deviation)


def _slowest_shares(seconds: Floats) -> Floats:
    filled = np.where(np.isnan(seconds), -np.inf, seconds)
    has_time = ~np.isinf(filled.max(axis=0))
    worst = filled.argmax(axis=0)[has_time]
    counts = np.bincount(worst, minlength=len(seconds))
    share: Floats = counts / max(1, len(worst))
    return share


def median_known(values: Floats) -> float:
    """Of what is known; NaN of nothing."""
    return median(values[~np.isnan(values)])
