"""The schedule's arithmetic: known strings, and what must hold for every pattern."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memboard as mb
from memboard.collector.config.schedule import Action, Cycles, Schedule, schedule_of
from memboard.collector.config.sections import ScheduleConfig
from memboard.collector.errors import ConfigError


def text(schedule: Schedule, length: int, *, epoch: int | None = None) -> str:
    """One letter per position; `epoch`: its length, so that the last one is known."""
    return "".join(
        schedule.action(at, is_last=epoch is not None and at == epoch - 1).value
        for at in range(length)
    )


def cycles(*numbers: int, resume: int = 0) -> Schedule:
    return Schedule(Cycles(*numbers), resume=resume)


# The strings of the well-known cyclic schedule.


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (Schedule(Cycles()), "wAAAS........."),
        (cycles(1, 1, 1, 2, 1), "..wAS........."),
        (cycles(1, 1, 1, 2, 2), "..wAS.wAS....."),
        (cycles(1, 2, 3, 4, 1), "...wwwAAAS.............."),
        (cycles(1, 2, 3, 4, 0), "...wwwAAAS..wwwAAAS..www"),
        (cycles(1, 2, 3, 4, 1, resume=4), ".......wwwAAAS.........."),
    ],
)
def test_cycles(schedule, expected):
    assert text(schedule, len(expected)) == expected


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({}, "wAAAS........."),
        ({"skip_first": 1, "wait": 1, "active": 2}, "..wAS........."),
        ({"skip_first": 1, "wait": 1, "active": 2, "repeat": 2}, "..wAS.wAS....."),
    ],
)
def test_the_public_schedule_is_one_of_cycles(numbers, expected):
    schedule = mb.Schedule(**numbers)
    assert text(schedule, len(expected)) == expected
    letters = {".": "SKIP", "w": "WARMUP", "A": "ACTIVE", "S": "ACTIVE_AND_SAVE"}
    for at, letter in enumerate(expected):
        assert schedule.action(at) is mb.Action[letters[letter]]


def test_repeat_counts_windows():
    for repeat in (1, 2, 3):
        letters = text(mb.Schedule(wait=2, active=2, repeat=repeat), 40)
        assert letters.count("S") == repeat


def test_only_the_first_epoch_was_partly_seen_by_an_earlier_start():
    schedule = cycles(1, 2, 3, 4, 1, resume=4)
    first = "".join(schedule.action(at, epoch=0).value for at in range(4, 16))
    later = "".join(schedule.action(at, epoch=1).value for at in range(16))
    assert first == "...wwwAAAS.."
    assert later == "...wwwAAAS......"


def test_a_resumed_training_warms_up_where_a_fresh_one_collects():
    assert cycles(1, 2, 3, 4, 1).action(7) is Action.ACTIVE
    assert cycles(1, 2, 3, 4, 1, resume=4).action(7) is Action.WARMUP


def test_the_end_of_an_epoch_ends_the_cycle_under_way():
    assert text(cycles(1, 2, 3, 4, 0), 8, epoch=8) == "...wwwAS"
    # Nothing of the second cycle was collected yet: there is nothing to end.
    assert text(cycles(0, 2, 1, 3, 0), 9, epoch=9) == "..wAAS..w"


def test_repeated_cycles_go_on_after_the_epoch():
    schedule = cycles(0, 2, 1, 3, 0)
    assert text(schedule, 18) == "..wAAS" * 3


def test_no_active_ones_mean_no_end():
    schedule = cycles(0, 0, 2, 0, 1)
    assert text(schedule, 8) == "wwAAAAAA"
    assert schedule.action(10**12) is Action.ACTIVE


# Calls that cover many positions.


def test_a_batch_is_collected_where_any_of_its_samples_is():
    schedule = cycles(0, 0, 1, 1, 1)  # sample 1 alone
    batches = [(0, 0), (1, 4), (5, 8)]
    assert [schedule.action(b, a).value for a, b in batches] == ["w", "S", "."]


def test_a_batch_that_reaches_into_the_next_cycle_does_not_end_it():
    schedule = cycles(0, 1, 0, 3, 0)  # .AAS.AAS
    assert schedule.action(5, 2) is Action.ACTIVE
    assert schedule.action(4, 2) is Action.ACTIVE_AND_SAVE
    assert schedule.action(400, 0) is Action.ACTIVE_AND_SAVE


# Your own.


def test_a_callable_decides_with_a_yes_or_an_action():
    schedule = Schedule(lambda at: at % 3 == 0)
    assert text(schedule, 7) == "S..S..S"
    schedule = Schedule(lambda at: Action.ACTIVE if at else Action.WARMUP)
    assert text(schedule, 3) == "wAA"
    assert text(schedule, 3, epoch=3) == "wAS"


# Bad input.


@pytest.mark.parametrize(
    "make",
    [
        lambda: Cycles(wait=-1),
        lambda: Cycles(repeat=-1),
        lambda: Cycles(active=-1),
    ],
)
def test_a_schedule_that_could_never_collect_is_refused(make):
    with pytest.raises(ValueError, match="'schedule\\.") as told:
        make()
    assert isinstance(told.value, ConfigError)


def test_the_settings_name_one_or_the_other():
    assert text(schedule_of(ScheduleConfig()), 4) == "wS.."
    config = ScheduleConfig(warmup=2, active=0, resume=1)
    assert text(schedule_of(config), 5) == ".wwAA"
    config = ScheduleConfig(skip_first=1, wait=1, warmup=1, active=2, repeat=2)
    assert text(schedule_of(config), 14) == "..wAS.wAS....."
    assert text(schedule_of(ScheduleConfig(choose=lambda at: at == 2)), 4) == "..S."
    with pytest.raises(ConfigError, match=r"'schedule\.choose' names no_such\.thing"):
        schedule_of(ScheduleConfig(choose="no_such.thing"))


# What holds for all.

SMALL = st.integers(0, 6)
PATTERNS = st.builds(Cycles, SMALL, SMALL, SMALL, SMALL, SMALL)


@given(PATTERNS, st.integers(0, 9))
def test_counts_agree_with_single_positions(pattern, resume):
    schedule = Schedule(pattern, resume=resume)
    letters = text(schedule, 60)
    assert letters[:resume] == "." * resume
    seen = letters[resume:]
    for end in range(len(seen) + 1):
        assert pattern.num_warmups(end) == seen[:end].count("w")
        assert pattern.num_ends(end) == seen[:end].count("S")
        collected = seen[:end].count("A") + seen[:end].count("S")
        assert pattern.num_active(end) == collected


@given(PATTERNS, st.integers(0, 50), st.integers(0, 12))
def test_a_range_is_collected_exactly_where_one_of_its_positions_is(
    pattern, start, length
):
    schedule = Schedule(pattern)
    single = [schedule.action(at) for at in range(start, start + length + 1)]
    whole = schedule.action(start + length, start)
    assert whole.collects == any(action.collects for action in single)
    if whole.collects:
        assert (whole is Action.ACTIVE) == (single[-1] is Action.ACTIVE)
    else:
        assert (whole is Action.WARMUP) == (Action.WARMUP in single)


@given(PATTERNS, st.integers(0, 9), st.integers(0, 60), st.integers(0, 1))
def test_a_stretch_is_of_one_action(pattern, resume, position, epoch):
    schedule = Schedule(pattern, resume=resume)
    action = schedule.action(position, epoch=epoch)
    until = schedule.same_until(position, action, epoch=epoch)
    assert until > position
    assert {
        schedule.action(at, epoch=epoch)
        for at in range(position, min(until, position + 200))
    } == {action}


def test_a_stretch_without_an_end_is_asked_for_seldom():
    window = cycles(0, 0, 1, 2, 1)
    assert window.same_until(3, Action.SKIP) > 10_000
    assert cycles(0, 0, 0, 0, 1).same_until(0, Action.ACTIVE) > 10_000


def test_of_a_callable_each_position_is_asked_for():
    schedule = Schedule(lambda position: position == 7)
    assert schedule.same_until(3, Action.SKIP) == 4
