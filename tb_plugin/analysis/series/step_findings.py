"""What slows a training down, told from the times of its steps and their parts.

Each function gives the facts of one finding, or None where it does not apply. None of
them fires on noise: each asks for an effect worth mending, and for enough steps.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from tb_plugin.analysis.series.growth import GROUPS, slope, warmup_rows
from tb_plugin.analysis.series.step_parts import OTHER, middle_values, other_part

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from tb_plugin.analysis.ranks.stragglers import StepTimes

    Floats: TypeAlias = npt.NDArray[np.float64]
    Ints: TypeAlias = npt.NDArray[np.int64]
    Indices: TypeAlias = npt.NDArray[np.intp]

WAITING_SHARE: Final = 0.20
"""Of the step's time, from which on a training is said to wait for its data."""
SLOW_FACTOR: Final = 1.5
"""A step is slow from that many times the median on."""
PERIODIC_COST: Final = 0.02
"""What slow steps must cost on average, as a share of the usual step."""
GROWTH_SHARE: Final = 0.10
"""What the step's time must have grown by from the start to the end."""
_LOADER: Final = "dataloader"
_SAME_GAPS: Final = 0.75
"""Of the steps at the distance, so many must be slow."""
_MOST_GAPS: Final = 64
_MIN_SLOW: Final = 4
_MIN_COLUMNS: Final = 10
_MIN_GROWTH_COLUMNS: Final = 40
_SURE: Final = 4.0
"""Standard errors by which a growth must differ from none."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Steps wait for the dataloader."""

    share: float
    """Of the step's time, on the rank in the middle."""
    seconds: float
    """Per step, on the rank in the middle."""
    worst_share: float
    worst_row: int
    """The rank that waits most."""


@dataclass(frozen=True, slots=True)
class Periodic:
    """Every n-th step is slow."""

    every: int
    first: int
    """A step that was slow; the newest one."""
    num_slow: int
    seconds: float
    """Of a slow step, at the median."""
    usual_seconds: float
    part: str
    """What slow steps do more of; empty: it was not recorded."""
    part_seconds: float
    """How much more of it."""


@dataclass(frozen=True, slots=True)
class Growing:
    """The step's time grows."""

    seconds_per_step: float
    first_seconds: float
    """At the start, behind the warm-up, and at the end."""
    last_seconds: float
    num_steps: int
    part: str
    """The part that grew most; empty: it was not recorded."""
    part_seconds: float


def waiting_for_data(times: StepTimes) -> Waiting | None:
    """Whether the ranks wait for their batches."""
    loader = times.parts.get(_LOADER)
    if loader is None or times.coarse_seconds.shape[1] < _MIN_COLUMNS:
        return None
    behind = slice(min(warmup_rows(loader.shape[1]), loader.shape[1] // 3), None)
    both = np.where(np.isnan(loader), np.nan, times.coarse_seconds)[:, behind]
    waited = np.nansum(loader[:, behind], axis=1)
    whole = np.nansum(both, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(whole > 0, waited / whole, np.nan)
    present = np.flatnonzero(~np.isnan(share))
    if not len(present):
        return None
    # The middle rank: a single one that waits is a straggler, not a slow dataloader.
    order = present[np.argsort(share[present], kind="stable")]
    middle = int(order[(len(order) - 1) // 2])
    if not share[middle] > WAITING_SHARE:
        return None
    worst = int(order[-1])
    return Waiting(
        share=float(share[middle]),
        seconds=float(np.nanmean(loader[middle, behind])),
        worst_share=float(share[worst]),
        worst_row=worst,
    )


def slow_every(
    step: Ints, seconds: Floats, parts: Mapping[str, Floats]
) -> Periodic | None:
    """Whether slow steps come at equal distances; of single steps of one rank."""
    known = ~np.isnan(seconds)
    step, seconds = step[known], seconds[known]
    if len(step) < _MIN_COLUMNS:
        return None
    usual = float(np.median(seconds))
    slow = seconds > SLOW_FACTOR * usual
    # Slow steps next to each other are one event.
    begins = np.flatnonzero(slow & ~np.concatenate([[False], slow[:-1]]))
    if len(begins) < _MIN_SLOW or not usual > 0:
        return None
    every, phase = _period(step, begins)
    if every == 0:
        return None
    begins = begins[step[begins] % every == phase]
    slow = np.zeros(len(step), np.bool_)
    slow[begins] = True
    beyond = seconds[slow] - usual
    if beyond.sum() / len(seconds) < PERIODIC_COST * usual:
        return None
    known_parts = {name: values[known] for name, values in parts.items()}
    part, more = _most_more(_with_other(known_parts, seconds), slow)
    return Periodic(
        every=every,
        first=int(step[begins[-1]]),
        num_slow=len(begins),
        seconds=float(np.median(seconds[slow])),
        usual_seconds=usual,
        part=part,
        part_seconds=more,
    )


def _period(step: Ints, begins: Indices) -> tuple[int, int]:
    """At which distance slow steps come, and where they begin; (0, 0): at none.

    Slow steps may have other causes too: of those that come at the distance nearly all
    must be slow, and they must be at least half of all slow ones.
    """
    events = step[begins]
    gaps = np.concatenate([np.diff(events), events[2:] - events[:-2]])
    values, counts = np.unique(gaps, return_counts=True)
    found, most = (0, 0), 0
    for every in values[np.argsort(-counts, kind="stable")][:_MOST_GAPS]:
        if every < 2:
            continue
        phases, hits = np.unique(events % every, return_counts=True)
        phase, num_hits = int(phases[np.argmax(hits)]), int(hits.max())
        expected = int(np.count_nonzero(step % every == phase))
        sure = num_hits >= max(_MIN_SLOW, _SAME_GAPS * expected)
        if sure and 2 * num_hits >= len(events) and num_hits > most:
            found, most = (int(every), phase), num_hits
    return found


def growing(step: Ints, times: StepTimes) -> Growing | None:
    """Whether steps take ever longer; `step` is the first of each column."""
    seconds = middle_values(times.seconds)
    start = warmup_rows(len(seconds))
    known = np.flatnonzero(~np.isnan(seconds))
    known = known[known >= start]
    if len(known) < _MIN_GROWTH_COLUMNS:
        return None
    x, y = step[known].astype(np.float64), seconds[known]
    per_step = slope(step, seconds)
    total = per_step * (x[-1] - x[0])
    quarter = len(y) // 4
    first, last = float(np.median(y[:quarter])), float(np.median(y[-quarter:]))
    if not (total >= GROWTH_SHARE * first and last >= (1 + GROWTH_SHARE / 2) * first):
        return None
    groups = [np.median(part) for part in np.array_split(y, min(GROUPS, len(y)))]
    at = [np.median(part) for part in np.array_split(x, len(groups))]
    rest = np.array(groups) - per_step * np.array(at)
    noise = 1.4826 * float(np.median(np.abs(rest - np.median(rest))))
    # The standard error of a straight line's rise over evenly spaced points.
    if total < _SURE * noise * np.sqrt(12 / len(groups)):
        return None
    part, more = _part_growth(times)
    return Growing(
        seconds_per_step=float(per_step),
        first_seconds=first,
        last_seconds=last,
        num_steps=int(x[-1] - x[0]),
        part=part,
        part_seconds=more,
    )


def _with_other(parts: Mapping[str, Floats], seconds: Floats) -> Mapping[str, Floats]:
    """The parts and what they leave of `seconds`, which has their shape."""
    if not parts:
        return {}
    return {**parts, OTHER: other_part(seconds, np.stack(list(parts.values())))}


def _most_more(
    parts: Mapping[str, Floats], slow: npt.NDArray[np.bool_]
) -> tuple[str, float]:
    """The part whose median is furthest beyond that of the other steps."""
    if not parts:
        return "", float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a part without any value
        more = {
            name: float(np.nanmedian(values[slow]) - np.nanmedian(values[~slow]))
            for name, values in parts.items()
        }
    name = max(more, key=lambda one: np.nan_to_num(more[one], nan=-np.inf))
    return (name, more[name]) if more[name] > 0 else ("", float("nan"))


def _part_growth(times: StepTimes) -> tuple[str, float]:
    """The part that grew most from the first third to the last.

    By the mean of the ranks: their parts add up to their steps. The middle ranks of
    several parts are different ones, and what those leave of a step is nothing real.
    """
    parts = _with_other(times.parts, times.coarse_seconds)
    num_columns = times.coarse_seconds.shape[1]
    third = np.arange(num_columns) >= 2 * num_columns / 3
    behind = np.arange(num_columns) >= warmup_rows(num_columns)
    ends = behind & (third | (np.arange(num_columns) < num_columns / 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column that no rank has
        means = {name: np.nanmean(v[:, ends], axis=0) for name, v in parts.items()}
    return _most_more(means, third[ends])
