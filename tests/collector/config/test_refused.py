"""Settings that are refused: the key, the place and the remedy. The texts are read at 2 a.m."""

from __future__ import annotations

import inspect
import logging

import pytest

import memboard as mb
from memboard import HistoryConfig
from memboard.collector.config import (
    RecordConfig,
    load,
)
from memboard.collector.config import layers as config_layers
from memboard.collector.config.schedule import Cycles
from memboard.collector.config.sections import ActivationsConfig
from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.errors import ConfigError
from tests.collector.config.conftest import error_of


def test_an_unknown_key_in_a_file(write):
    path = write("# mine\nflush_seconds: 2\nmax_file_byte: 5\n")
    assert error_of(path) == (
        f"unknown key 'max_file_byte' in {path}, line 3: did you mean 'max_file_bytes'?"
        " Rename it or remove it; `python -m memboard.collector.config.table --markdown` lists every"
        " key."
    )


def test_an_unknown_key_of_a_section(write):
    path = write("history:\n  enabled: true\n  stack: all\n")
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


def test_a_variable_of_the_viewer_is_no_setting(monkeypatch, caplog):
    monkeypatch.setenv("MEMBOARD_CACHE_DIR", "/tmp/cache")
    monkeypatch.setenv("MEMBOARD_PLUGIN_ANYTHING", "1")
    monkeypatch.setattr(config_layers, "_warn_once", WarnOnce())
    assert load() == RecordConfig()
    assert caplog.messages == []


def test_a_wrong_type_in_a_file(write):
    path = write("\n\nflush_seconds: fast\n")
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
        ({"max_file_bytes": "1e-4"}, "got the text '1e-4'"),
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
        ({"flush_seconds": "x" * 10**6}, "got the text 'xxx"),
    ],
)
def test_what_a_value_must_be(given, words):
    message = error_of(given)
    assert words in message
    assert len(message) < 400


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
        ("rank: 1\nlocal_rank: '2\n", ", line "),
    ],
)
def test_files_that_are_not_settings(write, text, words):
    path = write(text)
    message = error_of(path)
    assert words in message
    assert str(path) in message


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


# Settings that contradict each other.


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
        " that unpacks, got 1. Add the other (memboard.collector.config.values.unchanged does"
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


FULL = {"record_shapes": True, "profile_memory": True, "with_stack": True}
MEMORY = {**FULL, "memory_filename": "m.csv"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        *(
            ({**MEMORY, off: False}, f"needs torch_profiler.{off}, which is off")
            for off in FULL
        ),
        (
            {**MEMORY, **dict.fromkeys(FULL, False)},
            "which are off",
        ),
        *(
            ({**MEMORY, **dict.fromkeys(FULL, False)}, f"torch_profiler.{off}")
            for off in FULL
        ),
        ({"stacks_filename": "s"}, "needs torch_profiler.with_stack"),
        ({"filename": "a{bach}"}, "'{bach}': did you mean 'batch'?"),
        ({"filename": "../{rank}"}, "leaves the folder"),
        ({"filename": "a/"}, "names no file"),
        ({"filename": "/data/{rank}.json"}, "an absolute path"),
        ({"filename": "~/{rank}.json"}, "an absolute path"),
        ({"filename": "C:/traces/{rank}.json"}, "an absolute path"),
        (
            {**dict.fromkeys(FULL, True), "memory_filename": "/m.csv"},
            "an absolute path",
        ),
        ({"folder": "/data/{run_name}"}, "'torch_profiler.folder'"),
        ({"folder": "../{run_name}"}, "leaves the folder"),
        ({"folder": "{runname}/traces"}, "did you mean 'run_name'?"),
        ({"activities": ["gpu"]}, "must be a list of cpu, cuda"),
    ],
)
def test_what_torchs_profiler_cannot_do_is_refused(settings, words):
    text = error_of({"torch_profiler": {"enabled": True, **settings}})
    assert words in text
    assert "in the given mapping" in text


def test_what_torchs_profiler_can_do_or_does_not_is_taken():
    assert load({"torch_profiler": {"enabled": True, **MEMORY}})
    half = load({"torch_profiler": {"enabled": False, "memory_filename": "m.csv"}})
    assert not half.torch_profiler.enabled
    assert half.torch_profiler.memory_filename == "m.csv"


# Keywords of the classes themselves.


@pytest.mark.parametrize(
    "owner",
    [
        *(getattr(mb, n) for n in mb.__all__ if n.endswith("Config")),
        mb.Schedule,
        Cycles,
    ],
)
def test_a_keyword_that_a_class_does_not_know_is_refused(owner):
    known = list(inspect.signature(owner).parameters)
    wrong = known[-1][:-1] + "_"
    with pytest.raises(
        ConfigError, match=rf"'{wrong}' in {owner.__name__}\(\)"
    ) as said:
        owner(**{wrong: 1})
    assert f"known are {', '.join(known)}" in str(said.value)


def test_a_keyword_of_a_schedule_is_spelt_for_it_or_sent_to_the_class_that_takes_it():
    with pytest.raises(ConfigError, match="did you mean 'warmup'"):
        mb.Schedule(warmpu=1)
    with pytest.raises(ConfigError, match=r"ScheduleConfig\(per_epoch=...\) takes it"):
        mb.Schedule(per_epoch=True)
