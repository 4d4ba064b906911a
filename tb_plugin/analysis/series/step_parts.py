"""The parts of a step's time, and the ranks that a step waited for.

Matrices have the shape (ranks, columns): a column is one step, or some that follow each
other. NaN is "not recorded". Times are seconds. Parts are exclusive times, so that what
they leave of the step's time is `other`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.columns import STEP_PARTS
from memboard.tb_plugin.analysis.arrays import Table, median, neighbour_spread
from memboard.tb_plugin.analysis.series.growth import warmup_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Floats, Indices

PARTS: Final = STEP_PARTS
"""In the order in which they are stacked; `other` comes last."""
TIMES_ALIKE: Final = 0.02
"""Share of a step's time: a smaller difference is noise."""
_MOST_RANKS: Final = 256
"""Ranks whose noise is that of all."""
OTHER: Final = "other"
STEP: Final = "step"
"""The whole step, where a part may be named."""


@dataclass(frozen=True, slots=True, eq=False)
class StepRows(Table):
    """Steps of one rank, or buckets of consecutive steps, in order; x ascends."""

    first: npt.NDArray[np.int64]
    """The first step of each bucket."""
    last: npt.NDArray[np.int64]
    end_x: Floats
    """Where the last step of each ended, on the query's axis."""
    end_ms: Floats
    """The same, in milliseconds since the epoch."""
    start_x: float
    """Where the first of all steps began."""
    high: Floats
    """Step time of the slowest step inside."""
    mean: Floats
    part_high: Floats
    """(parts, buckets): the highest time of each part, whichever step's it was."""
    part_mean: Floats
    width: int
    """Rows in the widest bucket; 1 where these are steps themselves."""


def slowest_parts(rows: StepRows) -> Floats:
    """(parts, buckets): parts of the slowest step of each bucket.

    Of single steps these are what was recorded. Of a bucket only the means and the
    highest values were kept; what the slowest step took beyond the mean is given to
    the parts in proportion to how far each of them was ever beyond its own mean. No
    part gets more than its highest value, and all of them at most the step's time.
    """
    if rows.width <= 1:
        return rows.part_high
    spread = np.fmax(rows.part_high - rows.part_mean, 0.0)
    beyond = np.fmax(rows.high - rows.mean, 0.0)
    total = np.nansum(spread, axis=0)
    # A spread of next to nothing makes the quotient infinite, which is 1 as well.
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        share = np.where(total > 0, np.fmin(beyond / total, 1.0), 0.0)
    parts: Floats = rows.part_mean + spread * share
    return parts


def other_part(seconds: Floats, parts: Floats) -> Floats:
    """What the parts leave of the steps' time; NaN where none of them is known, or it.

    `parts` has one more axis in front. Clocks are read at different moments, so parts
    may exceed the step by a hair: the rest is then nothing, never less.
    """
    has_parts = ~np.isnan(parts).all(axis=0)
    rest = np.maximum(seconds - np.nansum(parts, axis=0), 0.0)
    return np.where(has_parts, rest, np.nan)


def slowest_in(values: Floats, start: Indices, stop: Indices) -> Indices:
    """The index of the highest value of each window `[start, stop)`; -1: there is none.

    Windows ascend; they may share an entry where a bucket reaches over their border.
    """
    slowest = np.full(len(start), -1, np.intp)
    for window in np.flatnonzero(start < stop):
        part = values[start[window] : stop[window]]
        if not np.isnan(part).all():
            slowest[window] = start[window] + int(np.nanargmax(part))
    return slowest


def worst_ranks(matrix: Floats) -> Indices:
    """Row of the slowest rank in each column; -1 where nothing was recorded."""
    filled = np.where(np.isnan(matrix), -np.inf, matrix)
    worst: Indices = filled.argmax(axis=0) if len(matrix) else np.empty(0, np.intp)
    return np.where(np.isinf(filled.max(axis=0, initial=-np.inf)), -1, worst)


def median_ranks(matrix: Floats) -> Indices:
    """Row of the rank in the middle of each column, of two the faster; -1: none."""
    if not len(matrix):
        return np.full(matrix.shape[1], -1, np.intp)
    count = np.count_nonzero(~np.isnan(matrix), axis=0)
    order = np.argsort(matrix, axis=0, kind="stable")  # NaN comes last
    middle = np.fmax(count - 1, 0) // 2
    rows = np.take_along_axis(order, middle[None, :], axis=0)[0]
    return np.where(count > 0, rows, -1)


def middle_values(matrix: Floats) -> Floats:
    """The value of `median_ranks` in each column: a value some rank really had."""
    rows = median_ranks(matrix)
    if not len(matrix):
        return np.full(matrix.shape[1], np.nan)
    values: Floats = np.take_along_axis(matrix, np.fmax(rows, 0)[None, :], axis=0)[0]
    return np.where(rows >= 0, values, np.nan)


def relative_pct(values: Floats, seconds: Floats) -> Floats:
    """How far each rank is from the middle rank, in per cent of the middle step time.

    Of the step's time itself (`values is seconds`) that is how much longer the rank's
    step took than the step of the middle rank.
    """
    middle = middle_values(seconds)
    with np.errstate(invalid="ignore", divide="ignore"):
        pct: Floats = 100.0 * (values - middle_values(values)) / middle
    return np.where(middle > 0, pct, np.nan)


def noise_of_times(values: Floats) -> float:
    """(ranks, columns) of times: what differs by less is alike, as for a comparison."""
    some = values[:: max(1, -(-len(values) // _MOST_RANKS))]
    present = some[~np.isnan(some)]
    usual = median(present) if len(present) else 0.0
    return max(TIMES_ALIKE * usual, neighbour_spread(some))


def pooled_means(values: Floats, start: Indices, stop: Indices) -> Floats:
    """Mean of each window along the last axis; NaN where it is empty."""
    present = ~np.isnan(values)
    shape = (*values.shape[:-1], 1)
    sums = np.concatenate(
        [np.zeros(shape), np.cumsum(np.where(present, values, 0.0), axis=-1)], axis=-1
    )
    counts = np.concatenate([np.zeros(shape), np.cumsum(present, axis=-1)], axis=-1)
    count = counts[..., stop] - counts[..., start]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = (sums[..., stop] - sums[..., start]) / count
    return np.where((count > 0) & (start < stop), mean, np.nan)


def with_other(parts: Mapping[str, Floats], seconds: Floats) -> Mapping[str, Floats]:
    """The parts and what they leave of `seconds`, which has their shape."""
    if not parts:
        return {}
    return {**parts, OTHER: other_part(seconds, np.stack(list(parts.values())))}


def most_more(
    parts: Mapping[str, Floats], slow: npt.NDArray[np.bool_]
) -> tuple[str, float]:
    """The part whose median is furthest beyond that of the other steps."""
    if not parts:
        return "", float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a part without any value
        more = {
            part: float(np.nanmedian(values[slow]) - np.nanmedian(values[~slow]))
            for part, values in parts.items()
        }
    largest_part = max(
        more, key=lambda part_name: np.nan_to_num(more[part_name], nan=-np.inf)
    )
    return (
        (largest_part, more[largest_part])
        if more[largest_part] > 0
        else ("", float("nan"))
    )


def part_growth(own: Mapping[str, Floats], seconds: Floats) -> str:
    """The part that grew most from the first third to the last; empty: not recorded.

    By the mean of the ranks: their parts add up to their steps. The middle ranks of
    several parts are different ones, and what those leave of a step is nothing real.
    """
    parts = with_other(own, seconds)
    num_columns = seconds.shape[1]
    third = np.arange(num_columns) >= 2 * num_columns / 3
    behind = np.arange(num_columns) >= warmup_rows(num_columns)
    ends = behind & (third | (np.arange(num_columns) < num_columns / 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column that no rank has
        means = {name: np.nanmean(v[:, ends], axis=0) for name, v in parts.items()}
    return most_more(means, third[ends])[0]
