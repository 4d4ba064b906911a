"""Several layers of settings, and sections of every shape."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import pytest

import memboard as mb
from memboard.collector.config import RecordConfig, load
from memboard.collector.config.sections import (
    FunctionsConfig,
    ModulesConfig,
    ScheduleConfig,
)
from memboard.collector.errors import ConfigError
from tests.collector.config.conftest import error_of
from tests.recordings import read_run

# Several layers.


def test_a_later_file_wins_leaf_by_leaf(write):
    base = write("schedule: {active: 3, wait: 1}\nmax_file_bytes: 50\n")
    mine = write("schedule: {wait: 2}\nmodules: true\n", "b.yaml")
    config = load([base, str(mine)])
    assert config.schedule == ScheduleConfig(active=3, wait=2)
    assert config.max_file_bytes == 50
    assert config.modules.enabled
    assert load([mine, base]).schedule.wait == 1
    assert load((base,)) == load(base)
    assert load([]) == RecordConfig()


def test_files_mappings_and_settings_mix(write):
    made = RecordConfig(max_file_bytes=77, rank=5)
    path = write("rank: 6\n")
    assert load([made, path, {"world_size": 9}]) == RecordConfig(
        max_file_bytes=77, rank=6, world_size=9
    )
    assert load([path, made]) == made, "settings made before hold every key"


def test_the_environment_names_several_files(write, monkeypatch):
    base, mine = (
        write("rank: 1\nscalars: false\n"),
        write("rank: 2\n", "b.yaml"),
    )
    monkeypatch.setenv("MEMBOARD_CONFIG", os.pathsep.join([str(base), str(mine), ""]))
    assert load() == RecordConfig(rank=2, scalars=False)


def test_each_layer_keeps_its_place_in_errors(write):
    base, mine = write("rank: 1\n"), write("\nrnak: 2\n", "b.yaml")
    assert f"unknown key 'rnak' in {mine}, line 2: did you mean" in error_of(
        [base, mine]
    )
    assert "or a list of them, got the number 5" in error_of([base, 5])


def test_the_effective_settings_are_in_the_recording(tmp_path, write):
    base = write("functions: {modules: [a, b]}\nprocess: false\n")
    with mb.record(tmp_path / "run", config=[base, {"scalars": False}]) as rec:
        rec.step()
    recording = read_run(tmp_path / "run")[0]
    again = load(recording.header.config)
    assert again == load([base, {"scalars": False}])
    assert again.functions.modules == ("a", "b")


# Sections of any shape.


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (True, ModulesConfig(enabled=True)),
        (False, ModulesConfig()),
        ({"root": "model"}, ModulesConfig(enabled=True, root="model")),
        ({"enabled": False, "root": "model"}, ModulesConfig(root="model")),
        (ModulesConfig(enabled=True), ModulesConfig(enabled=True)),
        (None, ModulesConfig()),
    ],
)
def test_a_section_with_a_switch_has_a_short_form(given, expected):
    assert load(modules=given).modules == expected
    assert load({"modules": given}).modules == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("eval", ("eval",)),
        (["eval", "step", "eval"], ("eval", "step")),
        (("a",), ("a",)),
        ({"b", "a"}, ("a", "b")),
        ([], ()),
    ],
)
def test_a_list_of_names(given, expected):
    assert load(functions={"default": given}).functions.default == expected
    assert FunctionsConfig(default=given).default == expected


def test_yaml_sets_are_lists(write):
    path = write("functions:\n  default: !!set {b, a}\n")
    assert load(path).functions.default == ("a", "b")


@pytest.mark.parametrize(
    ("name", "text", "path", "expected"),
    [
        ("FUNCTIONS_DEFAULT", "a, b ,c", "functions.default", ("a", "b", "c")),
        ("FUNCTIONS_DEFAULT", ",", "functions.default", ()),
        ("FUNCTIONS", "off", "functions.enabled", False),
        ("MODULES", "1", "modules.enabled", True),
        ("MODULES_ROOT", "model.layers", "modules.root", "model.layers"),
        ("RANK", "null", "rank", None),
        ("SCHEDULE_CHOOSE", "os.getcwd", "schedule.choose", "os.getcwd"),
        ("HOOKS_RESET", "os.getcwd,os.fork", "hooks.reset", ("os.getcwd", "os.fork")),
        ("HISTORY_STACKS", "all", "history.stacks", "all"),
    ],
)
def test_variables_of_sections(monkeypatch, name, text, path, expected):
    monkeypatch.setenv(f"MEMBOARD_{name}", text)
    assert load().leaf(path) == expected


def test_a_path_is_text_where_text_is_due():
    given = {"dumps": "yaml", "dumps_dir": Path("/tmp/x")}
    assert load(given).dumps_dir == "/tmp/x"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"modules": "all"}, "'modules' in the given mapping must be true, false or a"),
        (
            {"modules": 5},
            "mapping of the keys enabled, root, table_depth and table_units",
        ),
        ({"functions": ["a"]}, "history and modules, got a list."),
        ({"schedule": True}, "'schedule' in the given mapping must be a mapping of"),
        ({"remote": 3}, "got the number 3"),
        ({"hooks": ScheduleConfig()}, "got a ScheduleConfig"),
        ({"functions": {"default": None}}, "must be a list of names, got null"),
        ({"functions": {"default": ["a", 5]}}, "got the number 5 in the list"),
        ({"functions": {"default": ["a", ""]}}, "got the text '' in the list"),
        ({"functions": {"default": {"a": 1}}}, "got a dict"),
        ({"hooks": {"reset": "nodots"}}, "must be a list of dotted names (package."),
        ({"hooks": {"reset": ["a.b", "a..b"]}}, "got the text 'a..b' in the list"),
        ({"schedule": {"choose": "x"}}, "a dotted name (package.module.function), a c"),
        ({"modules": {"root": 5}}, "'modules.root' in the given mapping must be text"),
        ({"modules": {"rot": ""}}, "did you mean 'modules.root'?"),
        ({"history": {"stacks": "MB"}}, "must be 'python' or 'all'"),
        ({"history": {"max_entries": 0}}, "a whole number from 1 to 2147483647"),
    ],
)
def test_what_sections_must_be(given, words):
    assert words in error_of(given)


def test_an_alias_is_walked_once(write):
    rows = "\n".join(
        f"x{n}: &x{n} [*x{n - 1}, *x{n - 1}, *x{n - 1}]" for n in range(1, 40)
    )
    path = write(f"x0: &x0 [1, 2]\n{rows}\n")
    assert "unknown key 'x0'" in error_of(path)


def test_merge_keys_override_without_being_twice(write):
    path = write(
        "oom: &off\n  enabled: false\n"
        "history:\n  <<: *off\n  max_entries: 8\n  enabled: true\n",
    )
    config = load(path)
    assert config.history.max_entries == 8
    assert config.history.enabled


class Endless(Mapping):
    """A mapping of the user's own making that has no end."""

    def __init__(self, key):
        self._key = key

    def __getitem__(self, key):
        return True

    def __iter__(self):
        if self._key is not None:
            return itertools.repeat(self._key)
        return map(str, itertools.count())

    def __len__(self):
        return 1


class EndlessList(list):
    def __iter__(self):
        return itertools.count()


class EndlessSet(AbstractSet):
    def __contains__(self, value):
        return True

    def __iter__(self):
        return itertools.count()

    def __len__(self):
        return 1


@pytest.mark.parametrize(
    "given",
    [
        {"config": Endless("flush_seconds")},
        {"config": {"spans": Endless("enabled")}},
        {"config": {"memory_profiler": Endless(None)}},
        {"config": {"other": {"below": EndlessList()}}},
        {"spans": Endless("enabled")},
        {"dumps": EndlessList()},
        {"dumps": EndlessSet()},
    ],
)
def test_what_has_no_end_is_refused(given):
    with pytest.raises(ConfigError):
        load(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"config": {"x" * 5_000_000: 1}},
        {"config": {"spans": {"x" * 5_000_000: 1}}},
        {"spans": {"x" * 5_000_000: 1}},
        {"config": "x" * 5_000_000},
        {"remote": "x" * 5_000_000},
    ],
)
def test_an_error_about_what_is_long_is_short(given):
    with pytest.raises(ConfigError) as refused:
        load(**given)
    assert len(str(refused.value)) <= 10_000
