"""Bytes of a store's files: few requests, bounded waiting, nothing asked for twice."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.storage.content import blocks as module
from memboard.tb_plugin.storage.content.blocks import BLOCK, Blocks, Content
from memboard.tb_plugin.storage.contract import PendingError, StorageError
from memboard.tb_plugin.storage.refusals import away
from tests.collector.recordings import wait_until

DATA = np.random.default_rng(7).bytes(20 * BLOCK + 17)


class Store:
    """A file, and what was asked of it."""

    def __init__(self, data: bytes = DATA) -> None:
        self.data = data
        self.asked: list[tuple[int, int]] = []
        self.error: StorageError | None = None
        self.answers = threading.Event()
        self.answers.set()
        self.now = 0.0
        self.blocks = Blocks(self.fetch, lambda: self.now)
        self.content = Content("s3://b/x", len(data), 1)

    def fetch(self, path, start, end):
        self.asked.append((start, end))
        self.answers.wait(300)
        if self.error is not None:
            raise self.error
        return self.data[start:end]

    def read(self, start, length):
        return self.blocks.read(self.content, start, length)


@given(st.integers(0, len(DATA) + 100), st.integers(0, 6 * BLOCK))
def test_any_range_is_what_the_file_holds_there(start, length):
    store = Store()
    for _ in range(2):
        assert store.read(start, length) == DATA[start : start + length]
    assert len(store.asked) <= 1


def test_a_small_file_comes_whole_by_one_request():
    store = Store(DATA[: 3 * BLOCK])
    assert store.read(len(store.data) - 10, 10) == store.data[-10:]
    assert store.read(0, 8192) == store.data[:8192]
    assert store.read(BLOCK, BLOCK) == store.data[BLOCK : 2 * BLOCK]
    assert store.asked == [(0, len(store.data))]


def test_of_a_large_file_only_the_blocks_that_are_wanted_come():
    store = Store()
    store.read(0, 8192)
    store.read(len(DATA) - 4096, 4096)
    assert store.asked == [(0, BLOCK), (19 * BLOCK, len(DATA))]


def test_what_grew_is_read_where_it_grew():
    store = Store()
    store.read(0, len(DATA))
    grown = Content("s3://b/x", len(DATA) + 5 * BLOCK, 2)
    store.data = DATA + bytes(5 * BLOCK)
    store.asked.clear()
    store.blocks.read(grown, len(DATA), 5 * BLOCK)
    ((start, _),) = store.asked
    assert start >= 20 * BLOCK


def test_what_is_peeked_at_comes_by_itself_and_once():
    store = Store()
    store.answers.clear()
    for _ in range(3):
        with pytest.raises(PendingError):
            store.blocks.peek(store.content, 0, 100)
    assert store.blocks.is_coming
    store.answers.set()
    wait_until(lambda: store.blocks.version > 0)
    assert store.blocks.peek(store.content, 0, 100) == DATA[:100]
    assert len(store.asked) == 1


def test_not_more_is_on_its_way_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(module, "_MAX_COMING", 5)
    store = Store()
    store.answers.clear()
    for number in range(50):
        content = Content(f"s3://b/{number}", 100, 1)
        with pytest.raises(PendingError):
            store.blocks.peek(content, 0, 100)
    assert len(store.blocks._coming) == 5
    store.answers.set()


def test_memory_is_bounded_and_those_used_last_stay(monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 4 * BLOCK + 4 * 400)
    store = Store()
    for number in range(10):
        store.read(number * BLOCK, 10)
    assert len(store.blocks._kept) <= 4
    store.asked.clear()
    store.read(9 * BLOCK, 10)
    assert store.asked == []
    store.read(0, 10)
    assert store.asked == [(0, BLOCK)]


def test_a_store_that_is_away_is_not_asked_at_once_again():
    store = Store()
    store.error = away("test")
    with pytest.raises(StorageError, match="cannot be reached"):
        store.read(0, 10)
    for number in range(100):
        with pytest.raises(StorageError, match="cannot be reached"):
            store.blocks.read(Content(f"s3://b/{number}", 10, 1), 0, 10)
    assert len(store.asked) == 1
    (told,) = store.blocks.refusals()
    assert told.path == "s3://b/x"
    store.error = None
    store.now += 2.1
    assert store.read(0, 10) == DATA[:10]
    assert store.blocks.refusals() == []


def test_one_file_that_is_refused_keeps_nobody_from_others():
    store = Store()
    store.error = StorageError("The store denied access", "x", 13)
    with pytest.raises(StorageError):
        store.read(0, 10)
    store.error = None
    other = Content("s3://b/other", len(DATA), 1)
    assert store.blocks.read(other, 0, 10) == DATA[:10]
    with pytest.raises(StorageError):
        store.read(0, 10)
    store.now += 2.1
    assert store.read(0, 10) == DATA[:10]


def test_who_waits_waits_for_bounded_time(monkeypatch):
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.05)
    store = Store()
    store.answers.clear()
    with pytest.raises(StorageError, match="no answer within"):
        store.read(0, 10)
    with pytest.raises(StorageError):  # at once: it is away
        store.read(10 * BLOCK, 10)
    wait_until(lambda: store.asked)
    assert len(store.asked) == 1
    store.answers.set()


def test_a_file_that_shrank_gives_what_there_is_and_is_not_kept():
    store = Store()
    store.data = DATA[:100]
    assert store.read(0, BLOCK) == DATA[:100]
    assert store.read(0, 100) == DATA[:100]
    assert len(store.asked) == 2
