"""Settings that contradict each other: refused with keys, places and remedy."""

from __future__ import annotations

import pytest

from collector.config import RecordConfig, load
from collector.config.sections import ActivationsConfig
from collector.errors import ConfigError


def error_of(*args, **kwargs):
    with pytest.raises(ConfigError) as raised:
        load(*args, **kwargs)
    return str(raised.value)


@pytest.mark.parametrize(
    "schedule",
    [
        {"warmup": 5},
        {"warmup": 5, "active": 0},
        {"active": 3, "wait": 2, "skip_first": 1, "repeat": 0},
        {"active": 3, "warmup": 0},
        {"choose": "os.getcwd", "active": 1, "wait": 3},
    ],
)
def test_schedules_that_are_right(schedule):
    for key, value in schedule.items():
        assert getattr(load(schedule=schedule).schedule, key) == value


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ({"active": -1}, "must be a whole number from 0 up, got the number -1"),
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
        {"dumps": "yaml"},
        {"dumps": ["history", "modules"]},
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
    words = r"'activations.functions' in RecordConfig\(\) must be two"
    with pytest.raises(ConfigError, match=words):
        RecordConfig(activations=ActivationsConfig(functions=(print,)))
