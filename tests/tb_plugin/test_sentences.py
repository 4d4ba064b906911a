"""Sentences with counts: right with one, two and many; no raw names, no negative zero."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.format.sizes import bytes_text, counted, fixed, part_of, the_other
from tb_plugin.analysis.findings.conditions import Setup
from tb_plugin.analysis.findings.cycles import Sawtooth, reference_cycles
from tb_plugin.analysis.findings.growth import GrowingRank, growing_memory
from tb_plugin.analysis.findings.host_growth import (
    GrowingProcess,
    HostRoom,
    growing_processes,
)
from tb_plugin.analysis.findings.losses import loss_line, steps_missing, traces_missing
from tb_plugin.analysis.findings.ranks import Peaks, peak_findings
from tb_plugin.analysis.findings.render import markdown_lines
from tb_plugin.analysis.findings.steps import straggling
from tb_plugin.analysis.findings.text import duration_text, quantity_text, share_text
from tb_plugin.analysis.findings.text import size_text as size
from tb_plugin.analysis.oom.case import Case, Growth, OomFacts
from tb_plugin.analysis.oom.holdings import Holding
from tb_plugin.analysis.oom.judge import judged, survived_text
from tb_plugin.analysis.oom.live_advice import holding_advice
from tb_plugin.analysis.ranks.stragglers import Straggler
from tb_plugin.api.overview import LostSteps, LostTrace, RankLoss
from tests.routes.goldens import ANSWERS

GIB = 1 << 30
NUMBERS = (1, 2, 3, 48)

_NOUNS = (
    "ranks|steps|rounds|modules|calls|blocks|processes|passes|histories|events|rows|bytes|"
    "times|problems|files|kernels|segments|pools|allocations|peers|ranges|attempts|slices"
)
WRONG = {
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


def faults(sentence: str) -> list[str]:
    return [name for name, pattern in WRONG.items() if re.search(pattern, sentence)]


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


def peaks(num: int, num_ooms: int, num_unread: int, num_outliers: int) -> Peaks:
    sizes = np.arange(num, dtype=np.float64) * GIB + 10 * GIB
    return Peaks(
        ranks=range(num),
        peak_bytes=sizes,
        peak_step=np.full(num, 3.0),
        capacity_bytes=np.full(num, 80.0 * GIB),
        capacity_kind="device",
        median_bytes=float(np.median(sizes)),
        growth=np.zeros(num),
        num_ooms=(np.arange(num) < num_ooms).astype(np.float64),
        outliers=range(num - num_outliers, num),
        unreadable=(),
        empty=(),
        num_unread=num_unread,
    )


def loss(rank: int, num: int, *, is_stopped: bool) -> RankLoss:
    return RankLoss(
        rank=rank,
        attempt=0,
        num_steps=num,
        num_dropped=0 if is_stopped else num,
        num_unwritten=0,
        num_damaged=0 if is_stopped else 1,
        damaged=() if is_stopped else (LostSteps("train", 1, 1, 1),),
        num_summed_up=0,
        is_stopped=is_stopped,
        cut_seconds=2.0 if is_stopped else 0.0,
        cut_steps=float(num) if is_stopped else None,
        num_traces=num,
        num_lost_traces=num,
        lost_traces=tuple(
            LostTrace(cycle, None if is_stopped else cycle, cycle + num - 1, "full.")
            for cycle in range(1, num + 1)
        ),
    )


def late(rank: int, *, by_part: bool) -> Straggler:
    return Straggler(rank, 0.9, 0.4, "backward", 0.4, stands_out=True, by_part=by_part)


@pytest.mark.parametrize("num", NUMBERS)
def test_findings_agree_with_their_counts(num):
    said = []
    for part in {1, num}:
        for unread, ooms, outliers in ((part, 0, 0), (0, part, 0), (0, 0, part)):
            facts = peaks(num, ooms, unread, outliers)
            said += peak_findings(facts, None, has_errors=False)
        said += [
            straggling(
                [late(rank, by_part=by_part) for rank in range(part)],
                dict.fromkeys(range(part), "node3"),
                1.0,
                max(num, 4 * part),
            )
            for by_part in (True, False)
        ]
    said.append(straggling([late(0, by_part=True)], {}, 1.0, 2))
    growing = [
        GrowingRank(rank, 2.0**20, 2.0**30, num, num, 2.0**35, 2.0**36)
        for rank in range(num)
    ]
    said.append(growing_memory(growing, None, Setup()))
    room = HostRoom("node3", 2.0**30, None, 2.0**25, num)
    for workers in (True, False):
        processes = [
            GrowingProcess(rank, 2.0**20, 2.0**30, num, num, 2.0**35, room)
            for rank in range(num)
        ]
        said.append(growing_processes(processes, workers=workers))
    teeth = Sawtooth(num, num, 2.0**30, 2.0**30, 1.0, num, is_called=True)
    said.append(reference_cycles(3, teeth, memory="device memory", capacity=None))
    losses = [loss(rank, num, is_stopped=False) for rank in range(num)]
    said += [steps_missing(losses), traces_missing(losses)]
    texts = [*sentences_of(said), loss_line(losses)]
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


@pytest.mark.parametrize("num", NUMBERS)
@pytest.mark.parametrize("by", ["steps", "stacks"])
def test_verdicts_agree_with_their_counts(num, by):
    facts = OomFacts(
        requested_bytes=GIB,
        device_free_bytes=0,
        capacity_bytes=80 * GIB,
        reserved_bytes=79 * GIB,
        active_bytes=79 * GIB,
        growth=Growth(60 * GIB, GIB, num, by),
        peers_peak_bytes=(GIB,) * num,
    )
    verdict = judged(Case(facts=facts, world_size=num + 1))
    texts = [
        verdict.sentence + survived_text(num, num),
        *(one.text for one in verdict.advice),
        *(f"{one.scope}; {one.caveat}" for one in verdict.evidence),
    ]
    assert {text: found for text in texts if (found := faults(text))} == {}


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
    texts = answer.splitlines()
    if not path.stem.startswith("report_text") and not path.stem.startswith(
        "report_md"
    ):
        texts = _TEXT.findall(answer)
    assert {text: found for text in texts if (found := faults(text))} == {}
