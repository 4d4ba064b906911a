"""What each rank costs the others: how long they wait for it in collectives.

Who is late for a collective waits less in it than the others do. So the cost of a rank is
what the others wait, in the mean, beyond what it waits itself, summed over the collectives
of a step. A rank that is late for many collectives by nothing costs nothing; one that is
late because it waited elsewhere has waited as long itself.

A rank stands out where its cost in the median step is at least `FLOOR` of the step's time,
more than `DEVIATIONS` robust deviations beyond the middle one of the other ranks, and where
the steps agree on it. Where nobody is late but by chance, each rank is as likely as any
other to cost most in a step, however its times are distributed; so the steps in which it
does are counted, and their number is one that chance makes of any rank in at most
`_CHANCE` of all trainings. A few steps cannot show that by their number alone: of these
all have to agree, and to do so on the cost, by Student's t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, median, robust_deviation
from memboard.tb_plugin.analysis.ranks.rank_steps import steps_of_calls
from memboard.tb_plugin.analysis.ranks.stragglers import DEVIATIONS, FLOOR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memboard.tb_plugin.analysis.arrays import Flags, Floats, Ints
    from memboard.tb_plugin.analysis.ranks.distributed import ComparedRanks
    from memboard.tb_plugin.analysis.ranks.rank_steps import RankSteps

_CHANCE: Final = 0.01
_STUDENTS_T: Final = (math.inf, math.inf, 63.7, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50)
"""By number of steps, of which one more gives the last value at most: at half of `_CHANCE`,
because two ranks may each be the late one."""
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
    sums = np.bincount(cell, lead, shape[0] * shape[1]).reshape(shape)
    leads: Floats = np.multiply(sums, num_per_step, dtype=np.float64)
    cost: Floats = np.median(leads, axis=1)
    step_ns = median(steps.duration_ns)
    limits = _limits(cost, step_ns)
    stands_out = (cost >= limits) & (limits > 0)
    stands_out[stands_out] = _is_steady(leads, stands_out, FLOOR * step_ns)
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
                stands_out=bool(stands_out[index]),
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


def _is_steady(leads: Floats, is_candidate: Flags, floor_ns: float) -> Flags:
    """(candidates,): whether the steps agree that it is one of those that cost most.

    `leads`: (ranks, steps).
    """
    num_ranks, num_steps = leads.shape
    num_candidates = int(is_candidate.sum())
    place = np.argsort(np.argsort(-leads, axis=0, kind="stable"), axis=0)
    agrees = (place < num_candidates) & (leads >= floor_ns)
    num_agreeing = agrees[is_candidate].sum(axis=1)
    least = _least_beyond_chance(num_ranks, num_candidates / num_ranks, num_steps)
    if least is not None:
        has_enough: Flags = num_agreeing >= least
        return has_enough
    own = leads[is_candidate]
    student = _STUDENTS_T[min(num_steps, len(_STUDENTS_T) - 1)]
    error = own.std(axis=1, ddof=1) / math.sqrt(num_steps)
    is_alike: Flags = (own.mean(axis=1) >= student * error) & (
        num_agreeing == num_steps
    )
    return is_alike


def _least_beyond_chance(
    num_ranks: int, probability: float, num_steps: int
) -> int | None:
    """So many steps agree on any of the ranks in at most `_CHANCE` of all trainings.

    `probability`: that one step does on one rank. None: all steps may do so more often.
    """
    chance, least = 0.0, None
    for number in range(num_steps, 0, -1):
        chance += (
            math.comb(num_steps, number)
            * probability**number
            * (1 - probability) ** (num_steps - number)
        )
        if num_ranks * chance > _CHANCE:
            break
        least = number
    return least


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
