"""Sizes, shares, lines and sentences of findings."""

from __future__ import annotations

import pytest

from memboard.collector.format.sizes import SHOWN_UNIT
from memboard.tb_plugin.analysis.findings.text import (
    lines_text,
    share_text,
    size_text,
    some_of,
)
from memboard.tb_plugin.analysis.oom.case import (
    NAMES,
    Case,
    FreeBlocks,
    Growth,
    OomFacts,
)
from memboard.tb_plugin.analysis.oom.judge import oom_finding
from tests.simulate import OOM_CAUSES

GIB = 1 << 30
MIB = 1 << 20


def test_simulated_causes_are_known_ones():
    assert set(OOM_CAUSES) < set(NAMES) - {"unsure"}


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1023, "1.00 KiB"),
        (1536, "1.50 KiB"),
        (95_682_560, "91.3 MiB"),
        (5_308_694_528, "4.94 GiB"),
        (84_063_351_764, "78.3 GiB"),
        (999.4 * GIB, "999 GiB"),
        (2000 * GIB, "1.95 TiB"),
        (-3 * GIB, "-3.00 GiB"),
    ],
)
def test_sizes_have_three_digits(size, text):
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("size", "unit", "text"),
    [
        (84_063_351_764, "MiB", "80,169 MiB"),
        (84_063_351_764, "B", "84,063,351,764 B"),
        (95_682_560, "GiB", "0.09 GiB"),
        (1 << 20, "GiB", "0.001 GiB"),
        (-3 * GIB, "MiB", "-3,072 MiB"),
        (0, "GiB", "0 GiB"),
    ],
)
def test_sizes_are_told_in_the_unit_of_the_page(size, unit, text):
    before = SHOWN_UNIT.set(unit)
    assert size_text(size) == text
    SHOWN_UNIT.reset(before)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0.0 %"), (0.94745, "94.7 %"), (0.9999, "99.9 %"), (1, "100 %")],
)
def test_nothing_but_all_is_100_percent(share, text):
    assert share_text(share) == text


@pytest.mark.parametrize(
    ("num", "text"),
    [
        (1, "0"),
        (2, "0 and 1"),
        (7, "0, 1, 2, 3, 4, 5 and 6"),
        (8, "0, 1, 2, 3, 4, 5 and 2 more"),
    ],
)
def test_who_is_left_out_of_a_list_is_never_one(num, text):
    assert some_of(range(num)) == text


def test_lines_of_one_function_stand_together():
    one, two = "models.py:174 update", "models.py:181 update"
    assert lines_text([one]) == one
    assert lines_text([one, "train.py:3 main"]) == f"{one} and train.py:3 main"
    assert lines_text([one, two]) == "update in models.py, lines 174 and 181"
    assert lines_text([one, "mm", two]) == (
        "update in models.py, lines 174 and 181; mm"
    )


def test_each_sentence_says_what_was_asked_and_what_was_free():
    held = {"reserved_bytes": 38 * GIB, "active_bytes": 37 * GIB}
    facts = OomFacts(requested_bytes=2 * GIB, device_free_bytes=GIB, **held)
    assert oom_finding("oom", Case(facts=facts)).sentence == (
        "An allocation of 2.00 GiB failed with 1.00 GiB free on the device: the"
        " device was full, if this was all of its memory; 37.0 GiB was live, 94.9 % of the"
        " 39.0 GiB that torch had or could get (a guess: a card of 40 GB)."
    )
    close = OomFacts(requested_bytes=GIB, device_free_bytes=GIB - 3 * MIB, **held)
    assert oom_finding("oom", Case(facts=close)).sentence.startswith(
        "An allocation of 1.00 GiB failed with 1.00 GiB free on the device, 3.00 MiB too"
        " little: the device was full"
    )
    pieces = OomFacts(requested_bytes=2 * GIB, free=FreeBlocks(5 * GIB, GIB, 412))
    assert oom_finding("oom", Case(facts=pieces)).sentence == (
        "An allocation of 2.00 GiB failed: the memory was fragmented, with 5.00 GiB free"
        " in 412 blocks, the largest 1.00 GiB."
    )
    growth = Growth(8 * GIB, GIB, 8, "memory", lines=("loop.py:7 keep",))
    finding = oom_finding("oom", Case(facts=OomFacts(growth=growth)))
    assert finding.sentence == (
        "Memory retained across rounds filled the GPU, 8.00 GiB by loop.py:7 keep,"
        " growing 1.00 GiB per round."
    )
    assert "from round to round at loop.py:7 keep" in finding.advice[0].text
    assert oom_finding("oom", Case(facts=OomFacts())).sentence == (
        "The recording does not show why."
    )
