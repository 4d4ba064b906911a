"""Settings that are written and read back are the same settings."""

from __future__ import annotations

import json
import subprocess
import sys

import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta
from msgspec.structs import fields, replace

from memboard import OomConfig
from memboard.collector.config import (
    RecordConfig,
    load,
    sections,
    settings,
    variable,
)
from memboard.collector.config.sections import (
    ActivationsConfig,
    FunctionsConfig,
    HooksConfig,
    ScheduleConfig,
)
from memboard.collector.config.table import as_yaml


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
    if setting.path in ("torch_profiler.filename", "torch_profiler.folder"):
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
        "import sys; from memboard.collector.config import load; load(host=3);"
        "print(sorted({'torch','psutil','yaml','numpy','difflib'} & set(sys.modules)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "[]"


# As a file, with comments.

MADE = RecordConfig(
    flush_seconds=1e-1,
    rank=3,
    host=False,
    process=1e-1,
    functions=FunctionsConfig(default=("*", "off", "a b", "1", "x: y", "#")),
    schedule=ScheduleConfig(active=3, repeat=0, unit="token"),
    dumps=("yaml",),
    dumps_dir="C:\\runs\n'\"é😀\x7f",
)


def test_a_headers_settings_come_back(tmp_path):
    header = json.loads(json.dumps(MADE.to_plain()))
    path = tmp_path / "a.yaml"
    path.write_text(as_yaml(header), encoding="utf-8")
    assert load(path) == MADE
    assert yaml.safe_load(path.read_text(encoding="utf-8")) == header


def test_every_key_stands_there_in_order_and_with_its_meaning():
    text = as_yaml(MADE.to_plain(), heading="Exported from a recording.")
    lines = text.splitlines()
    assert lines[0] == "# Exported from a recording."
    assert list(yaml.safe_load(text)) == list(RecordConfig().to_plain())
    for path in settings():
        leaf = path.rpartition(".")[2]
        indent = "  " if "." in path else ""
        above = {
            lines[n - 1].strip()[:2]
            for n, line in enumerate(lines)
            if line.startswith(f"{indent}{leaf}: ")
        }
        assert above == {"# "}, path


def test_some_keys_alone_with_comments_of_ones_own():
    text = as_yaml({"oom": {"enabled": False}, "rank": 3}, {"oom.enabled": "why so"})
    assert text == "rank: 3\n\noom:\n  # why so\n  enabled: false\n"
    assert as_yaml({}) == ""


def test_code_without_a_name_is_kept_as_a_comment():
    made = RecordConfig(
        hooks=HooksConfig(reset=(lambda module: module, json.loads)),
        activations=ActivationsConfig(functions=(json.loads, lambda x: x)),
        schedule=ScheduleConfig(choose=lambda n: n == 3),
    )
    text = as_yaml(json.loads(json.dumps(made.to_plain())))
    assert text.count("# was given as code that has no name to import:") == 3
    again = load(yaml.safe_load(text))
    assert again.hooks.reset == ("json.loads",)
    assert again.activations.functions == (), "half a pair is none"
    assert again.schedule.choose is None


def test_what_a_newer_version_recorded_is_kept_as_a_comment():
    plain = {
        **RecordConfig().to_plain(),
        "telepathy": {"range": [1, 2]},
        "oom": {"enabled": False, "cores": "all"},
        "history": 5,
    }
    text = as_yaml(plain)
    assert "# not a setting of this version: telepathy: {range: [1, 2]}" in text
    assert "  # not a setting of this version: cores: all" in text
    assert not load(yaml.safe_load(text)).oom.enabled
