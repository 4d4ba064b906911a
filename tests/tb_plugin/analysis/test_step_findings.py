"""Each finding fires where its cause was planted, and stays silent where it was not."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.tb_plugin.analysis.findings.steps import (
    growing,
    slow_every,
    waiting_for_data,
)
from memboard.tb_plugin.analysis.findings.text import PART_TEXT
from memboard.tb_plugin.analysis.ranks.stragglers import StepTimes, stragglers
from tests.tb_plugin.step_runs import MS, PARTS, REST, Story, Told


def times_of(told: Told) -> StepTimes:
    seconds = np.array(told.total) * MS
    parts = {
        name: np.array(told.parts[name], float) * MS
        for name in PARTS
        if told.parts[name][0][0] is not None
    }
    return StepTimes(range(len(seconds)), seconds, parts, seconds)


def number(found, key: str) -> float:
    (value,) = [one.value for one in found.evidence if one.key == key]
    return value


def late_ranks(told: Told) -> list[int]:
    return [one.rank for one in stragglers(times_of(told)) if one.stands_out]


def test_the_story_adds_up():
    told = Story(3, 20, in_step=True).tell()
    for rank in range(3):
        for step in range(20):
            parts = sum(told.parts[name][rank][step] for name in PARTS)
            assert parts + REST == pytest.approx(told.total[rank][step])
    assert len({round(told.total[rank][7], 6) for rank in range(3)}) == 1


# Stragglers


def test_a_rank_whose_steps_are_longer_is_found_with_its_part():
    told = Story(
        32, 200, more=lambda r, s: {"dataloader": 38} if r == 12 else {}
    ).tell()
    worst, second = stragglers(times_of(told))[:2]
    assert (worst.rank, worst.part, worst.stands_out) == (12, "dataloader", True)
    assert worst.excess_seconds == pytest.approx(0.038, rel=0.05)
    assert worst.part_excess_seconds == pytest.approx(0.038, rel=0.05)
    assert worst.slowest_share == 1.0
    assert not worst.by_part
    assert not second.stands_out


@pytest.mark.parametrize("num_ranks", [2, 3, 8, 64])
def test_a_rank_the_others_wait_for_is_found_though_all_steps_take_equally_long(
    num_ranks,
):
    told = Story(
        num_ranks,
        100,
        in_step=True,
        more=lambda r, s: {"forward": 15} if r == 1 else {},
    ).tell()
    worst = stragglers(times_of(told))[0]
    assert (worst.rank, worst.part, worst.by_part) == (1, "forward", True)
    assert worst.part_excess_seconds == pytest.approx(0.015, rel=0.1)
    assert late_ranks(told) == [1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("in_step", [False, True])
def test_ranks_that_differ_by_chance_are_no_stragglers(seed, in_step):
    assert (
        late_ranks(Story(48, 150, noise=0.3, seed=seed, in_step=in_step).tell()) == []
    )


def test_a_rank_that_is_slow_now_and_then_is_no_straggler():
    """Rank 0 writes the checkpoints: that is slow, but it is not late as such."""
    told = Story(
        16,
        200,
        more=lambda r, s: {"checkpoint": 300} if r == 0 and s % 50 == 49 else {},
    ).tell()
    assert late_ranks(told) == []


def test_who_waits_in_communication_is_not_late():
    told = Story(
        8, 100, more=lambda r, s: {"communication": 30} if r != 3 else {}
    ).tell()
    for one in stragglers(times_of(told)):
        assert one.part != "communication"


def test_without_parts_the_step_tells():
    parts = {"absent": PARTS}
    told = Story(
        8, 100, more=lambda r, s: {"other": 20} if r == 2 else {}, **parts
    ).tell()
    worst = stragglers(times_of(told))[0]
    assert (worst.rank, worst.part, worst.stands_out) == (2, "", True)


def test_one_rank_is_compared_with_nobody():
    assert stragglers(times_of(Story(1, 100).tell())) == []


# Waiting for data


def test_a_run_that_waits_for_its_data():
    told = Story(8, 100, more=lambda r, s: {"dataloader": 60}).tell()
    found = waiting_for_data(times_of(told), 0.17, lambda rank: None)
    assert found is not None
    usual = 4 + 60
    share = 100 * usual / (110 + 60)
    assert number(found, "waiting") == pytest.approx(share, rel=0.05)
    assert found.cost == pytest.approx(usual * MS, rel=0.05)


@pytest.mark.parametrize(
    "story",
    [
        Story(8, 100),
        Story(8, 100, more=lambda r, s: {"dataloader": 100} if r == 3 else {}),
        Story(8, 100, more=lambda r, s: {"dataloader": 60}, absent=("dataloader",)),
        Story(8, 100, more=lambda r, s: {"dataloader": 900} if s < 5 else {}),
        Story(8, 5, more=lambda r, s: {"dataloader": 60}),
    ],
    ids=["balanced", "one rank", "not recorded", "first batches", "few steps"],
)
def test_a_run_that_does_not(story):
    assert waiting_for_data(times_of(story.tell()), 0.17, lambda rank: 2) is None


# Every n-th step


def single(told: Told, rank: int = 0):
    seconds = np.array(told.total[rank]) * MS
    parts = {
        name: np.array(told.parts[name][rank], float) * MS
        for name in PARTS
        if told.parts[name][rank][0] is not None
    }
    return slow_every(np.arange(1000, 1000 + len(seconds)), seconds, parts, rank)


@pytest.mark.parametrize(
    ("every", "part"), [(10, "checkpoint"), (25, "eval"), (7, "dataloader")]
)
def test_slow_steps_at_equal_distances(every, part):
    def more(rank, step):
        slow = {part: 250.0} if step % every == every - 1 else {}
        return {**slow, "forward": 900.0} if step == 0 else slow

    found = single(Story(1, 200, more=more).tell())
    assert found is not None
    assert found.sentence.startswith(f"One step in {every} is slow")
    assert f"; {PART_TEXT[part]} takes 2" in found.sentence
    assert (found.step - 1000) % every == every - 1
    assert number(found, "slow") == pytest.approx(0.25 + 0.11, rel=0.1)


def test_slow_steps_of_other_causes_do_not_hide_those_at_equal_distances():
    def more(rank, step):
        return {
            "checkpoint": 240.0 if step % 100 == 99 else 0.0,
            "eval": 400.0 if step % 250 == 249 else 0.0,
            "forward": 2500.0 if step == 0 else 0.0,
        }

    found = single(Story(1, 600, more=more).tell())
    assert found is not None
    assert "One step in 100" in found.sentence
    assert "the checkpoint takes" in found.sentence
    assert number(found, "slow_steps") == 6


def test_slow_steps_next_to_each_other_are_one_event():
    more = lambda r, s: {"eval": 200.0} if s % 40 < 2 else {}  # noqa: E731
    found = single(Story(1, 400, more=more).tell())
    assert found is not None
    assert "One step in 40" in found.sentence


@pytest.mark.parametrize(
    "more",
    [
        lambda r, s: {},
        lambda r, s: {"eval": 300.0} if s in (3, 17, 60, 71, 140, 151, 190) else {},
        lambda r, s: {"eval": 300.0} if s in (50, 100) else {},
        lambda r, s: {"checkpoint": 5.0} if s % 10 == 0 else {},
    ],
    ids=["none", "at random", "too few", "hardly slow"],
)
def test_steps_that_are_not(more):
    assert single(Story(1, 200, more=more).tell()) is None


# Growth


def grown(told: Told):
    times = times_of(told)
    return growing(np.arange(times.seconds.shape[1]), times)


def test_steps_that_take_ever_longer():
    told = Story(8, 300, more=lambda r, s: {"other": 0, "forward": s * 0.2}).tell()
    found = grown(told)
    assert found is not None
    assert number(found, "growth") == pytest.approx(200 * MS, rel=0.1)
    assert found.sentence.endswith("mostly in forward.")
    assert found.cost > 0.03


def test_parts_that_take_turns_between_ranks_are_not_called_unexplained():
    # In turns one of two ranks works longer and the other waits for it: the middle of
    # each part is the small one, and the step is longer than their sum.
    def turns(rank, step):
        mine = rank == step % 2
        longer = 100 + step * 0.2
        return {"optimizer" if mine else "communication": longer}

    found = grown(Story(2, 300, more=turns).tell())
    assert found is not None
    assert found.sentence.endswith(("in the optimizer.", "in communication."))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "story",
    [
        Story(1, 120, noise=0.5),
        Story(4, 300, noise=0.3),
        Story(4, 60, noise=0.3),
        Story(4, 300, more=lambda r, s: {"checkpoint": 400} if s % 50 == 0 else {}),
        Story(4, 300, more=lambda r, s: {"forward": 500 - 10 * s if s < 30 else 0}),
        Story(4, 300, more=lambda r, s: {"forward": -0.05 * s}),
        Story(4, 25, more=lambda r, s: {"forward": s}),
    ],
    ids=["noise", "ranks", "short", "periodic", "warm-up", "shrinking", "few"],
)
def test_steps_that_do_not(story, seed):
    story.seed = seed
    assert grown(story.tell()) is None
