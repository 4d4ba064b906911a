"""Settings: one precedence, and errors that name the key, the place and the remedy."""

from __future__ import annotations

import itertools
import json
import logging
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta
from msgspec.structs import fields, replace

from collector import HistoryConfig, OomConfig
from collector.config import (
    RecordConfig,
    load,
    sections,
    settings,
    variable,
)
from collector.config import layers as config_layers
from collector.config.table import as_yaml
from collector.core.warn_once import WarnOnce
from collector.errors import ConfigError, MemBoardError


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    import os

    for name in list(os.environ):
        if name.startswith("MEMBOARD_"):
            monkeypatch.delenv(name)


@pytest.fixture
def yaml_file(tmp_path):
    def write(text):
        path = tmp_path / "memboard.yaml"
        path.write_text(text)
        return path

    return write


def error_of(*args, **kwargs):
    with pytest.raises(ConfigError) as raised:
        load(*args, **kwargs)
    assert isinstance(raised.value, (MemBoardError, ValueError))
    return str(raised.value)


# Precedence.


@pytest.mark.parametrize(
    "layers", list(itertools.product([False, True], repeat=3)), ids=str
)
@pytest.mark.parametrize(
    ("path", "default"),
    [("max_file_bytes", 2**32), ("host", 1.0), ("history.max_entries", 100_000)],
)
def test_keywords_beat_variables_beat_the_file_beat_defaults(
    yaml_file, monkeypatch, layers, path, default
):
    in_file, in_environment, in_keywords = layers
    name, _, leaf = path.partition(".")
    expected, config, keywords = default, None, {}
    if in_file:
        config, expected = (
            yaml_file(f"{name}: {{{leaf}: 100}}" if leaf else f"{name}: 100"),
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


def test_layers_merge_leaf_by_leaf(yaml_file, monkeypatch):
    monkeypatch.setenv("MEMBOARD_HISTORY_MAX_ENTRIES", "7")
    path = yaml_file("history: {enabled: false, max_entries: 3}\nhost: 4\n")
    config = load(path, history={"stacks": "all"})
    assert config.history == HistoryConfig(max_entries=7, stacks="all")
    assert config.host == 4.0


def test_a_files_name_may_come_from_the_environment(yaml_file, monkeypatch):
    monkeypatch.setenv("MEMBOARD_CONFIG", str(yaml_file("max_file_bytes: 99")))
    assert load().max_file_bytes == 99
    assert load({}).max_file_bytes == 2**32, "a given config is used instead of it"


def test_every_kind_of_config_is_taken(yaml_file):
    path = yaml_file("flush_seconds: 5\n")
    made = RecordConfig(flush_seconds=5.0)
    assert load(path) == load(str(path)) == load({"flush_seconds": 5}) == load(made)
    assert load(made) == made
    assert load(made, flush_seconds=6).flush_seconds == 6.0


def test_an_empty_file_and_empty_sections_set_nothing(yaml_file):
    assert load(yaml_file("")) == RecordConfig()
    assert load(yaml_file("# all commented out\nhistory:\n")) == RecordConfig()


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


def test_yamls_bare_off_means_off(yaml_file):
    assert load(yaml_file("device: off\n")).device == "off"


def test_variables_of_the_viewer_are_left_alone(monkeypatch):
    monkeypatch.setenv("MEMBOARD_PLUGIN_ANYTHING", "1")
    assert load() == RecordConfig()


# Errors. The texts are the interface: they are what a person reads at 2 a.m.


def test_an_unknown_key_in_a_file(yaml_file):
    path = yaml_file("# mine\nflush_seconds: 2\nmax_file_byte: 5\n")
    assert error_of(path) == (
        f"unknown key 'max_file_byte' in {path}, line 3: did you mean 'max_file_bytes'?"
        " Rename it or remove it; `python -m collector.config.table --markdown` lists every"
        " key."
    )


def test_an_unknown_key_of_a_section(yaml_file):
    path = yaml_file("history:\n  enabled: true\n  stack: all\n")
    assert error_of(path).startswith(
        f"unknown key 'history.stack' in {path}, line 3: did you mean 'history.stacks'?"
    )


def test_an_unknown_keyword():
    assert error_of(flush_second=1).startswith(
        "unknown key 'flush_second' in the keywords: did you mean 'flush_seconds'?"
    )
    assert error_of({"zzzzzz": 1}).startswith(
        "unknown key 'zzzzzz' in the given mapping: no key is like it."
    )


def test_an_unknown_variable_is_told_once_and_stops_nothing(monkeypatch, caplog):
    monkeypatch.setenv("MEMBOARD_FLUSH_SECOND", "1")
    monkeypatch.setattr(config_layers, "_warn_once", WarnOnce())
    with caplog.at_level(logging.WARNING):
        assert load() == load() == RecordConfig()
    assert caplog.messages == [
        (
            "memboard: unknown environment variable MEMBOARD_FLUSH_SECOND is ignored:"
            " did you mean 'MEMBOARD_FLUSH_SECONDS'? Rename it, or unset it."
        )
    ]


def test_a_variable_of_the_viewer_is_no_setting(monkeypatch):
    monkeypatch.setenv("MEMBOARD_CACHE_DIR", "/tmp/cache")
    monkeypatch.setenv("MEMBOARD_PLUGIN_ANYTHING", "1")
    assert load() == RecordConfig()


def test_a_wrong_type_in_a_file(yaml_file):
    path = yaml_file("\n\nflush_seconds: fast\n")
    assert error_of(path) == (
        f"'flush_seconds' in {path}, line 3 must be a number from 0.05 to 3600, got the"
        " text 'fast'. Correct it, or remove it for the default, 2.0."
    )


def test_a_wrong_value_in_a_variable(monkeypatch):
    monkeypatch.setenv("MEMBOARD_HOST", "often")
    assert error_of() == (
        "'host' in the environment variable MEMBOARD_HOST must be true, false or a number"
        " from 0.05 to 86400, got the text 'often'. Correct it, or remove it for the default, 1.0."
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"enabled": 1}, "true or false, got the number 1"),
        ({"enabled": "yes"}, "true or false, got the text 'yes'"),
        (
            {"rank": 10**7},
            "a whole number from 0 to 9999999 or null, got the number 10",
        ),
        ({"max_file_bytes": 64.0}, "got the number 64.0"),
        ({"max_file_bytes": True}, "got true"),
        ({"max_file_bytes": None}, "got null"),
        ({"rank": -1}, "a whole number from 0 to 9999999 or null, got the number -1"),
        ({"flush_seconds": float("nan")}, "got the number nan"),
        ({"flush_seconds": float("inf")}, "got the number inf"),
        ({"flush_seconds": 10**400}, "got a int"),
        ({"device": "cuda"}, "'auto', 'off' or a whole number from 0 up, got the text"),
        ({"device": True}, "got true"),
        ({"device_peaks": "epoch"}, "'step' or 'run', got the text 'epoch'"),
        ({"device_peaks": ["run"]}, "got a list"),
        ({"host": 0}, "false or a number from 0.05 to 86400, got the number 0"),
        ({"host": "often"}, "'host' in the given mapping must be true, false or a"),
        ({"history": "all"}, "'history' in the given mapping must be true, false or a"),
        ({"host": [1]}, "got a list"),
    ],
)
def test_what_a_value_must_be(given, words):
    assert words in error_of(given)


def test_a_text_of_any_length_stays_short_in_the_message():
    assert len(error_of({"flush_seconds": "x" * 10**6})) < 400


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("host: {enabled: [", "is not valid YAML"),
        ("- a\n- b\n", "must hold keys and values (flush_seconds: 2), not a list"),
        ("just words\n", "not the text 'just words'"),
        ("rank: 1\nrank: 2\n", "'rank' stands twice in"),
        ("oom:\n  enabled: true\n  enabled: false\n", "'oom.enabled' stands twice in"),
        ("a: 1\n---\nb: 2\n", "is not valid YAML"),
        ("a: !!python/object/apply:os.getcwd []\n", "is not valid YAML"),
        ("? [1, 2]\n: 3\n", "is not valid YAML"),
        ("1: 2\n", "unknown key '1' in"),
    ],
)
def test_files_that_are_not_settings(yaml_file, text, words):
    path = yaml_file(text)
    message = error_of(path)
    assert words in message
    assert str(path) in message


def test_a_yaml_error_names_its_line(yaml_file):
    path = yaml_file("rank: 1\nlocal_rank: '2\n")
    assert error_of(path).startswith(f"{path}, line ")


def test_a_file_that_cannot_be_read(tmp_path, monkeypatch):
    assert error_of(tmp_path / "none.yaml") == (
        f"cannot read the configuration file {tmp_path}/none.yaml: No such file or"
        " directory. Correct the path given as config or in MEMBOARD_CONFIG."
    )
    assert "cannot read" in error_of(tmp_path)
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00rank")
    assert "it is not UTF-8 text" in error_of(tmp_path / "b.yaml")
    assert error_of(5) == (
        "config must be a file, a mapping or a RecordConfig, or a list of them, got the"
        " number 5."
    )


def test_settings_made_by_hand_are_checked_too():
    with pytest.raises(ConfigError, match=r"'flush_seconds' in RecordConfig\(\) must"):
        RecordConfig(flush_seconds="2")
    with pytest.raises(
        ConfigError, match=r"'enabled' in HistoryConfig\(\) must be true"
    ):
        HistoryConfig(enabled="no")
    with pytest.raises(
        ConfigError, match=r"'history' in RecordConfig\(\) must be a Hi"
    ):
        RecordConfig(history=False)
    with pytest.raises(AttributeError):
        RecordConfig().rank = 3
    with pytest.raises(TypeError):
        RecordConfig(False)


# Round trips.


def test_plain_data_is_json_and_loads_back():
    made = RecordConfig(rank=3, device=1, host=False, oom=OomConfig(enabled=False))
    plain = json.loads(json.dumps(made.to_plain()))
    assert load(plain) == made
    assert plain["host"] is False
    assert plain["oom"]["enabled"] is False


def limits_of(setting):
    (limits,) = [meta for meta in setting.kinds.values() if meta] or [Meta()]
    return (limits.ge or 0, 2**40 if limits.le is None else limits.le)


def values_of(setting):
    least, most = limits_of(setting)
    kinds = {
        bool: st.booleans(),
        int: st.integers(int(least), int(most)),
        float: st.floats(least, most),
        type(None): st.none(),
    }
    if setting.takes_options:
        return st.just({})  # what is in them is not recorded
    if setting.path == "remote.prune":
        return st.just(False)  # which merge_on_close and dumps do not go with
    if setting.path == "remote.url":
        return st.sampled_from(["", "memory://a/{run_name}", "s3://b/{rank:05d}"])
    if setting.path.startswith("remote.") and setting.takes_text:
        return st.none() | st.sampled_from(["{path}", "/a {node_rank}/{name}"])
    if setting.path.startswith("torch_profiler.") and setting.path.endswith(
        "_filename"
    ):
        return st.just("")  # which needs others to be on
    if setting.path == "torch_profiler.filename":
        return st.sampled_from(["{rank}", "a b/ep{epoch:03d}", "x.{total_wct:.2f}"])
    if {bool, float} <= setting.kinds.keys():
        kinds[bool] = st.just(False)  # true is the default number
    choices = [kinds[kind] for kind in setting.kinds if kind in kinds]
    choices += [*map(st.just, setting.words)]
    if setting.takes_text or (setting.many and not setting.words):
        choices.append(st.text(printable, min_size=1 if setting.many else 0))
    if setting.takes_code:
        choices = [st.sampled_from(["os.getcwd", "os.path.join", "package.mod.func"])]
    if setting.path == "activations.functions":
        return st.just(()) | st.tuples(*choices * 2)
    if setting.many:
        return st.lists(st.one_of(choices), unique=True).map(tuple)
    return st.one_of(choices)


SWITCHES = ("remote.url", "dumps", "torch_profiler.stacks_filename")

printable = st.characters(exclude_categories=["C", "Z"])


@given(
    st.fixed_dictionaries(
        # With a callable of one's own, all else in the schedule may be anything.
        # Switches are always said: without them options are on, or refused.
        {
            "schedule.choose": st.just("os.getcwd"),
            **{path: values_of(settings()[path]) for path in SWITCHES},
        },
        optional={
            path: values_of(setting)
            for path, setting in settings().items()
            if path not in ("schedule.choose", *SWITCHES)
        },
    )
)
def test_any_settings_survive_the_trip_through_a_file(tmp_path_factory, chosen):
    nested = {}
    for path, value in chosen.items():
        name, _, leaf = path.partition(".")
        if leaf:
            nested.setdefault(name, {})[leaf] = value
        else:
            nested[name] = value
    config = load(nested)
    for dotted, value in chosen.items():
        held = config
        for name in dotted.split("."):
            held = getattr(held, name)
        assert held == value
    assert load(config.to_plain()) == config
    path = tmp_path_factory.getbasetemp() / "settings.yaml"
    path.write_text(as_yaml(config.to_plain()), encoding="utf-8")
    assert load(path) == config


def test_every_setting_has_its_own_variable():
    names = [variable(path) for path in (*settings(), *sections())]
    assert len(names) == len(set(names))
    assert "MEMBOARD_CONFIG" not in names


def test_every_leaf_can_be_set_by_its_variable(monkeypatch):
    for path, setting in settings().items():
        if path in ("torch_profiler.memory_filename", "remote.prune"):
            continue  # not together with others of them
        if setting.takes_options:
            text = '{"anon": true}'
        elif path.startswith("remote.") and setting.takes_text:
            text = "memory://a" if path == "remote.url" else "{name}"
        elif setting.many and setting.words:
            text = ", ".join(setting.words[:2])
        elif setting.takes_code or setting.many:
            text = "os.path.join, os.getcwd" if setting.many else "os.getcwd"
        elif setting.takes_text:
            text = "text"
        else:
            switch = str(not setting.default).lower()
            number = str(int(max(17, limits_of(setting)[0])))
            kinds = {bool: switch, int: number, float: number}
            text = next((kinds[kind] for kind in setting.kinds if kind in kinds), None)
            text = setting.words[-1] if setting.words else text
        monkeypatch.setenv(variable(path), text)
    config, default = load(), RecordConfig()
    for item in fields(RecordConfig):
        assert getattr(config, item.name) != getattr(default, item.name), item.name
    assert replace(config, rank=18).rank == 18


def test_importing_the_settings_loads_nothing_heavy():
    code = (
        "import sys; from collector.config import load; load(host=3);"
        "print(sorted({'torch','psutil','yaml','numpy','difflib'} & set(sys.modules)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "[]"
