"""Settings in the documentation: the table is the structs', what is shown can be given."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from msgspec.structs import fields

from memboard.collector.config import RecordConfig, load, sections, settings, variable
from memboard.collector.config.imports.memprofiler import KEYS
from memboard.collector.config.sections import fields_of
from memboard.collector.config.table import (
    BEGIN,
    END,
    main,
    markdown,
    meanings,
    replaced,
    typed,
)
from memboard.collector.errors import ConfigError
from memboard.collector.sources import TIMED
from tests.test_docs import EVERYTHING, INLINE, TEXTS, blocks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
SETTINGS = ROOT / "tb_plugin" / "docs" / "settings.md"
MEMPROFILER = SETTINGS.with_name("memprofiler.md")


def test_the_documented_table_is_current():
    text = SETTINGS.read_text(encoding="utf-8")
    assert BEGIN in text, f"settings.md lacks the lines {BEGIN} and {END}"
    assert replaced(text) == text, (
        "run: python -m memboard.collector.config.table --write tb_plugin/docs/settings.md"
    )


def test_every_field_has_its_meaning():
    for owner in {RecordConfig, *map(type, sections().values())}:
        found = meanings(owner)
        assert list(found) == [item.name for item in fields(owner)]
        for name, meaning in found.items():
            assert meaning.endswith("."), name
            assert len(meaning) > 15, name


def test_how_often_a_source_is_sampled_is_in_the_meaning_of_its_setting():
    said = meanings(RecordConfig)
    rare = [source for source in TIMED if source.times != 1]
    assert len(rare) >= 4
    for one in rare:
        pace = "half as often" if one.times == 2 else f"one sample in {one.times:g}"
        assert pace in said[one.setting], one.name


def test_the_table_has_a_row_for_every_key():
    rows = markdown().splitlines()[2:]
    assert len(rows) == len(settings())
    for row, path in zip(rows, settings(), strict=True):
        assert row.startswith(f"| `{path}` | ")
        assert f"`{variable(path)}`" in row
        assert row.replace("\\|", "").count("|") == 6


def test_the_command_prints_and_writes_the_table(tmp_path, capsys):
    printed = subprocess.run(
        [sys.executable, "-m", "memboard.collector.config.table", "--markdown"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert printed.stdout == markdown() + "\n"
    assert printed.stderr == ""
    page = tmp_path / "page.md"
    page.write_text(f"above\n{BEGIN}\nold\n{END}\nbelow\n")
    assert main(["--write", str(page)]) == 0
    expected = f"above\n{BEGIN}\n{markdown()}\n{END}\nbelow\n"
    assert page.read_text() == expected
    assert main(["--write", str(page)]) == 0
    assert page.read_text() == expected
    page.write_text("no markers\n")
    with pytest.raises(SystemExit):
        main(["--write", str(page)])
    assert BEGIN in capsys.readouterr().err
    assert page.read_text() == "no markers\n"


def test_markers_must_be_whole_and_alone():
    for text in ("", BEGIN, f"{END} {BEGIN}", f"{BEGIN}{END}{BEGIN}{END}"):
        with pytest.raises(ConfigError, match="put the lines"):
            replaced(text)


def test_every_key_of_memprofiler_that_its_page_names_is_one():
    text = MEMPROFILER.read_text(encoding="utf-8")
    part = text.partition("<!-- memprofiler:begin -->")[2]
    part = part.partition("<!-- memprofiler:end -->")[0]
    rows = [row.split("|") for row in part.splitlines() if row.startswith("| `")]
    theirs = {name for row in rows for name in re.findall(r"`([a-z_.]+)", row[1])}
    known = {*KEYS, *(key.partition(".")[0] for key in KEYS)}
    assert theirs - known == {"identity_lambda", "npp_diff"}, "words, not keys"
    ours = {name for row in rows for name in re.findall(r"`(\w+)\.\*`", row[2])}
    assert ours <= set(sections())
    assert len(rows) >= 6


def keywords_in_text() -> list[str]:
    """`history=True`, `oom={"on_sigterm": True}` and the like."""
    names = "|".join(fields_of(RecordConfig))
    found = []
    for text in INLINE:
        match = re.fullmatch(rf"({names})=(.+)", text)
        if match is None:
            continue
        with contextlib.suppress(ValueError, SyntaxError):
            if "..." not in text and ast.literal_eval(match[2]) is not None:
                found.append(text)
    return found


@pytest.mark.parametrize("text", keywords_in_text())
def test_a_setting_that_a_page_shows_can_be_given(text):
    name, _, value = text.partition("=")
    load(**{name: ast.literal_eval(value)})


RECORDING = ("mb.record", "MemBoardCallback")


def calls_in_blocks() -> list[tuple[str, dict[str, object]]]:
    """The settings that blocks of Python give as literals, by page."""
    found = []
    for page in TEXTS:
        for kind, text in blocks_of(page):
            nodes = ast.walk(ast.parse(text)) if kind == "python" else ()
            for node in nodes:
                if isinstance(node, ast.Call) and ast.unparse(node.func) in RECORDING:
                    given = dict(literals_of(node))
                    found += [(page, given)] if given else []
    return found


def literals_of(call: ast.Call) -> Iterator[tuple[str, object]]:
    for keyword in call.keywords:
        if keyword.arg not in ("model", "optimizer", "mesh", "config"):
            with contextlib.suppress(ValueError):
                yield str(keyword.arg), ast.literal_eval(keyword.value)


def test_settings_that_blocks_of_code_show_can_be_given():
    calls = calls_in_blocks()
    assert len(calls) > 5
    for page, given in calls:
        assert load(**given), page


def test_variables_that_are_shown_with_a_value_can_be_set(monkeypatch):
    shown = re.findall(r"(MEMBOARD_[A-Z_]+)=([\w.:/{}-]+)", EVERYTHING)
    shown += re.findall(r'name: (MEMBOARD_\w+)\n +value: "?([^"\n]+)', EVERYTHING)
    names = {variable(path) for path in settings()}
    ours = [(name, value) for name, value in shown if name in names]
    assert len(ours) > 4
    for name, value in ours:
        with monkeypatch.context() as environment:
            environment.setenv(name, value)
            if name.startswith("MEMBOARD_REMOTE_"):
                environment.setenv("MEMBOARD_REMOTE_URL", "s3://bucket")
            assert load() != RecordConfig(), name


def test_settings_are_shown():
    assert len(keywords_in_text()) > 12


def test_blocks_of_settings_in_yaml_can_be_given():
    blocks = [
        text for page in TEXTS for kind, text in blocks_of(page) if kind == "yaml"
    ]
    given = [yaml.safe_load(text) for text in blocks]
    ours = [one for one in given if one.keys() <= set(fields_of(RecordConfig))]
    assert ours
    for one in ours:
        load(one)


def test_keys_with_a_dot_are_settings():
    without = EVERYTHING.replace(
        TEXTS["memprofiler"], ""
    )  # its own keys are older ones
    sections = {path.partition(".")[0] for path in settings() if "." in path}
    named = {
        key
        for text in re.findall(r"`([^`\n]+)`", without)
        for key in re.findall(r"^(\w+\.\w+)(?:: .*)?$", text)
        if key.partition(".")[0] in sections and not key.endswith(".py")
    }
    assert len(named) > 20
    assert sorted(named - set(settings())) == []


RIGHT = """
import memboard as mb

schedule: mb.ScheduleOptions = {"skip_first": 2, "active": 3}
mb.record("runs", schedule=schedule, history=True, remote="s3://bucket", gpu=False)
mb.record("runs", torch_profiler={"num_traces_to_keep": 5}, oom={"on_sigterm": True})
mb.record("runs", functions={"default": "*"}, dumps=["yaml"], flops={"per_token": 3})
mb.record("runs", modules=mb.ModulesConfig(root="net"), hooks={"reset": [print]})
"""
WRONG = [
    'schedule={"activ": 2}',
    'schedule={"active": "2"}',
    'schedul={"active": 2}',
    'history={"stacks": "cpp"}',
    'torch_profiler={"record_shape": True}',
    'dumps=["yml"]',
    'remote={"uri": "s3://bucket"}',
    'oom={"on_sigterm": "yes"}',
]


def test_type_checkers_refuse_a_wrong_setting(tmp_path):
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(RIGHT)
    lines = [f'mb.record("runs", {one})' for one in WRONG]
    wrong.write_text("\n".join(["import memboard as mb", *lines, ""]))
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", right, wrong],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT / ".package")},
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"(\w+)\.py:(\d+): error", checked.stdout)
    expected = [("wrong", str(line)) for line in range(2, 2 + len(WRONG))]
    assert found == expected, checked.stdout + checked.stderr


def test_the_mappings_for_type_checkers_are_current():
    path = ROOT / "collector/config/options.py"
    assert path.read_text() == typed(), (
        "run: python -m memboard.collector.config.table --options > collector/config/options.py"
    )
