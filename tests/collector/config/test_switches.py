"""Options that are given without the switch they need: on, or refused; never nothing."""

from __future__ import annotations

import pytest

import memboard as mb
from memboard.collector.config import RecordConfig, load, sections, settings
from memboard.collector.config.sections import HistoryConfig, TorchProfilerConfig
from memboard.collector.errors import ConfigError
from tests.recordings import read_run

OFF = {
    "torch_profiler": ("with_stack", True),
    "modules": ("root", "model"),
    "history": ("max_entries", 500),
}
"""What is off by default, each with one of its options."""


def test_these_are_all_that_is_off_by_default():
    is_off = {
        n for n, held in sections().items() if getattr(held, "enabled", 1) is False
    }
    assert is_off == set(OFF)


@pytest.mark.parametrize("name", OFF)
@pytest.mark.parametrize("form", ["file", "mapping", "keyword", "variable"])
def test_options_mean_on(tmp_path, monkeypatch, name, form):
    key, value = OFF[name]
    if form == "file":
        path = tmp_path / "a.yaml"
        path.write_text(f"{name}:\n  {key}: {str(value).lower()}\n")
        config = load(path)
    elif form == "mapping":
        config = load({name: {key: value}})
    elif form == "keyword":
        config = load(**{name: {key: value}})
    else:
        monkeypatch.setenv(f"MEMBOARD_{name}_{key}".upper(), str(value))
        config = load()
    assert config.leaf(f"{name}.enabled") is True
    assert config.leaf(f"{name}.{key}") == value


@pytest.mark.parametrize("name", OFF)
def test_also_those_that_are_the_defaults(name):
    key, _ = OFF[name]
    default = settings()[f"{name}.{key}"].default
    assert load({name: {key: default}}).leaf(f"{name}.enabled")


@pytest.mark.parametrize("name", OFF)
def test_off_that_was_said_stays(tmp_path, monkeypatch, name):
    key, value = OFF[name]
    off = f"{name}.enabled"
    assert not load({name: {"enabled": False, key: value}}).leaf(off)
    assert not load([{name: False}, {name: {key: value}}]).leaf(off)
    assert not load([{name: {key: value}}, {name: False}]).leaf(off)
    monkeypatch.setenv(f"MEMBOARD_{name}".upper(), "0")
    assert not load({name: {key: value}}).leaf(off)
    assert load({name: {key: value}}, **{name: True}).leaf(off), "keywords win"


@pytest.mark.parametrize("nothing", [None, {}])
@pytest.mark.parametrize("name", OFF)
def test_no_options_mean_nothing(name, nothing):
    assert load({name: nothing}) == RecordConfig()


def test_settings_made_before_say_a_section_where_it_differs():
    plain = RecordConfig(max_file_bytes=50)
    config = load(plain, torch_profiler={"with_stack": True})
    assert config.torch_profiler == TorchProfilerConfig(enabled=True, with_stack=True)
    assert load([{"history": {"max_entries": 9}}, plain]) == plain
    half = RecordConfig(history=HistoryConfig(max_entries=9))
    assert not load(half, history={"stacks": "all"}).history.enabled
    assert load(load(half).to_plain()) == half


def test_what_is_recorded_says_that_it_was_on(tmp_path):
    with mb.record(tmp_path, modules={"root": ""}, scalars=False) as rec:
        rec.step()
    assert read_run(tmp_path)[0].header.config["modules"]["enabled"] is True


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"remote": {"prune": True}},
            "'remote.prune' in the given mapping has no effect",
        ),
        ({"remote": {"traces": None}}, "without 'remote.url'. Give the url to copy to"),
        ({"dumps_dir": "/x"}, "without 'dumps'. Name those"),
        (
            {"torch_profiler": {"stacks_metric": "self_device"}},
            "has no effect without 'torch_profiler.stacks_filename'",
        ),
    ],
)
def test_where_nobody_could_guess_it_is_refused(given, words):
    with pytest.raises(ConfigError) as caught:
        load(given)
    assert words in str(caught.value)
    assert "remove" in str(caught.value)


def test_a_variable_is_named_that_does_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMBOARD_REMOTE_PRUNE", "1")
    with pytest.raises(
        ConfigError, match="variable MEMBOARD_REMOTE_PRUNE has no effect"
    ):
        mb.record(tmp_path)


@pytest.mark.parametrize(
    "given",
    [
        {"remote": {"url": "", "prune": True}},
        {"remote": {"url": "memory://a", "prune": True}},
    ],
)
def test_a_switch_that_was_said_is_enough(given):
    ((name, leaves),) = given.items()
    for leaf, value in leaves.items():
        assert load(given).leaf(f"{name}.{leaf}") == value


def test_the_switch_may_be_another_layers(monkeypatch):
    monkeypatch.setenv("MEMBOARD_REMOTE", "memory://a")
    assert load({"remote": {"prune": True}}).remote.prune
