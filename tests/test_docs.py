"""The README is true: commands, names, links, figures' benchmarks."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path

import pytest

from tb_plugin.analysis.oom.case import NAMES
from tb_plugin.cli import VERBS, main
from tb_plugin.formats.snapshots.files.names import likelihood, parse_names
from tests.simulate import OOM_CAUSES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def between(marker: str) -> str:
    """The text between a pair of markers, without them."""
    pattern = rf"<!-- {marker}:begin -->(.*?)<!-- {marker}:end -->"
    found = re.search(pattern, README, re.DOTALL)
    assert found, f"README.md has no {marker} block"
    return found[1]


def code(marker: str) -> str:
    block = re.search(r"```\w*\n(.*?)```", between(marker), re.DOTALL)
    assert block
    return block[1].strip()


def test_each_of_the_two_commands_is_one_line():
    assert len(code("first-command").splitlines()) == 1
    assert len(code("test-command").splitlines()) == 1
    assert code("first-command").endswith("memboard demo")


def test_the_test_command_runs_a_script_that_exists():
    words = shlex.split(code("test-command"))
    script = next(word for word in words if word.endswith(".sh"))
    assert (ROOT / script).is_file()


def documented_commands() -> list[str]:
    """Every `memboard <verb> ...` in the README's blocks of code."""
    blocks = re.findall(r"```bash\n(.*?)```", README, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("memboard ")]


@pytest.mark.parametrize("command", documented_commands())
def test_commands_of_the_readme_have_arguments_that_exist(command, monkeypatch):
    words = shlex.split(command.partition(">")[0])[1:]
    verb = importlib.import_module(VERBS[words[0]])
    monkeypatch.setattr(verb, "run", lambda _: 0)
    assert main(words) == 0


def test_the_readme_shows_every_verb():
    verbs = {command.split()[1] for command in documented_commands()}
    assert verbs | {"demo"} == set(VERBS)
    assert "memboard demo" in README


def rows_of(marker: str) -> list[list[str]]:
    """The cells of a table, without its head."""
    lines = [line for line in between(marker).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]


@pytest.mark.parametrize("row", rows_of("names"), ids=lambda row: row[0])
def test_names_of_snapshots_tell_what_the_readme_says(row):
    names, rank, step = row
    for name in re.findall(r"`([^`]+)`", names):
        *folders, file = name.split("/")
        assert likelihood(file) != "no"
        said = parse_names(file, folders)
        assert said.rank == int(rank)
        assert said.step == (int(step) if step else None)


def test_the_verdicts_are_those_that_the_code_knows():
    assert [row[0].strip("`") for row in rows_of("verdicts")] == list(NAMES)
    matrix = rows_of("matrix")
    assert [row[0].strip("`") for row in matrix] == list(OOM_CAUSES)
    assert all(sum(int(cell or 0) for cell in row[1:]) == 30 for row in matrix)
    assert "tests/perf/oom_verdicts.py" in between("matrix")


def test_links_into_the_repository_lead_somewhere():
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", README)
    assert len(targets) > 5
    assert [t for t in targets if not (ROOT / t).exists()] == []


def python_names() -> list[str]:
    """`module.py:Name.attribute` as the path of a datum cites them."""
    return re.findall(r"`([\w/]+\.py):([\w.]+)`", between("datum"))


@pytest.mark.parametrize(("path", "name"), python_names(), ids=str)
def test_the_path_of_a_datum_names_python_that_exists(path, name):
    target = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    for part in name.split("."):
        target = getattr(target, part)


def test_the_path_of_a_datum_names_typescript_that_exists():
    cited = re.findall(r"`(frontend/[\w/]+\.tsx?):(\w+)`", between("datum"))
    assert len(cited) >= 3
    for path, name in cited:
        text = (ROOT / path).read_text()
        assert re.search(rf"export [\w ]*\b{name}\b", text), f"{path} exports no {name}"


def test_the_path_of_a_datum_is_not_empty():
    assert len(python_names()) >= 8


def test_every_figure_names_a_benchmark_that_exists():
    rows = [r for r in between("measured").splitlines() if r.startswith("| ")][1:]
    assert len(rows) >= 8
    for row in rows:
        scripts = re.findall(r"`(tests/perf/\w+\.py)", row)
        assert scripts, f"no benchmark named in: {row}"
        assert all((ROOT / script).is_file() for script in scripts)
