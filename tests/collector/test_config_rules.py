"""Settings that contradict each other: refused with keys, places and remedy."""

from __future__ import annotations

import pytest

from collector.config import RecordConfig, load
from collector.config.sections import ActivationsConfig, ScheduleConfig
from collector.errors import ConfigError


def error_of(*args, **kwargs):
    with pytest.raises(ConfigError) as raised:
        load(*args, **kwargs)
    return str(raised.value)


def test_a_window_that_is_never_reached(tmp_path, monkeypatch):
    path = tmp_path / "a.yaml"
    path.write_text("schedule:\n  max_iter: 2\n")
    monkeypatch.setenv("MEMBOARD_SCHEDULE_WARMUP_ITERS", "2")
    assert error_of(path) == (
        f"'schedule.max_iter' in {path}, line 2 is 2 and 'schedule.warmup_iters' in the"
        " environment variable MEMBOARD_SCHEDULE_WARMUP_ITERS is 2, so that no call"
        " would ever be collected. Make max_iter more than warmup_iters, or 0 for no"
        " end, or remove it for one call."
    )


@pytest.mark.parametrize(
    "schedule",
    [
        {"warmup_iters": 5},
        {"warmup_iters": 5, "max_iter": 0},
        {"warmup_iters": 0, "max_iter": 1},
        {"active": 3, "wait": 2, "skip_first": 1, "repeat": 0},
        {"active": 3, "warmup": 0},
        {"choose": "os.getcwd", "max_iter": 1, "wait": 3},
    ],
)
def test_schedules_that_are_right(schedule):
    for key, value in schedule.items():
        assert getattr(load(schedule=schedule).schedule, key) == value


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ({"wait": 2}, "'schedule.wait' in the keywords says nothing without"),
        ({"repeat": 0}, "'schedule.repeat' in the keywords says nothing without"),
        ({"active": 2, "max_iter": 4}, "says nothing beside 'schedule.active'"),
        ({"active": 2, "warmup_iters": 0}, "schedule.warmup is the warmup of a cycle"),
        ({"active": 0}, "must be a whole number from 1 up or null, got the number 0"),
        ({"max_iter": -1}, "must be a whole number from 0 up or null"),
        ({"unit": "day"}, "'call', 'step', 'sample', 'token' or 'epoch'"),
    ],
)
def test_schedules_that_are_wrong(schedule, words):
    assert words in error_of(schedule=schedule)


def test_packing_without_unpacking():
    assert error_of(activations={"functions": "os.getcwd"}) == (
        "'activations.functions' in the keywords must be two, one that packs and one"
        " that unpacks, got 1. Add the other (collector.config.values.unchanged does"
        " nothing), or remove it."
    )


@pytest.mark.parametrize(
    "made",
    [
        {"merge_on_close": True},
        {"dumps": {"yaml": True}},
        {"dumps": {"history": True}},
    ],
)
def test_what_is_read_at_the_end_is_not_pruned_before(made):
    pruned = {"url": "memory://a", "prune": True}
    text = error_of(made, remote=pruned)
    assert "'remote.prune' in the keywords deletes what" in text
    assert "memboard merge" in text
    load(made, remote={**pruned, "prune": False})
    load(made, remote={**pruned, "url": ""})


def test_settings_made_by_hand_are_held_to_it_too():
    with pytest.raises(ConfigError, match=r"'schedule.wait' in RecordConfig\(\)"):
        RecordConfig(schedule=ScheduleConfig(wait=1))
    with pytest.raises(ConfigError, match="must be two"):
        RecordConfig(activations=ActivationsConfig(functions=(print,)))
