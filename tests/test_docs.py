"""The README and the documentation are true: commands, names, links, figures' scripts."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
from importlib.metadata import metadata
from pathlib import Path

import pytest
import yaml
from markdown.extensions.toc import slugify

from memboard.tb_plugin.analysis.oom.case import NAMES as VERDICTS
from memboard.tb_plugin.api.findings import Finding
from memboard.tb_plugin.cli import DOCUMENTED, VERBS, main, parser_of, verbs_of
from memboard.tb_plugin.cli.report.command import Report
from memboard.tb_plugin.cli.report.reading import RunReport, Snapshot
from memboard.tb_plugin.docs import FOLDER, NAMES, PAGES, source_of, text_of, title_of
from memboard.tb_plugin.formats.snapshots.files.names import likelihood, parse_names
from tests.simulate import OOM_CAUSES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
TEXTS = {"README": README, **{name: text_of(name) for name in NAMES}}
"""All that is documented, by page."""
EVERYTHING = "\n".join(TEXTS.values())
INLINE = sorted(set(re.findall(r"`([^`\n]+)`", EVERYTHING)))
"""All inline code of all pages."""
SOURCES = {"README": README, **{name: source_of(name) for name in NAMES}}
"""The same with comments: markers, and what proves a claim."""


def between(page: str, marker: str) -> str:
    """The text between a pair of markers, without them."""
    pattern = rf"<!-- {marker}:begin -->(.*?)<!-- {marker}:end -->"
    found = re.search(pattern, SOURCES[page], re.DOTALL)
    assert found, f"{page} has no {marker} block"
    return found[1]


def blocks_of(page: str) -> list[tuple[str, str]]:
    """Language and text of each block of code."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", TEXTS[page], re.DOTALL | re.MULTILINE)


def code(page: str, marker: str) -> str:
    block = re.search(r"```\w*\n(.*?)```", between(page, marker), re.DOTALL)
    assert block
    return block[1].strip()


def test_each_of_the_two_commands_is_one_line():
    first, test = code("README", "first-command"), code("contributing", "test-command")
    assert len(first.splitlines()) == len(test.splitlines()) == 1
    assert first.endswith("memboard demo")


def test_the_test_command_runs_a_script_that_exists():
    words = shlex.split(code("contributing", "test-command"))
    script = next(word for word in words if word.endswith(".sh"))
    assert (ROOT / script).is_file()


def documented_commands() -> list[str]:
    """Every `memboard <verb> ...` in the blocks of code."""
    blocks = [
        text for page in TEXTS for kind, text in blocks_of(page) if kind == "bash"
    ]
    lines = [line for block in blocks for line in block.splitlines()]
    found = [line for line in lines if line.startswith("memboard ")]
    return sorted({line for line in found if not line.startswith("memboard --")})


@pytest.mark.parametrize("command", documented_commands())
def test_documented_commands_have_arguments_that_exist(command, monkeypatch):
    words = shlex.split(command.partition(">")[0], comments=True)[1:]
    verb = importlib.import_module(VERBS[words[0]])
    monkeypatch.setattr(verb, "run", lambda _: 0)
    assert main(words) == 0


def test_every_verb_is_shown_and_has_its_page():
    assert {command.split()[1] for command in documented_commands()} == set(VERBS)
    assert set(DOCUMENTED) == set(VERBS)
    assert set(DOCUMENTED.values()) <= set(NAMES)
    rows = re.findall(r"^\| `([\w-]+)` \|", text_of("commands"), re.MULTILINE)
    assert rows[: len(VERBS)] == sorted(rows[: len(VERBS)], key=rows.index)
    assert set(rows[: len(VERBS)]) == set(VERBS)


def test_options_in_the_text_exist():
    """Those of `memboard verb ... --option` in inline code."""
    verbs = verbs_of(parser_of(*VERBS))
    lines = [
        line
        for text in TEXTS.values()
        for line in re.findall(r"`memboard ([a-z][\w-]* [^`]*--[^`]*)`", text)
    ]
    assert len(lines) > 10
    for line in lines:
        verb, *words = shlex.split(line)
        known = verbs[verb]._option_string_actions
        options = [word for word in words if word.startswith("--")]
        assert [word for word in options if word not in known] == [], line


@pytest.mark.parametrize("page", list(TEXTS))
def test_blocks_of_code_can_be_parsed(page):
    for kind, text in blocks_of(page):
        if kind == "bash":
            subprocess.run(["bash", "-n"], input=text, text=True, check=True)
        elif kind == "python":
            compile(text, page, "exec")
        elif kind == "yaml":
            assert yaml.safe_load(text)
        else:
            assert kind == "", f"{page} has a block of {kind}"


def test_the_index_lists_every_page_under_its_group():
    text = text_of("index")
    for group, names in PAGES.items():
        part = text.partition(f"## {group}\n")[2].partition("\n## ")[0]
        assert tuple(re.findall(r"\]\(([\w-]+)\.md\)", part)) == names


def test_every_page_is_in_the_table_and_the_readme():
    assert {path.stem for path in FOLDER.glob("*.md")} == set(NAMES)
    for name in NAMES[1:]:
        assert f"`{name}`" in README.partition("## Documentation")[2]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_a_title_one_subject_and_a_block(name):
    text = text_of(name)
    assert re.match(r"# [^`\n]+\n\n", text)
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert len(re.findall(r"^# ", prose, re.MULTILINE)) == 1
    assert len(text.splitlines()) <= 250
    assert blocks_of(name), "how to try it"
    assert title_of(name)[0].isupper() or name in ("torchrun", "profiler")


@pytest.mark.parametrize("name", NAMES)
def test_links_between_pages_resolve(name):
    for target in re.findall(r"\]\((?!https?://)([^)]+)\)", text_of(name)):
        page, _, anchor = target.partition("#")
        linked = page.removesuffix(".md") if page else name
        assert not page or page.endswith(".md"), target
        assert linked in NAMES, target
        heads = re.findall(r"^#+ (.*)$", text_of(linked), re.MULTILINE)
        assert not anchor or anchor in [slugify(head, "-") for head in heads], target


def test_the_readme_links_to_nothing_that_a_package_index_lacks():
    """Relative links lead nowhere there: the package's text leaves the picture out."""
    (link,) = re.finditer(r"!?\[([^\]]*)\]\((?!https?://)([^)]+)\)", README)
    assert link[0].startswith("!")
    assert (ROOT / link[2]).is_file()
    assert len(link[1].split()) > 10
    packaged = metadata("memboard")["Description"]
    assert packaged.split() == README.replace(link[0], "").split()
    assert 120 <= len(README.splitlines()) <= 180


def test_files_of_the_repository_that_are_named_exist():
    names = re.compile(r"`((?:tests|examples|frontend|collector|tb_plugin)/[\w./-]+)`")
    named = {name for text in TEXTS.values() for name in names.findall(text)}
    assert len(named) > 20
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def rows_of(page: str, marker: str) -> list[list[str]]:
    """The cells of a table, without its head."""
    lines = between(page, marker).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows[2:]]


@pytest.mark.parametrize("row", rows_of("snapshots", "names"), ids=lambda row: row[0])
def test_names_of_snapshots_tell_what_the_page_says(row):
    names, rank, step = row
    for name in re.findall(r"`([^`]+)`", names):
        *folders, file = name.split("/")
        assert likelihood(file) != "no"
        said = parse_names(file, folders)
        assert said.rank == int(rank)
        assert said.step == (int(step) if step else None)


def test_the_verdicts_are_those_that_the_code_knows():
    rows = rows_of("out-of-memory", "verdicts")
    assert [row[0].strip("`") for row in rows] == list(VERDICTS)
    matrix = rows_of("measured", "matrix")
    assert [row[0].strip("`") for row in matrix] == list(OOM_CAUSES)
    assert all(sum(int(cell or 0) for cell in row[1:]) == 30 for row in matrix)
    assert "tests/perf/oom_verdicts.py" in between("measured", "matrix")


@pytest.mark.parametrize(
    ("marker", "struct"), [("report", Report), ("run", RunReport), ("finding", Finding)]
)
def test_the_keys_of_the_json_are_those_that_are_written(marker, struct):
    cells = [row[0] for row in rows_of("reports", marker)]
    keys = [key for cell in cells for key in re.findall(r"`(\w+)`", cell)]
    assert keys == list(struct.__struct_fields__)


def test_the_keys_of_a_snapshot_in_the_json_are_those_that_are_written():
    (meaning,) = (
        row[1] for row in rows_of("reports", "run") if row[0] == "`snapshots`"
    )
    keys = re.findall(r"`(\w+)`", meaning)
    assert keys == list(Snapshot.__struct_fields__)


def python_names() -> list[tuple[str, str]]:
    """`module.py:Name.attribute` as the path of a datum cites them."""
    return re.findall(r"`([\w/]+\.py):([\w.]+)`", between("format", "datum"))


@pytest.mark.parametrize(("path", "name"), python_names(), ids=str)
def test_the_path_of_a_datum_names_python_that_exists(path, name):
    module = path.removesuffix(".py").replace("/", ".")
    target = importlib.import_module(f"memboard.{module}")
    for part in name.split("."):
        target = getattr(target, part)


def test_the_path_of_a_datum_names_typescript_that_exists():
    cited = re.findall(r"`(\w+\.tsx?):(\w+)`", between("format", "datum"))
    assert len(cited) >= 3
    for file, name in cited:
        texts = [path.read_text() for path in (ROOT / "frontend/src").rglob(file)]
        exported = re.compile(rf"export [\w ]*\b{name}\b")
        assert any(map(exported.search, texts)), f"no {file} exports {name}"


def test_the_path_of_a_datum_is_not_empty():
    assert len(python_names()) >= 8


def test_every_figure_names_a_benchmark_that_exists():
    rows = [
        row
        for row in between("measured", "measured")
        .partition("## Opening")[0]
        .splitlines()
        if row.startswith("| ") and not row.startswith("| what ")
    ]
    assert len(rows) >= 40
    for row in rows:
        scripts = re.findall(r"`(tests/perf/\w+\.py)", row)
        assert scripts, f"no benchmark named in: {row}"
        assert all((ROOT / script).is_file() for script in scripts)
