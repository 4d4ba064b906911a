"""The garbage collector's counts are in every step's row, and are what it did."""

from __future__ import annotations

import gc

import pytest

from memboard.collector.config import RecordConfig
from memboard.collector.core.source import Unavailable
from memboard.collector.format.columns import GARBAGE
from memboard.collector.sources.host import garbage


class Cycle:
    """Refers to itself."""

    def __init__(self):
        self.self = self


def sample():
    reader = garbage.GARBAGE_SOURCE.open(RecordConfig(), None)
    return dict(zip((one.name for one in GARBAGE), reader.sample(), strict=True))


def test_a_full_collection_and_what_it_frees_are_counted():
    gc.collect()
    before = sample()
    for _ in range(50):
        Cycle()
    gc.collect()
    after = sample()
    assert after["gc_full_collections"] == before["gc_full_collections"] + 1
    assert after["gc_collected_objects"] >= before["gc_collected_objects"] + 50


def test_a_partial_collection_is_none_of_all_objects():
    before = sample()
    gc.collect(0)
    after = sample()
    assert after["gc_partial_collections"] > before["gc_partial_collections"]


def test_a_python_without_counts_is_said_to_have_none(monkeypatch):
    for instead in ([], [{}, {}, {}], None):
        monkeypatch.setattr(gc, "get_stats", lambda instead=instead: instead)
        with pytest.raises(Unavailable, match="does not count"):
            sample()
    monkeypatch.delattr(gc, "get_stats")
    with pytest.raises(Unavailable):
        sample()
