"""A comment beside a claim of the documentation names what proves it.

`up to 8,192<!-- memboard.collector.engine.QUEUE_ROWS --> rows`: the number is that constant. So is a
name in backticks that of a constant text, and a count that of a collection's entries;
`2 s<!-- flush_seconds -->` is the default of a setting,
`frontend/src/a.ts:B` a constant of the page. `<!-- tests/a.py:test_b -->`: that
test executes the claim; so does `<!-- frontend/src/a.test.ts:"the title" -->`. Whatever a
comment names has to exist and agree.
"""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from memboard.collector.config import RecordConfig, settings
from tests.test_docs import SOURCES

ROOT = Path(__file__).parent.parent
COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.DOTALL)
MARKER = re.compile(r"[\w-]+:(?:begin|end)")
TEST = re.compile(r"(tests/[\w/]+\.py):(\w+)")
PAGE_TEST = re.compile(r"(frontend/src/[\w/]+\.test\.ts):\"([^\"]+)\"")

UNITS = {
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1,
    "second": 1,
    "minute": 60,
    "minutes": 60,
    "%": 0.01,
    "fifth": 0.2,
    "million": 10**6,
}
WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
COUNTS = {
    "a": 1,
    "an": 1,
    "every": 1,
    **{word: count for count, word in enumerate(WORDS)},
}
_NUMBER = rf"\d[\d,.]*(?:\^\d+)?|\b(?:{'|'.join(COUNTS)})\b"
CLAIM = re.compile(
    rf"(?P<first>{_NUMBER})(?: to (?P<last>{_NUMBER}))?"
    rf"(?: ?(?P<unit>{'|'.join(sorted(UNITS, key=len, reverse=True))}))?$",
    re.IGNORECASE,
)
"""What stands before a comment: `1 to 30 s`, `a fifth`, `2^62`."""
NAME = re.compile(r"`([^`]+)`$")


def comments() -> list[tuple[str, str, str]]:
    """Page, text before and content of each comment that names something."""
    found = []
    for page, text in SOURCES.items():
        for match in COMMENT.finditer(text):
            if not MARKER.fullmatch(match[1]):
                before = COMMENT.sub("", text[: match.start()])[-80:]
                found.append((page, " ".join(before.split()), match[1]))
    return found


PROVED = comments()
TESTED = [one for one in PROVED if TEST.match(one[2]) or PAGE_TEST.match(one[2])]
CONSTANTS = [one for one in PROVED if one not in TESTED]
TESTS = sorted({test for *_, names in TESTED for test in TEST.findall(names)})
PAGE_TESTS = sorted({test for *_, names in TESTED for test in PAGE_TEST.findall(names)})


def value_of(name: str) -> Any:
    """A constant of the code, or the default of a setting."""
    if name in settings():
        value: Any = RecordConfig()
        for part in name.split("."):
            value = getattr(value, part)
        return value
    if name.startswith("frontend/"):
        path, _, constant = name.partition(":")
        pattern = rf"export const {constant}(?:: \w+)? = ([\d *+-]+);"
        found = re.search(pattern, (ROOT / path).read_text())
        assert found, name
        return eval(found[1], {})  # digits and operators alone
    module, _, constant = name.rpartition(".")
    value = getattr(importlib.import_module(module), constant)
    if constant.endswith("_NS"):
        return value / 1e9
    return value / 100 if constant.endswith("_PCT") else value


def number_of(text: str, unit: str | None) -> float:
    """`8,192`, `2^62` or `three`, in the unit that constants have."""
    if text.lower() in COUNTS:
        number: float = COUNTS[text.lower()]
    else:
        base, _, exponent = text.replace(",", "").partition("^")
        number = float(base) if "." in base else int(base) ** int(exponent or 1)
    return number * UNITS.get(unit or "", 1)


def claimed(before: str, value: Any) -> Any:
    """What the text before a comment says, in the form of `value`."""
    if isinstance(value, str):
        name = NAME.search(before)
        return name and name[1]
    claim = CLAIM.search(before)
    assert claim, f"no number before the comment: {before!r}"
    if isinstance(value, tuple) and all(isinstance(one, int) for one in value):
        return tuple(map(int, claim["first"].split(".")))  # a version
    numbers = [number_of(one, claim["unit"]) for one in claim.group(1, 2) if one]
    return tuple(numbers) if len(numbers) > 1 else numbers[0]


@pytest.mark.parametrize(("page", "before", "name"), CONSTANTS, ids=str)
def test_a_number_is_that_of_the_code(page, before, name):
    value = value_of(name)
    said = claimed(before, value)
    if not isinstance(value, (str, int, float)) and not isinstance(said, tuple):
        value = len(value)
    assert said == (value if isinstance(value, str) else pytest.approx(value)), page


@cache
def defined_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}


@pytest.mark.parametrize(("path", "name"), TESTS, ids=str)
def test_a_test_that_proves_a_claim_exists(path, name):
    assert (ROOT / path).is_file()
    assert name.startswith("test_")
    assert name in defined_in(path)


@pytest.mark.parametrize(("path", "title"), PAGE_TESTS, ids=str)
def test_a_test_of_the_page_that_proves_a_claim_exists(path, title):
    titles = re.findall(
        r'^ *(?:it|test)\("(.+?)",', (ROOT / path).read_text(), re.MULTILINE
    )
    assert title in titles


def test_comments_that_name_tests_name_nothing_else():
    rest = [PAGE_TEST.sub("", TEST.sub("", names)) for *_, names in TESTED]
    assert [names for names in rest if names.strip(", \n")] == []


SUMS = ("README", "index", "changelog")
"""Pages that sum up others."""
OTHERS = ("contributing", "format", "kubernetes", "limits", "measured", "ray")
"""Pages about the tests, the code or what others' tools do."""
SIGNPOSTS = (
    "Choose the tab MemBoard.",
    "Five tabs, from the step down to the kernel.",
    "For marks, spans, validation phases",
    "How close the allocator's model comes",
    "Recipes: [torchrun",
    "TensorBoard has no login.",
    "TensorBoard itself has no login",
    "TensorBoard's own tabs read",
    "The program writes what it writes",
    "Three ways; choose one.",
    "What a job of many ranks and hosts needs",
    "writes a simulated job",
)
"""Paragraphs that promise nothing of ours; so do those that lead to what is below."""
PEERS = ("composer", "memprofiler", "torch-tb-profiler")
"""Pages that begin with a table of what is there, and what is here."""
ITEM = re.compile(r"^- .*(?:\n  .*)*", re.MULTILINE)
PARAGRAPH = re.compile(r"(?:^|(?<=\n\n))(?![-#|<\n]).+?(?=\n\n|\Z)", re.DOTALL)


def promises() -> list[str]:
    """Rows of the guarantees and of other tools' features, bullets, paragraphs of prose."""
    found = re.findall(r"^\| (?!situation).*", SOURCES["guarantees"], re.MULTILINE)
    for page in PEERS:
        table = SOURCES[page].partition(" | MemBoard |\n|---|---|\n")[2]
        rows = re.match(r"(?:\|.*\n)+", table)
        assert rows, page
        found += rows[0].splitlines()
    for page in (one for one in SOURCES if one not in (*SUMS, *OTHERS)):
        prose = re.sub(r"```.*?```", "", SOURCES[page], flags=re.DOTALL)
        found += PARAGRAPH.findall(prose) + ITEM.findall(prose)
    plain = [(one, COMMENT.sub("", one).removeprefix("- ").strip()) for one in found]
    return [
        one
        for one, text in plain
        if text[-1:] not in ("", ":") and not text.startswith(SIGNPOSTS)
    ]


@pytest.mark.parametrize("promise", promises(), ids=lambda text: text[2:40])
def test_each_promise_names_the_tests_that_execute_it(promise):
    is_tested = TEST.search(promise) or PAGE_TEST.search(promise)
    assert is_tested or "[measured](measured.md)" in promise


LIMIT = re.compile(
    r"(?<![\w.,-])\d[\d,.]* ?(?:%|us|ms|s|seconds?|minutes?|[KMG]iB)(?![\w/])(?!<!--)"
)
"""A number with a unit that no comment proves."""


FIGURES = ("measured", "analyses")
"""Pages of figures: each names its script or its file."""


@pytest.mark.parametrize("page", [page for page in SOURCES if page not in FIGURES])
def test_a_limit_names_its_constant(page):
    text = re.sub(r"```.*?```|`[^`\n]+`", "", SOURCES[page], flags=re.DOTALL)
    text = text.partition("## Versions")[0]  # what follows in `limits` was measured
    text = text.partition("<!-- config:begin -->")[0]  # generated, from docstrings
    lines = [
        " ".join(sentence.split())
        for sentence in re.split(r"(?<=[.:;])\s|\n\n", text)
        if LIMIT.search(sentence) and "measured" not in sentence.lower()
    ]
    assert lines == []
