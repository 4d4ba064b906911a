"""Sizes, shares, lines and sentences."""

from __future__ import annotations

from typing import get_args

import pytest

from collector.simulate import OOM_CAUSES
from tb_plugin import api
from tb_plugin.analysis.oom.error import FreeBlocks, Growth, OomFacts
from tb_plugin.analysis.oom.verdict import CAUSES
from tb_plugin.pages.verdict import advice as verdict_advice
from tb_plugin.pages.verdict import words as verdict_words
from tb_plugin.pages.verdict.evidence import DECISIVE
from tb_plugin.pages.verdict.words import (
    CAUSE_WORDS,
    lines_words,
    sentence_of,
    share_words,
    size_words,
)

GIB = 1 << 30


def test_every_layer_has_the_same_causes():
    """Analysis knows no contract, and the contract nothing but itself."""
    assert get_args(api.OomCause) == CAUSES
    assert set(OOM_CAUSES) < set(CAUSES) - {"unsure"}
    assert set(CAUSES) == set(verdict_words._WHY)
    assert set(CAUSE_WORDS) == set(CAUSES)
    assert set(DECISIVE) <= set(CAUSES)
    assert set(verdict_advice._FOR) <= set(CAUSES)


@pytest.mark.parametrize(
    ("size", "words"),
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
def test_sizes_have_three_digits(size, words):
    assert size_words(size) == words


@pytest.mark.parametrize(
    ("share", "words"),
    [(0, "0.0 %"), (0.94745, "94.7 %"), (0.9999, "99.9 %"), (1, "100 %")],
)
def test_nothing_but_all_is_100_percent(share, words):
    assert share_words(share) == words


def test_lines_of_one_function_stand_together():
    one, two = "models.py:174 update", "models.py:181 update"
    assert lines_words([one]) == one
    assert lines_words([one, "train.py:3 main"]) == f"{one} and train.py:3 main"
    assert lines_words([one, two]) == "update in models.py, lines 174 and 181"
    assert lines_words([one, "mm", two]) == (
        "update in models.py, lines 174 and 181; mm"
    )


def test_each_sentence_says_what_was_asked_and_what_was_free():
    facts = OomFacts(requested_bytes=2 * GIB, device_free_bytes=GIB)
    assert sentence_of(facts, "really_full") == (
        "An allocation of 2.00 GiB failed with 1.00 GiB free on the device: what was"
        " live filled the device."
    )
    pieces = OomFacts(requested_bytes=2 * GIB, free=FreeBlocks(5 * GIB, GIB, 412))
    assert sentence_of(pieces, "fragmented") == (
        "An allocation of 2.00 GiB failed: the memory was fragmented, 5.00 GiB was free"
        " in 412 pieces, the largest 1.00 GiB."
    )
    growth = Growth(8 * GIB, GIB, 8, "memory", lines=("loop.py:7 keep",))
    assert sentence_of(OomFacts(growth=growth), "growth") == (
        "Memory retained across rounds filled the GPU, 8.00 GiB by loop.py:7 keep,"
        " growing 1.00 GiB per round."
    )
    assert sentence_of(OomFacts(), "unsure") == (
        "What was recorded does not tell why that failed."
    )
