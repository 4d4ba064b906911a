"""Settings: one precedence, and errors that name the key, the place and the remedy."""

from __future__ import annotations

import itertools

import pytest

from memboard import HistoryConfig
from memboard.collector.config import (
    RecordConfig,
    load,
    variable,
)


@pytest.mark.parametrize(
    "layers", list(itertools.product([False, True], repeat=3)), ids=str
)
@pytest.mark.parametrize(
    ("path", "default"),
    [("max_file_bytes", 2**32), ("host", 1.0), ("history.max_entries", 100_000)],
)
def test_keywords_beat_variables_beat_the_file_beat_defaults(
    write, monkeypatch, layers, path, default
):
    in_file, in_environment, in_keywords = layers
    name, _, leaf = path.partition(".")
    expected, config, keywords = default, None, {}
    if in_file:
        config, expected = (
            write(f"{name}: {{{leaf}: 100}}" if leaf else f"{name}: 100"),
            100,
        )
    if in_environment:
        monkeypatch.setenv(variable(path), "200")
        expected = 200
    if in_keywords:
        keywords, expected = {name: {leaf: 300} if leaf else 300}, 300
    effective = load(config, **keywords)
    value = getattr(effective, name)
    assert (getattr(value, leaf) if leaf else value) == expected


def test_layers_merge_leaf_by_leaf(write, monkeypatch):
    monkeypatch.setenv("MEMBOARD_HISTORY_MAX_ENTRIES", "7")
    path = write("history: {enabled: false, max_entries: 3}\nhost: 4\n")
    config = load(path, history={"stacks": "all"})
    assert config.history == HistoryConfig(max_entries=7, stacks="all")
    assert config.host == 4.0


def test_a_files_name_may_come_from_the_environment(write, monkeypatch):
    monkeypatch.setenv("MEMBOARD_CONFIG", str(write("max_file_bytes: 99")))
    assert load().max_file_bytes == 99
    assert load({}).max_file_bytes == 2**32, "a given config is used instead of it"


def test_every_kind_of_config_is_taken(write):
    path = write("flush_seconds: 5\n")
    made = RecordConfig(flush_seconds=5.0)
    assert load(path) == load(str(path)) == load({"flush_seconds": 5}) == load(made)
    assert load(made) == made
    assert load(made, flush_seconds=6).flush_seconds == 6.0


def test_an_empty_file_and_empty_sections_set_nothing(write):
    assert load(write("")) == RecordConfig()
    assert load(write("# all commented out\nhistory:\n")) == RecordConfig()


@pytest.mark.parametrize(
    ("given", "expected"), [(False, False), (True, 1.0), (5, 5.0), (0.5, 0.5)]
)
def test_a_source_is_an_interval_or_a_switch(given, expected):
    for config in (load(host=given), load({"host": given}), RecordConfig(host=given)):
        assert config.host == expected
        assert type(config.host) is type(expected)


@pytest.mark.parametrize(
    ("variable_name", "text", "path", "expected"),
    [
        ("MEMBOARD_ENABLED", "0", "enabled", False),
        ("MEMBOARD_ENABLED", "Yes", "enabled", True),
        ("MEMBOARD_SCALARS", "off", "scalars", False),
        ("MEMBOARD_RANK", "7", "rank", 7),
        ("MEMBOARD_RANK", "null", "rank", None),
        ("MEMBOARD_DEVICE", "3", "device", 3),
        ("MEMBOARD_DEVICE", "off", "device", "off"),
        ("MEMBOARD_DEVICE_PEAKS", "run", "device_peaks", "run"),
        ("MEMBOARD_FLUSH_SECONDS", "1e1", "flush_seconds", 10.0),
        ("MEMBOARD_FLUSH_SECONDS", "", "flush_seconds", 2.0),
        ("MEMBOARD_OOM_ENABLED", "false", "oom.enabled", False),
        ("MEMBOARD_HOST", "false", "host", False),
        ("MEMBOARD_HOST", "2.5", "host", 2.5),
        ("MEMBOARD_HOST", "1", "host", 1.0),
        ("MEMBOARD_HOST", "true", "host", 1.0),
        ("MEMBOARD_CLOCK", "off", "clock", "off"),
    ],
)
def test_variables_read_as_their_type(monkeypatch, variable_name, text, path, expected):
    monkeypatch.setenv(variable_name, text)
    value = load()
    for name in path.split("."):
        value = getattr(value, name)
    assert value == expected
    assert type(value) is type(expected)


def test_a_sections_own_variable_wins_over_its_short_form(monkeypatch):
    monkeypatch.setenv("MEMBOARD_HISTORY_ENABLED", "false")
    monkeypatch.setenv("MEMBOARD_HISTORY", "1")
    assert not load().history.enabled


@pytest.mark.parametrize(
    "number", ["3e14", "3E14", "3e+14", ".3e15", "3.0e14", "3.e14"]
)
def test_a_number_may_be_written_with_an_exponent(write, number):
    config = load(write(f"flops: {{device_peak: {number}}}\nmax_file_bytes: 1e9\n"))
    assert config.flops.device_peak == 3e14
    assert (config.max_file_bytes, type(config.max_file_bytes)) == (10**9, int)


def test_a_text_that_looks_like_a_number_stays_one(write):
    assert (
        load(write("torch_profiler:\n  filename: 1e5\n")).torch_profiler.filename
        == "1e5"
    )


def test_yamls_bare_off_means_off(write):
    assert load(write("device: off\n")).device == "off"
