"""Claims of the documentation that can be executed, executed: names, values, limits.

What commands do is in `test_docs_blocks.py` and in the tests of each verb; here is what a
page says of settings, variables, calls, flags, modules and exit codes. Numbers, and claims
that tests of the code execute, name their proof themselves: `test_docs_evidence.py`.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import inspect
import io
import os
import re
import subprocess
import sys
from importlib.metadata import metadata, requires
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from collector.config import RecordConfig, load, settings, variable
from collector.config.sections import fields_of
from collector.config.table import typed
from collector.recorder import Recorder
from tb_plugin.cli import VERBS, main, parser_of, verbs_of
from tb_plugin.loader import Loader
from tests import programs
from tests.test_docs import TEXTS, blocks_of

ROOT = Path(__file__).parent.parent
EVERYTHING = "\n".join(TEXTS.values())
INLINE = sorted(set(re.findall(r"`([^`\n]+)`", EVERYTHING)))
"""All inline code of all pages."""

OTHERS_OPTIONS = {
    "--logdir",
    "--logdir_spec",
    "--no-python",
    "--no_python",
    "--num_processes",
    "--nproc-per-node",
    "--no-deps",
    "--signal",
    "--requeue",
    "--samples_per_plugin",
    "--version_tb",
    "--bind_all",
    "--host",
    "--path_prefix",
    "--port",
    "--reload_interval",
    "--rdzv-backend",
    "--user",
    "--link-mode",
    "--seeds",
}
"""Of TensorBoard, launchers, pip and others."""


def test_every_variable_that_is_named_is_read_by_the_code():
    named = set(re.findall(r"\bMEMBOARD_[A-Z_]+[A-Z]\b", EVERYTHING))
    assert len(named) > 60
    known = {variable(path) for path in settings()}
    code = "".join(
        path.read_text()
        for folder in ("collector", "tb_plugin", "tests/gpu", "tests/virtual")
        for path in (ROOT / folder).rglob("*.py")
    )
    assert sorted(one for one in named - known if f'"{one}"' not in code) == []


def test_every_option_that_is_named_exists():
    known = {one for _, options in flags_of_verbs() for one in options}
    known |= {flag for flag, _ in flags_of_tensorboard()} | OTHERS_OPTIONS
    named = {
        option
        for text in INLINE
        for option in re.findall(r"(?<![\w-])(--[a-z][\w-]+)", text)
        if not text.startswith(("python", "pytest", "mypy")) and ".py " not in text
    }
    assert len(named) > 30
    assert sorted(named - known) == []


def flags_of_verbs() -> list[tuple[str, list[str]]]:
    verbs = verbs_of(parser_of(*VERBS))
    found = [(verb, [*one._option_string_actions]) for verb, one in verbs.items()]
    return [*found, ("", ["--version", "--help"])]


def flags_of_tensorboard() -> list[tuple[str, str]]:
    parser = argparse.ArgumentParser()
    Loader().define_flags(parser)
    return [
        (one.option_strings[0], str(one.default))
        for one in parser._actions
        if one.dest.startswith("memboard")
    ]


def test_the_flags_of_tensorboard_have_the_defaults_that_are_said():
    rows = re.findall(
        r"^\| `(--memboard_\w+)` \| (.+?) \|", TEXTS["commands"], re.MULTILINE
    )
    said = sorted((flag, default.strip("`")) for flag, default in rows)
    assert said == sorted(
        (flag, value or "none") for flag, value in flags_of_tensorboard()
    )


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


def calls_of_the_recorder() -> list[tuple[str, list[str]]]:
    """Methods in the first column of the table of calls, and keywords they are shown with."""
    table = TEXTS["recording"].partition("## Calls")[2].partition("\n## ")[0]
    calls = re.findall(r"^\| `rec\.(\w+)(?:\(([^`]*)\))?` \|", table, re.MULTILINE)
    return [(name, re.findall(r"(\w+)=", inside)) for name, inside in calls]


def test_the_calls_of_the_recorder_exist_with_their_keywords():
    calls = calls_of_the_recorder()
    assert len(calls) > 12
    for name, keywords in calls:
        member = inspect.getattr_static(Recorder, name)
        if keywords and name not in ("instant", "log"):  # which take any
            assert set(keywords) <= set(inspect.signature(member).parameters), name


def test_names_of_the_package_exist():
    import collector

    for name in {"active", *re.findall(r"\bmb\.(\w+)", EVERYTHING)}:
        assert getattr(collector, name), name


def test_modules_that_are_named_can_be_found():
    named = set(
        re.findall(r"python -m ((?:tests|collector|tb_plugin)[\w.]*)", EVERYTHING)
    )
    named |= set(re.findall(r"`(collector\.integrations\.\w+)`", EVERYTHING))
    named |= set(re.findall(r"from (collector[\w.]*) import", EVERYTHING))
    assert len(named) > 8
    assert sorted(one for one in named if find_spec(one) is None) == []


def test_a_script_that_measures_is_started_as_a_module():
    (command,) = (text for kind, text in blocks_of("measured") if kind == "bash")
    words = command.split()
    assert words[:2] == ["python", "-m"]
    # With no such part it ends after its imports, which a start by its path does not reach.
    program = f"import runpy; runpy.run_module({words[2]!r}, run_name='imported')"
    programs.run(program)
    named = set(re.findall(r"`tests/perf/(\w+)\.py", EVERYTHING))
    assert len(named) > 20
    assert all(find_spec(f"tests.perf.{one}") for one in named)


def test_extras_and_the_small_libraries_are_those_of_the_package():
    named = set(re.findall(r"(?:memboard|\.)\[([\w,]+)\]", EVERYTHING))
    extras = metadata("memboard").get_all("Provides-Extra") or []
    assert {one for names in named for one in names.split(",")} <= set(extras)
    plain = [one for one in requires("memboard") or () if "extra ==" not in one]
    assert len(plain) == 6
    assert "six small libraries" in TEXTS["getting-started"]
    assert metadata("memboard")["Requires-Python"] == ">=3.10"


def test_the_schedule_of_the_page_is_what_it_prints():
    kind, text = blocks_of("schedule")[0]
    (said,) = re.findall(r"print\(.*\)  # (\S+)$", text, re.MULTILINE)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, "schedule.md", "exec"), {})
    assert (kind, printed.getvalue().strip()) == ("python", said)


@pytest.mark.parametrize("verb", list(VERBS))
def test_a_verb_that_is_interrupted_ends_with_130(verb, monkeypatch, capsys):
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    module = importlib.import_module(VERBS[verb])
    monkeypatch.setattr(module, "run", interrupted)
    monkeypatch.setattr(module, "add_arguments", lambda _: None)
    assert main([verb]) == 130
    assert f"memboard {verb}: interrupted" in capsys.readouterr().err


def test_launchers_are_refused(capsys):
    for words in (
        ["torchrun", "train.py"],
        ["/usr/bin/torchrun", "--nproc-per-node", "2", "train.py"],
        ["-m", "torch.distributed.run", "train.py"],
        *([name, "train.py"] for name in ("accelerate", "deepspeed", "mpirun", "srun")),
    ):
        assert main(["run", *words]) == 2
        assert "a launcher trains nothing itself" in capsys.readouterr().err


OFF = """
import os, sys
from importlib.machinery import PathFinder
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
import memboard as mb
with mb.record(sys.argv[2], enabled=False) as rec:
    def function(): pass
    assert rec.span("span")(function) is function
    rec.step(); rec.log({"loss": 1}); rec.phase("val"); rec.mark("mark")
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(new - set(sys.stdlib_module_names)), os.path.exists(sys.argv[2]))
"""


def test_a_recorder_that_is_off_imports_msgspec_alone(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", OFF, ROOT / "tb_plugin/named", tmp_path / "run"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    *imported, is_written = done.stdout.split()
    assert set(imported) <= {"collector", "memboard", "msgspec", "typing_extensions"}
    assert is_written == "False"


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
        env={**os.environ, "MYPYPATH": str(ROOT / "tb_plugin/named")},
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
        "run: python -m collector.config.table --options > collector/config/options.py"
    )
