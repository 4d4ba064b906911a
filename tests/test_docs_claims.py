"""Claims of the documentation that can be executed, executed: names, values, limits.

What commands do is in `test_docs_blocks.py` and in the tests of each verb; here is what a
page says of settings, variables, calls, flags, modules and exit codes. Numbers, and claims
that tests of the code execute, name their proof themselves: `test_docs_evidence.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import io
import os
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import metadata, requires
from importlib.util import find_spec
from pathlib import Path

import pytest
from tensorboard.plugins.core.core_plugin import CorePluginLoader

import memboard as mb
from memboard.collector.config import RecordConfig, settings, variable
from memboard.collector.config.schedule import Action, schedule_of
from memboard.collector.format.columns import PARTS, STEP_PARTS
from memboard.collector.process.rank import identify
from memboard.collector.recorder import Recorder
from memboard.collector.steps.progress import Progress
from memboard.collector.torch_profiler.template_variables import (
    TemplateVariables,
    identity_values,
)
from memboard.collector.virtual.devices import parse_device
from memboard.tb_plugin.cli import VERBS, main, parser_of, verbs_of
from memboard.tb_plugin.cli.prediction.answer import EXIT_CODES
from memboard.tb_plugin.loader import Loader
from tests import programs
from tests.test_docs import EVERYTHING, INLINE, TEXTS, blocks_of, rows_of

ROOT = Path(__file__).parent.parent
CONSTRAINTS = ROOT / "tests/constraints.txt"
INLINE_OF = {page: re.findall(r"`([^`\n]+)`", text) for page, text in TEXTS.items()}
OPTIONAL = [one.replace("'", '"') for one in requires("memboard") or ()]

OTHERS_OPTIONS = {"--files", "--no-deps", "--requeue", "--seeds", "--signal"}
"""Of pip, Slurm and our own scripts."""


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


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    return {option for one in parser._actions for option in one.option_strings}


@cache
def tools() -> dict[str, set[str]]:
    """The options of other tools that the pages show, from their own parsers."""
    tensorboard = argparse.ArgumentParser()
    CorePluginLoader().define_flags(tensorboard)
    Loader().define_flags(tensorboard)
    found = {"tensorboard": options_of(tensorboard)}
    if find_spec("torch"):
        run = importlib.import_module("torch.distributed.run")
        found["torchrun"] = options_of(run.get_args_parser())
    if find_spec("accelerate"):
        launch = importlib.import_module("accelerate.commands.launch")
        found["accelerate"] = options_of(launch.launch_command_parser())
    return found


def test_every_option_that_is_named_exists():
    known = {one for _, options in flags_of_verbs() for one in options}
    known |= OTHERS_OPTIONS.union(*tools().values())
    named = {
        option
        for text in INLINE
        for option in re.findall(r"(?<![\w-])(--[a-z][\w-]+)", text)
        if not text.startswith(("python", "pytest", "mypy")) and ".py " not in text
    }
    assert len(named) > 30
    assert sorted(named - known) == []


def test_commands_of_other_tools_have_options_that_exist():
    """Up to MemBoard's own, which `test_docs.py` reads."""
    text = "\n".join(
        block for page in TEXTS for kind, block in blocks_of(page) if kind == "bash"
    ).replace("\\\n", " ")
    for tool, known in tools().items():
        lines = re.findall(rf"^(?:srun )?{tool} (.*)$", text, re.MULTILINE)
        assert lines, tool
        for line in lines:
            words = line.partition("memboard run")[0].partition("#")[0].split()
            given = {word.partition("=")[0] for word in words if word.startswith("--")}
            assert sorted(given - known) == [], f"{tool} {line}"


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


def test_templates_have_the_variables_that_are_named():
    moments = TemplateVariables(Progress()).values(0)
    known = {*moments, *identity_values(identify(RecordConfig()), "run")}
    for page in ("composer", "settings"):
        named = set(re.findall(r"\{(\w+)\}", " ".join(INLINE_OF[page])))
        assert named - known <= {"path", "name"}, page
        assert page != "composer" or named == known
    listed = re.findall(r"May hold variables: (.*?)\. One", TEXTS["settings"])
    (names,) = (
        re.findall(r"\b[a-z_]+\b", re.sub(r" \(.*?\)", "", one)) for one in listed
    )
    assert {*names} == known


def test_variables_of_launchers_are_read():
    launchers = r"\b(?:SLURM|TORCHELASTIC|OMPI|PMI)_\w+"
    named = {one for text in INLINE for one in re.findall(launchers, text)}
    source = (ROOT / "collector/process/rank.py").read_text()
    assert len(named) > 7
    assert sorted(one for one in named if f'"{one}"' not in source) == []


def test_states_and_parts_of_the_schedule_are_the_codes():
    rows = re.findall(r"^\| (\w+) \| `(.)` \|", TEXTS["schedule"], re.MULTILINE)
    assert rows == [(one.name, one.value) for one in Action]
    table = TEXTS["schedule"].partition("| part | covers |\n|---|---|\n")[2]
    cells = re.findall(r"^\| ([\w, ]+) \|", table.partition("\n\n")[0], re.MULTILINE)
    parts = {part for cell in cells for part in cell.split(", ")}
    assert {{"evaluation": "eval"}.get(part, part) for part in parts} == {*STEP_PARTS}


def test_the_second_step_is_the_one_that_is_collected_by_default():
    schedule = schedule_of(RecordConfig().schedule)
    actions = [schedule.action(step) for step in range(10)]
    assert [step for step, one in enumerate(actions) if one.collects] == [1]
    assert "second step" in " ".join(TEXTS["recording"].split())


def test_devices_and_answers_of_a_prediction_are_the_codes():
    part = (
        TEXTS["predict"].partition("`--on` takes a name")[2].partition("or memory")[0]
    )
    names = re.findall(r"`(.+?)`", part)
    assert len(names) > 4
    assert all(parse_device(name) for name in names)
    rows = {row[0].strip("`"): int(row[2]) for row in rows_of("predict", "answers")}
    assert rows == EXIT_CODES


def test_the_oldest_versions_are_those_that_are_required():
    for page in ("README", "getting-started", "limits"):
        (said,) = re.findall(
            r"Python ([\d.]+) and torch ([\d.]+) are the oldest", TEXTS[page]
        )
        assert f">={said[0]}" == metadata("memboard")["Requires-Python"]
        assert f'torch>={said[1]}; extra == "torch"' in OPTIONAL
    for page, words in (
        ("getting-started", "must be"),
        ("limits", "needs TensorBoard"),
    ):
        (said,) = re.findall(rf"{words} (2\.\d+)", TEXTS[page])
        assert f'tensorboard>={said}; extra == "viewer"' in OPTIONAL


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


OTHERS_NAMES = {
    "ExitCode",
    "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT",
    "MaxRSS",
    "SummaryWriter",
    "cudaMalloc_count",
    "memory_record",
    "my_gather",
    "path_prefix",
    "ring_reduce",
    "terminationGracePeriodSeconds",
    "version_tb",
}
"""Of Slurm, stores, torch, TensorBoard, Ascend, Kubernetes and examples; three pages are all about others'."""


def test_identifiers_in_the_text_stand_in_the_code():
    """Columns, keys, functions, classes: what was renamed is named anew."""
    folders = ("collector", "tb_plugin", "frontend/src", "tests")
    files = [path for name in folders for path in (ROOT / name).rglob("*.*")]
    code = [path for path in files if path.suffix in (".py", ".ts", ".tsx", ".c")]
    known = {word for path in code for word in re.findall(r"\w+", path.read_text())}
    known |= {column.name for column in PARTS} | {path.stem for path in files}
    known |= {variable(path) for path in settings()} | OTHERS_NAMES
    identifier = re.compile(r"\b\w+_\w+\b|\b[a-z]*[A-Z][a-z]+[A-Z]\w+")
    others = ("analyses", "composer", "memprofiler")
    pages = [page for page in TEXTS if page not in others]
    named = {
        word
        for page in pages
        for text in INLINE_OF[page]
        for word in identifier.findall(text)
    }
    assert len(named) > 200
    assert sorted(named - known) == []


def test_names_of_the_package_exist():
    for name in {"active", *re.findall(r"\bmb\.(\w+)", EVERYTHING)}:
        assert getattr(mb, name), name


def test_modules_that_are_named_can_be_found():
    named = set(re.findall(r"python -m ((?:tests|memboard)[\w.]*)", EVERYTHING))
    named |= set(re.findall(r"`(memboard\.integrations\.\w+)`", EVERYTHING))
    named |= set(re.findall(r"from (memboard[\w.]*) import", EVERYTHING))
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


def test_scripts_take_the_arguments_that_are_shown():
    shown = re.findall(r"`(tests/\w+/\w+)\.py ([^`]+)`", EVERYTHING)
    modules = re.findall(r"python -m (tests[\w.]+) ([^`\n]+)", EVERYTHING)
    shown += [(name.replace(".", "/"), arguments) for name, arguments in modules]
    words = [
        (path, word)
        for path, arguments in shown
        for word in re.findall(r"(?<!\S)(--[\w-]+|[a-z]{3,})(?!\S)", arguments)
    ]
    assert len(words) > 6
    for path, word in words:
        names = {word, word.lstrip("-").replace("-", "_")}
        code = set(re.findall(r"[\w-]+", (ROOT / f"{path}.py").read_text()))
        assert names & code, f"{path} {word}"


def test_extras_and_the_small_libraries_are_those_of_the_package():
    named = set(re.findall(r"(?:memboard|\.)\[([\w,]+)\]", EVERYTHING))
    extras = metadata("memboard").get_all("Provides-Extra") or []
    assert {one for names in named for one in names.split(",")} <= set(extras)
    plain = [one for one in requires("memboard") or () if "extra ==" not in one]
    assert len(plain) == 7
    assert "seven small libraries" in TEXTS["getting-started"]
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
        [sys.executable, "-c", OFF, ROOT / ".package", tmp_path / "run"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    *imported, is_written = done.stdout.split()
    assert set(imported) <= {"memboard", "msgspec", "typing_extensions"}
    assert is_written == "False"


def test_versions_that_the_tests_run_with_are_the_pinned_ones():
    pinned = dict(
        re.findall(r"^([\w-]+)==([\d.]+)", CONSTRAINTS.read_text(), re.MULTILINE)
    )
    (line,) = re.findall(r"the pinned versions \((.*?)\)", TEXTS["limits"])
    shown = re.findall(r"(torch|numpy) ([\d.]+)", line)
    shown += re.findall(r"\| (lightning|transformers) ([\d.]+)", TEXTS["trainers"])
    shown += re.findall(r"(s3fs) ([\d.]+)", TEXTS["stores"])
    assert len(shown) == 5
    assert [
        one for one in shown if not f"{pinned[one[0]]}.".startswith(one[1] + ".")
    ] == []
