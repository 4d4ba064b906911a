"""Listings of a store: asked for, kept, repeated when it is worth it."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.storage.entries import entry_of
from memboard.tb_plugin.storage.folders import Folders
from memboard.tb_plugin.storage.refusals import away

if TYPE_CHECKING:
    from memboard.tb_plugin.storage.contract import StorageError

MTIME = datetime(2026, 11, 21, 12, 0, 0, tzinfo=timezone.utc)


def info(name, size=1, **fields):
    return {"name": name, "size": size, "type": "file", "LastModified": MTIME, **fields}


class Store:
    """Listings that a test decides about, on a clock of its own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asked: list[str] = []
        self.holds: dict[str, list[dict] | None] = {"r": [info("a")]}
        self.error: StorageError | None = None
        self.cost = 0.0
        self.waiting: list = []
        self.folders = Folders("r", self.ask, self.waiting.append, lambda: self.now)

    def ask(self, path):
        self.asked.append(path)
        self.now += self.cost
        if self.error is not None:
            raise self.error
        return self.holds.get(path)

    def work(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()

    def look(self, path="r"):
        self.folders.look(path)
        self.work()
        return self.folders.look(path)


def test_who_asks_gets_what_is_known_and_waits_for_nothing():
    store = Store()
    known = store.folders.look("r")
    assert known.is_coming
    assert store.asked == []
    assert store.folders.coming() == (1, 0.0)
    for _ in range(5):
        store.folders.look("r")
    store.work()
    assert store.asked == ["r"]
    assert list(store.folders.look("r").entries) == ["a"]
    assert store.folders.coming() == (0, None)


def test_what_stays_as_it_is_is_listed_ever_more_rarely_and_what_changed_soon():
    store = Store()
    at = []
    for _ in range(3000):  # five minutes of a page that polls all the time
        before = len(store.asked)
        store.look("r/sub") if store.now else store.look()
        if len(store.asked) > before:
            at.append(store.now)
        store.holds["r/sub"] = [info("x")]
        store.now += 0.1
    pauses = [round(b - a, 1) for a, b in itertools.pairwise(at[1:])]
    assert pauses[0] == pytest.approx(2, abs=0.2)
    assert pauses == sorted(pauses)
    assert max(pauses) <= 60.2
    assert len(at) < 15
    store.holds["r/sub"] = [info("x"), info("y")]
    store.now += 60
    store.look("r/sub")
    num = len(store.asked)
    store.now += 2.1
    store.look("r/sub")
    assert len(store.asked) == num + 1


def test_a_slow_store_is_asked_a_tenth_of_the_time():
    store = Store()
    store.cost = 9.0
    store.look()
    ended = store.now
    while len(store.asked) == 1:
        store.now += 1
        store.look()
    assert store.now - 9 - ended >= 89


def test_only_what_changed_is_news():
    store = Store()
    store.look()
    version, changed = store.folders.version, store.folders.look("r").changed_ns
    store.now += 1000
    store.look()
    assert store.asked == ["r", "r"]
    assert store.folders.version == version
    assert store.folders.look("r").changed_ns == changed
    store.holds["r"] = [info("a", size=2)]
    store.now += 1000
    store.look()
    assert store.folders.version == version + 1


def test_a_refusal_keeps_what_is_known_and_is_tried_again_ever_more_rarely():
    store = Store()
    store.look()
    store.error = away("test")
    at = []
    for _ in range(6000):
        store.now += 0.1
        before = len(store.asked)
        known = store.look()
        if len(store.asked) > before:
            at.append(store.now)
        assert list(known.entries) == ["a"]
    assert known.refusal is store.error
    assert [k.path for k in store.folders.refusals()] == ["r"]
    pauses = [b - a for a, b in itertools.pairwise(at)]
    assert 1.9 <= pauses[0] <= 2.2
    assert 59 <= pauses[-1] <= 61
    store.error = None
    store.now += 61
    assert store.look().refusal is None
    assert store.folders.refusals() == []


def test_a_folder_that_is_gone_holds_nothing():
    store = Store()
    store.holds["r/sub"] = [info("x")]
    store.look("r/sub")
    store.holds["r/sub"] = None
    store.now += 100
    known = store.look("r/sub")
    assert known.is_gone
    assert dict(known.entries) == {}


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a\\b", "a\0b", "x" * 1025, "../../etc/passwd"]
)
def test_names_that_no_file_has_are_refused_and_counted(name):
    store = Store()
    store.holds["r"] = [info(name), info("good")]
    assert list(store.look().entries) == ["good"]
    assert store.folders.look("r").num_refused == 1


@given(st.text())
def test_a_path_is_its_folder_and_a_name_and_nothing_else(name):
    entry = entry_of("s3://b/r", {}, info(name))
    if entry is not None:
        assert entry.path == f"s3://b/r/{name}"
        assert entry.path.count("/") == "s3://b/r/".count("/")
        assert entry.name not in (".", "..")


def test_a_file_and_a_folder_of_one_name_are_the_folder():
    store = Store()
    folder = {"name": "a", "type": "directory", "size": 0}
    store.holds["r"] = [folder, info("a")]
    assert store.look().entries["a"].is_dir()
    store.holds["r"] = [info("a"), folder]
    store.now += 1000
    assert store.look().entries["a"].is_dir()


def test_a_file_written_twice_in_a_second_is_another():
    known = {}
    one = entry_of("r", known, info("a", ETag='"1"'))
    two = entry_of("r", known, info("a", ETag='"2"'))
    assert one.status != two.status
    assert one.status.st_ino == two.status.st_ino
    second = MTIME.timestamp()
    for entry in (one, two):
        assert second <= entry.status.st_mtime_ns / 1e9 < second + 1
    assert one == entry_of("r", known, info("a", ETag='"1"'))


@pytest.mark.parametrize(
    "said",
    [
        {"LastModified": MTIME},
        {"last_modified": MTIME.replace(tzinfo=None)},
        {"last_modified": MTIME.astimezone(timezone(timedelta(hours=5)))},
        {"updated": "2026-11-21T12:00:00Z"},
        {"mtime": MTIME.timestamp()},
        {"mtime": int(MTIME.timestamp())},
        {"created": MTIME},
        {"mtime": "2026-11-21T12:00:00.000+00:00", "created": "never"},
    ],
)
def test_every_file_systems_way_to_say_when(said):
    entry = entry_of("r", {}, {"name": "a", "size": 3, "type": "file", **said})
    assert entry.status.st_mtime_ns == int(MTIME.timestamp()) * 10**9


def test_where_nobody_says_when_it_was_when_it_was_first_seen():
    silent = {"name": "a", "size": 3, "type": "file"}
    first = entry_of("r", {}, silent)
    known = {"a": first}
    assert entry_of("r", known, silent) == first
    assert entry_of("r", known, {**silent, "size": 4}).status != first.status
