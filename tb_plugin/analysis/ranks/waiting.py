"""What each rank costs the others: how long they wait for it in collectives.

Who is late for a collective waits less in it than the others do. So the cost of a rank is
what the others wait, in the mean, beyond what it waits itself, summed over the collectives
of a step. A rank that is late for many collectives by nothing costs nothing; one that is
late because it waited elsewhere has waited as long itself.

A rank stands out where its cost in the median step is at least `FLOOR` of the step's time,
more than `DEVIATIONS` robust deviations beyond the middle one of the other ranks, and
beyond what chance makes of its steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, median, robust_deviation
from memboard.tb_plugin.analysis.ranks.rank_steps import steps_of_calls
from memboard.tb_plugin.analysis.ranks.stragglers import DEVIATIONS, FLOOR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.analysis.ranks.distributed import ComparedRanks
    from memboard.tb_plugin.analysis.ranks.rank_steps import RankSteps

_STEP_DEVIATIONS: Final = 3.0
"""Of the median over the steps."""
_MIN_STEPS: Final = 3
"""Of fewer steps each collective is looked at by itself."""
_MIN_COLLECTIVES: Final = 10


@dataclass(frozen=True, slots=True)
class WaitingCost:
    """One rank, and what the others wait for it in a step."""

    rank: int
    cost_ns: float
    """At the median of the steps; negative: it waits for the others."""
    step_ns: float
    """A step's time, at the median of all ranks."""
    stands_out: bool
    collective: tuple[str, str]
    """Group and kind of those that most of the cost arises in."""
    part: str
    """The part of its step that is longest beyond the middle rank's; empty: none is."""
    part_excess_ns: float

    @property
    def share(self) -> float:
        """The cost as a share of the step."""
        return self.cost_ns / self.step_ns


def waiting_costs(steps: RankSteps, together: ComparedRanks) -> list[WaitingCost]:
    """Every rank, those that cost most first; empty where too little is known."""
    call, step_of = _calls_in_steps(steps, together)
    if len(steps.ranks) < 2 or not len(call):
        return []
    collective = together.collective[call]
    row = np.searchsorted(steps.ranks, together.rank[call])
    lead = together.lead_ns[call]
    numbers, sample = np.unique(step_of, return_inverse=True)
    num_per_step = 1.0
    if len(numbers) < _MIN_STEPS:
        distinct, sample = np.unique(collective, return_inverse=True)
        if len(distinct) < _MIN_COLLECTIVES:
            return []
        num_per_step = len(distinct) / len(numbers)
    shape = len(steps.ranks), int(sample.max()) + 1
    cell = row * shape[1] + sample
    leads = np.bincount(cell, lead, shape[0] * shape[1]).reshape(shape) * num_per_step
    cost: Floats = np.median(leads, axis=1)
    spread = [
        robust_deviation(own, usual) for own, usual in zip(leads, cost, strict=True)
    ]
    chance = _STEP_DEVIATIONS * np.array(spread) / np.sqrt(shape[1])
    step_ns = median(steps.duration_ns)
    limit = np.maximum(chance, _limits(cost, step_ns))
    parts = _part_excesses(steps)
    costs = []
    for index in np.argsort(-cost, kind="stable").tolist():
        is_own = row == index
        part, excess = _longest_part(parts, index)
        costs.append(
            WaitingCost(
                rank=int(steps.ranks[index]),
                cost_ns=float(cost[index]),
                step_ns=step_ns,
                stands_out=bool(cost[index] >= limit[index] > 0),
                collective=_costliest(together, collective[is_own], lead[is_own]),
                part=part,
                part_excess_ns=excess,
            )
        )
    return costs


def _calls_in_steps(steps: RankSteps, together: ComparedRanks) -> tuple[Ints, Ints]:
    """Calls of whole collectives that begin in a step; and that step's number.

    The lowest rank of a collective says its step: others may begin it in another one.
    """
    call = np.flatnonzero(together.collective != NOTHING)
    number = steps_of_calls(steps, together)[call]
    _, first, inverse = np.unique(
        together.collective[call], return_index=True, return_inverse=True
    )
    step_of = number[first][inverse]
    is_counted = step_of != NOTHING
    return call[is_counted], step_of[is_counted]


def _limits(cost: Floats, step_ns: float) -> Floats:
    """(ranks,): the least cost that is not usual among the other ranks."""
    floor = FLOOR * step_ns
    limits = np.full(len(cost), floor)
    if len(cost) < 4:
        return limits  # among so few, one that differs is half of the spread
    for index in np.flatnonzero(cost >= floor).tolist():
        others = np.delete(cost, index)
        middle = median(others)
        limit = middle + DEVIATIONS * robust_deviation(others, middle)
        limits[index] = max(floor, limit)
    return limits


def _part_excesses(steps: RankSteps) -> dict[str, Floats]:
    """By part, (ranks,): of the median step, beyond the middle rank's."""
    parts = {
        "dataloader": steps.loading_ns,
        "computation": steps.computation_ns,
        "other": steps.part_ns("other"),
    }
    excesses = {}
    for name, values in parts.items():
        usual = np.array(
            [
                np.median(taken) if len(taken := values[steps.row == row]) else 0.0
                for row in range(len(steps.ranks))
            ]
        )
        excesses[name] = usual - np.sort(usual)[(len(usual) - 1) // 2]
    return excesses


def _longest_part(parts: Mapping[str, Floats], index: int) -> tuple[str, float]:
    """The part that is longest beyond the middle rank's; empty: none is."""
    excesses = {name: float(values[index]) for name, values in parts.items()}
    part = max(excesses, key=lambda name: excesses[name])
    # What is loaded longer is computation or other as well, as far as a trace shows it.
    if excesses["dataloader"] > excesses[part] / 2:
        part = "dataloader"
    return (part, excesses[part]) if excesses[part] > 0 else ("", 0.0)


def _costliest(
    together: ComparedRanks, collective: Ints, lead: Ints
) -> tuple[str, str]:
    if not len(collective):
        return "", ""
    sums = np.bincount(together.kind[collective], lead, len(together.names))
    return together.names[int(sums.argmax())]
