"""Settings written as a file that reads back as the same settings."""

from __future__ import annotations

import json

import yaml

from collector.config import RecordConfig, load, settings
from collector.config.sections import (
    ActivationsConfig,
    FunctionsConfig,
    HooksConfig,
    ScheduleConfig,
)
from collector.config.table import as_yaml

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
