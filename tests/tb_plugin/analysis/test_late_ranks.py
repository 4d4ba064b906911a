"""Which rank is waited for, on machines that interrupt all of them."""

from __future__ import annotations

from collections import Counter

import pytest

from memboard.tb_plugin.analysis.findings.stragglers import waited_for
from memboard.tb_plugin.analysis.ranks.distributed import compared
from memboard.tb_plugin.analysis.ranks.waiting import waiting_costs
from tests.tb_plugin.analysis.busy_ranks import MACHINES, BusyTraining, simulated

LOADS = (0.1, 0.3, 0.5)
SEEDS = range(8)


def named_rank(training: BusyTraining, seed: int) -> int | None:
    steps, collectives = simulated(training, seed)
    costs = waiting_costs(steps, compared(collectives, training.num_ranks))
    finding = waited_for(costs)
    return None if finding is None else finding.rank


@pytest.mark.parametrize("num_steps", [3, 5, 7, 20, 50])
def test_chance_makes_no_straggler(num_steps):
    """However heavy the tails are, and however few the steps and the ranks."""
    num_named: Counter[str] = Counter()
    for machine in MACHINES:
        for load in LOADS:
            for num_ranks in (2, 3, 4, 8):
                training = BusyTraining(num_ranks, num_steps, machine, load=load)
                for seed in SEEDS:
                    num_named[machine] += named_rank(training, seed) is not None
    num_each = len(LOADS) * 4 * len(SEEDS)
    assert sum(num_named.values()) <= 0.02 * num_each * len(MACHINES)
    assert max(num_named.values()) <= 0.05 * num_each


@pytest.mark.parametrize("num_steps", [3, 7])
def test_chance_makes_no_straggler_of_many_ranks(num_steps):
    named = [
        named_rank(BusyTraining(64, num_steps, machine, load=load), seed)
        for machine in MACHINES
        for load in LOADS
        for seed in range(3)
    ]
    assert len(named) - named.count(None) <= 1


@pytest.mark.parametrize(("machine", "load"), [("jitter", 0.0), ("slices", 0.1)])
@pytest.mark.parametrize("late_before", [None, 0, 2])
def test_a_rank_that_is_late_by_half_a_step_is_named(machine, load, late_before):
    named: list[bool] = []
    for num_ranks in (2, 3, 4, 8, 64):
        for num_steps in (5, 7, 20):
            late = num_ranks // 2
            training = BusyTraining(
                num_ranks,
                num_steps,
                machine,
                load=load,
                late=late,
                late_share=0.5,
                late_before=late_before,
            )
            seeds = SEEDS if num_ranks < 64 else range(1)
            named += [named_rank(training, seed) == late for seed in seeds]
    assert sum(named) >= 0.97 * len(named)


def test_three_steps_suffice_where_they_are_alike():
    for num_ranks in (2, 3, 4, 8, 64):
        training = BusyTraining(num_ranks, 3, "jitter", late=1, late_share=0.2)
        assert {named_rank(training, seed) for seed in SEEDS} == {1}


def test_no_other_rank_is_named_for_the_late_one():
    """On a machine that is too busy to tell, nobody is named rather than another."""
    wrong, right = 0, 0
    for machine in MACHINES:
        for load in LOADS:
            for num_ranks in (2, 4, 8):
                training = BusyTraining(num_ranks, 7, machine, load=load, late=0)
                named = [named_rank(training, seed) for seed in SEEDS]
                right += named.count(0)
                wrong += len(named) - named.count(0) - named.count(None)
    assert wrong <= 0.02 * (wrong + right)
