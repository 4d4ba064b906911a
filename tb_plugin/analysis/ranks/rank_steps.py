"""Profiled steps of several ranks beside each other: means, collectives, the longest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags, Floats, Ints
    from memboard.tb_plugin.analysis.ranks.distributed import ComparedRanks
    from memboard.tb_plugin.api.time.distributed import DistributedPart


@dataclass(frozen=True, slots=True, eq=False)
class RankSteps:
    """The steps of one rank after the other; columns of (steps,)."""

    ranks: Ints
    """Numbers of the ranks, ascending, of shape (num_ranks,)."""
    row: Ints
    """Which of `ranks` each step is of."""
    step: Ints
    start_ns: Ints
    duration_ns: Ints
    computation_ns: Ints
    """Likewise communication: with what overlaps."""
    communication_ns: Ints
    overlap_ns: Ints
    loading_ns: Ints
    """Waiting for a batch, as far as nothing else goes before it."""

    @property
    def numbers(self) -> Ints:
        """Numbers of the steps that any rank has, ascending."""
        return np.unique(self.step)

    def part_ns(self, part: DistributedPart) -> Ints:
        """Nanoseconds of each step; all parts but `step` add up to it."""
        computation = self.computation_ns - self.overlap_ns
        communication = self.communication_ns - self.overlap_ns
        parts: dict[DistributedPart, Ints] = {
            "step": self.duration_ns,
            "computation": computation,
            "overlap": self.overlap_ns,
            "communication": communication,
            "other": self.duration_ns - computation - communication - self.overlap_ns,
        }
        return parts[part]

    def range(self) -> tuple[float, float]:
        """The first step and the last; 0 and 0 without any."""
        if not len(self.step):
            return 0.0, 0.0
        return float(self.step.min()), float(self.step.max())

    def is_of(self, step: int | None) -> Flags:
        """(steps,): those of one number; None: all."""
        return np.full(len(self.step), True) if step is None else self.step == step


def ascending(values: Floats) -> Ints:
    """Rows of the values that are not NaN, by value."""
    return np.argsort(values, kind="stable")[: int((~np.isnan(values)).sum())]


def row_of_highest(values: Floats) -> int | None:
    """None where all values are NaN or zero."""
    present = np.nan_to_num(values)
    return int(present.argmax()) if present.any() else None


def mean_times(steps: RankSteps, step: int | None) -> Floats:
    """Times of one step of each rank, or of all in the mean, in nanoseconds.

    Returns:
        Shape (4, num_ranks): step, computation, communication, overlap. NaN where the
        rank has no such step.
    """
    counted = steps.is_of(step)
    row = steps.row[counted]
    num_steps = np.bincount(row, minlength=len(steps.ranks))
    means = np.full((4, len(steps.ranks)), np.nan)
    columns = (
        steps.duration_ns,
        steps.computation_ns,
        steps.communication_ns,
        steps.overlap_ns,
    )
    for mean, column in zip(means, columns, strict=True):
        sums = np.bincount(row, column[counted], len(steps.ranks))
        np.divide(sums, num_steps, mean, where=num_steps > 0)
    return means


def collective_times(
    steps: RankSteps, together: ComparedRanks, step: int | None
) -> Floats:
    """Times of each rank's collectives in one step, or in all in the mean, in nanoseconds.

    What lies at the end of what was profiled, and so in few of the traces, counts as
    nothing, and so does what lies in no step.

    Returns:
        Shape (2, num_ranks): while data moved, and in all. NaN where the rank has no such
        step, or the trace of a rank that took part in one of them is missing.
    """
    num_ranks = len(steps.ranks)
    row = np.searchsorted(steps.ranks, together.rank)
    step_of = steps_of_calls(steps, together)
    counted = step_of != NOTHING if step is None else step_of == step
    num_steps = np.bincount(steps.row[steps.is_of(step)], minlength=num_ranks)
    missed = row[counted & together.is_missed]
    is_unknown = (num_steps == 0) | (np.bincount(missed, minlength=num_ranks) > 0)
    counted &= together.is_compared
    sums = np.stack(
        [
            np.bincount(row[counted], column[counted], num_ranks)
            for column in (together.transfer_ns, together.duration_ns)
        ]
    )
    return np.where(is_unknown, np.nan, sums / np.maximum(num_steps, 1))


def steps_of_calls(steps: RankSteps, together: ComparedRanks) -> Ints:
    """(calls,): number of the rank's step that a collective begins in; NOTHING: in none."""
    number = np.full(len(together.rank), NOTHING, np.int64)
    for row, rank in enumerate(steps.ranks.tolist()):
        calls = np.flatnonzero(together.rank == rank)
        places = np.flatnonzero(steps.row == row)
        if not len(calls) or not len(places):
            continue
        places = places[np.argsort(steps.start_ns[places], kind="stable")]
        start = together.start_ns[calls]
        latest = np.searchsorted(steps.start_ns[places], start, side="right") - 1
        place = places[np.maximum(latest, 0)]
        is_inside = (latest >= 0) & (
            start < steps.start_ns[place] + steps.duration_ns[place]
        )
        number[calls] = np.where(is_inside, steps.step[place], NOTHING)
    return number


def longest_in_columns(
    steps: RankSteps, part: DistributedPart, edges: Floats, steps_per_column: int
) -> Floats:
    """The longest of each rank's steps in each column of a picture, in seconds.

    Args:
        steps: the ranks' steps.
        part: of a step's time.
        edges: first step of each column, then the end of the last; whole numbers of
            shape (num_columns + 1,).
        steps_per_column: how many each holds.

    Returns:
        Shape (num_ranks, num_columns). NaN where a rank has no step in a column.
    """
    longest = np.full((len(steps.ranks), len(edges) - 1), np.nan)
    column = (steps.step - int(edges[0])) // steps_per_column
    is_inside = (column >= 0) & (column < longest.shape[1])
    seconds = steps.part_ns(part) / 1e9
    cells = steps.row[is_inside], column[is_inside]
    np.fmax.at(longest, cells, seconds[is_inside])
    return longest
