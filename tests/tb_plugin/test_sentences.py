"""Sentences with counts: right with one, two and many; no raw names, no negative zero."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.format.sizes import (
    bytes_text,
    counted,
    fixed,
    part_of,
    the_other,
)
from memboard.tb_plugin.analysis.findings.losses import loss_line
from memboard.tb_plugin.analysis.findings.render import markdown_lines
from memboard.tb_plugin.analysis.findings.text import (
    duration_text,
    quantity_text,
    share_text,
)
from memboard.tb_plugin.analysis.findings.text import size_text as size
from memboard.tb_plugin.analysis.oom.case import Case, OomFacts
from memboard.tb_plugin.analysis.oom.holders import Holding
from memboard.tb_plugin.analysis.oom.live_advice import holding_advice
from tests.routes.goldens import ANSWERS
from tests.tb_plugin.finding_cases import CASES, declared, loss

GIB = 1 << 30
NUMBERS = (1, 2, 3, 48)

_NOUNS = (
    "ranks|steps|rounds|modules|calls|blocks|processes|passes|histories|events|rows|bytes|"
    "times|problems|files|kernels|segments|pools|allocations|peers|ranges|attempts|slices"
)
_SINGULAR = (
    "rank|step|round|module|call|block|process|pass|history|event|row|time|problem|file|"
    "kernel|segment|pool|allocation|peer|range|attempt|slice|folder|host|error"
)
WRONG = {
    "two spaces": r"[^\s|]  +[^\s|]",
    "a space before a mark": r"\w [,;:.](?=\s|$)",
    "two marks": r"[^.]\.\.(?!\.)|,,|;;|\.;|:\.",
    "one with a verb of many": (
        rf"(?<![\d.,])1 (of [\d,]+ )?(more |other )?({_SINGULAR}|{_NOUNS})"
        r" (are|were|have|wait|grow)\b"
    ),
    "many with a verb of one": (
        rf"(?<![\d.,])(?<!of )(?<!in )(?!1 )[\d,]+ (of [\d,]+ )?(more |other )?({_NOUNS})"
        r" (is|was|has|waits|grows)\b"
    ),
    "one of many": rf"(?<![\d.,])1 (more |other |live )?({_NOUNS})\b",
    "a plural twice": r"passs|sss\b|\bhistorys\b|\bprocesss",
    "a plural in brackets": r"\w\(s\)",
    "negative zero": r"(?<![\w.,-])[-−]0(\.0+)?(?![\d.,]*[1-9])(?= ?(%|B\b|s\b|ms|µs|[a-z]))",  # noqa: RUF001
    "a column's name": r"\b(npp_compat|rss_bytes)\b",
    "one of one": r"(?<![\d,.])1 of 1\b",
    "all of no more": r"\bthe other 1\b",
    "an empty list": r": \. |\S: \.$",
    "a number in full": r"(?<![\d.])\d+\.\d{7,}(?![\d.]*\.pt\b)",
}


_OF_COLUMNS = ("two spaces",)
"""Faults of sentences that columns of a table may have."""


def faults(sentence: str, allowed: tuple[str, ...] = ()) -> list[str]:
    found = [name for name, pattern in WRONG.items() if re.search(pattern, sentence)]
    return [name for name in found if name not in allowed]


def sentences_of(findings):
    for finding in findings:
        if finding is not None:
            yield finding.title
            yield finding.sentence
            yield finding.rule
            yield from finding.others
            yield from (one.text for one in finding.advice)
            yield from (f"{one.scope}; {one.caveat}" for one in finding.evidence)
            yield "\n".join(markdown_lines(finding))


NEEDS_MORE = {"uneven_peaks", "single_process"}
"""One alone is above no other, and drives nothing but itself."""


@pytest.fixture(scope="module", params=NUMBERS)
def made(request):
    """How many, and the findings of each function that makes some."""
    num = request.param
    functions = dict.fromkeys(CASES.values())
    return num, {
        make: [one for one in make(num) if one is not None] for make in functions
    }


def test_every_declared_finding_has_a_case():
    assert set(CASES) == declared()


@pytest.mark.parametrize("key", sorted(CASES))
def test_findings_agree_with_their_counts(made, key):
    num, findings = made
    found = [one for one in findings[CASES[key]] if one.key == key]
    assert found or (num == 1 and key in NEEDS_MORE)
    texts = list(sentences_of(found))
    assert {text: wrong for text in texts if (wrong := faults(text))} == {}


@pytest.mark.parametrize("num", NUMBERS)
def test_the_line_about_losses_agrees_with_its_counts(num):
    texts = [loss_line([loss(rank, num, is_stopped=False) for rank in range(num)])]
    texts.append(loss_line([loss(rank, num, is_stopped=True) for rank in range(num)]))
    # A rank that was stopped at two starts is one rank.
    texts.append(loss_line([loss(3, num, is_stopped=True) for _ in range(num)]))
    assert {text: found for text in texts if (found := faults(text))} == {}


@pytest.mark.parametrize("num", NUMBERS)
@pytest.mark.parametrize(
    "kind",
    ["graph_pools", "program_pools", "no_backward", "prefetched", "workspaces"],
)
def test_advice_agrees_with_what_is_held(num, kind):
    case = Case(facts=OomFacts(), trains=True, holdings=(Holding(kind, GIB, num),))
    (advice,) = holding_advice(case)
    assert faults(advice.text) == []
    assert ("forward passes" in advice.text) == (kind == "no_backward" and num > 1)


def test_a_part_of_all_and_all_others():
    assert [counted(num, "forward pass") for num in (0, 1, 48)] == [
        "0 forward passes",
        "1 forward pass",
        "48 forward passes",
    ]
    assert counted(2, "history") == "2 histories"
    assert counted(1_000, "key") == "1,000 keys"
    assert [part_of(*of, "rank") for of in ((1, 1), (1, 8), (8, 8), (0, 1))] == [
        "1 rank",
        "1 of 8 ranks",
        "8 ranks",
        "0 of 1 rank",
    ]
    assert [the_other(num, "rank") for num in (1, 3)] == [
        "the other rank",
        "the other 3 ranks",
    ]


@given(st.floats(-1, 1) | st.floats(-1e12, 1e12))
def test_no_number_is_negative_zero(value):
    texts = [size(value), share_text(value), duration_text(value), bytes_text(value)]
    texts += [quantity_text(value, unit) for unit in ("bytes", "seconds", "percent")]
    texts += [quantity_text(value, "count"), fixed(value, 2)]
    for text in texts:
        assert not text.startswith("-") or re.search("[1-9]", text), text


_TEXT = re.compile(
    r'(?:help|sentences?|summary|note|what|words|title|rest|label|text): "([^"]+)"'
)


@pytest.mark.parametrize(
    "path",
    sorted(ANSWERS.rglob("*.txt")),
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_golden_answers_have_no_such_sentence(path):
    answer = path.read_text()
    is_report = path.stem.startswith(("report_text", "report_md"))
    texts = answer.splitlines() if is_report else _TEXT.findall(answer)
    # A table within an answer has lines.
    found = {
        text: faults(text, _OF_COLUMNS if is_report or "\\n" in text else ())
        for text in texts
    }
    assert {text: wrong for text, wrong in found.items() if wrong} == {}
