"""Long captures of our own are replayed once, whichever server opens them next."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_plugin.formats.recording.captures import captures_of
from tb_plugin.formats.snapshots.files.listing import FoundSnapshot
from tb_plugin.jobs import replays as module
from tb_plugin.jobs.histories import Histories
from tb_plugin.jobs.history_list import FoundHistory, OwnCapture, reference_of_file
from tb_plugin.jobs.replays import key_of_content
from tb_plugin.worker.cache import ColumnCache, FileKey
from tb_plugin.worker.importer import Importer
from tests.builders import RunBuilder
from tests.simulate import Form
from tests.tb_plugin.jobs.replay_results import results, same
from tests.tb_plugin.pages.history_runs import captured, trained
from tests.tb_plugin.readers.test_rank_file import opened as rank_file

if TYPE_CHECKING:
    from pathlib import Path

    from tb_plugin.jobs.open_history import OpenHistory


@pytest.fixture
def all_long(monkeypatch):
    """However short a history is, it counts as long."""
    monkeypatch.setattr(module, "MIN_EVENTS", 1)


def recorded(folder: Path, num_events: int = 2000) -> Path:
    """A recording with one capture; its file."""
    captured(RunBuilder(folder), trained(num_events).snapshot(Form()))
    (path,) = folder.rglob("rank*.events")
    return path


def found_in(path: Path) -> FoundHistory:
    file = rank_file(path)
    (entry,) = captures_of(file)
    shown = FoundSnapshot("f0", str(path), path.name, FileKey(1, 1, 1, 1), 0)
    source = OwnCapture(file, entry)
    return FoundHistory("run", reference_of_file(shown), "by_hand", source)


class Server:
    """A start of the server: a reader of its own, with the user's cache."""

    def __init__(self, folder: Path) -> None:
        self.importer = Importer(ColumnCache(folder))
        self.num_made = 0
        self.reader = Histories(self._made)

    def _made(self) -> Importer:
        self.num_made += 1
        return self.importer

    def open(self, path: Path) -> OpenHistory:
        opening = self.reader.open(MagicMock(), found_in(path))
        assert opening.wait(120)
        assert opening.result is not None, opening.problem
        return opening.result


@pytest.fixture
def server(tmp_path):
    started: list[Server] = []

    def start() -> Server:
        started.append(Server(tmp_path / "cache"))
        return started[-1]

    yield start
    for one in started:
        one.importer.close()


def until_kept(folder: Path, count: int) -> None:
    """Keeping goes on after the history is open."""
    deadline = time.monotonic() + 60
    while len(list(folder.rglob("*.columns"))) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_next_server_has_it_from_the_cache(tmp_path, server, all_long):
    path = recorded(tmp_path / "exp")
    first = server().open(path)
    assert not first.is_known
    until_kept(tmp_path / "cache", 1)
    second = server().open(path)
    assert second.is_known
    for one, other in zip(results(first), results(second), strict=True):
        for mine, its in zip(one, other, strict=True):
            same(mine, its)


def test_it_is_known_by_its_content_wherever_it_lies(tmp_path, server, all_long):
    path = recorded(tmp_path / "exp")
    server().open(path)
    until_kept(tmp_path / "cache", 1)
    other = tmp_path / "copied" / path.name
    other.parent.mkdir()
    shutil.copyfile(path, other)
    assert server().open(other).is_known
    assert not server().open(recorded(tmp_path / "longer", 2500)).is_known


def test_what_is_kept_and_damaged_is_made_again(tmp_path, server, all_long):
    path = recorded(tmp_path / "exp")
    first = server().open(path)
    until_kept(tmp_path / "cache", 1)
    (kept,) = (tmp_path / "cache").rglob("*.columns")
    kept.write_bytes(kept.read_bytes()[:-100])
    again = server().open(path)
    assert not again.is_known
    same(results(again)[0][1], results(first)[0][1])


def test_short_ones_need_no_cache(tmp_path, server):
    one = server()
    assert not one.open(recorded(tmp_path / "exp")).is_known
    assert one.num_made == 0
    assert not (tmp_path / "cache").exists()


TABLES: dict[str, Any] = {
    "events": {"addr": np.arange(5), "size": np.arange(5) + 7},
    "strings": {"text": ("a", "bc", "\ud800")},
}


def changed(**tables: Any) -> Any:
    return key_of_content({**TABLES, **tables})


def test_the_key_is_of_every_table_column_type_and_value():
    events, texts = TABLES["events"], TABLES["strings"]["text"]
    others = [
        changed(),
        changed(events={**events, "size": np.arange(5) + 8}),
        changed(events={**events, "size": (np.arange(5) + 7).astype(np.int32)}),
        changed(events={"size": events["addr"], "addr": events["size"]}),
        changed(events={**events, "more": np.arange(0)}),
        changed(strings={"text": ("ab", "c", "\ud800")}),
        changed(strings={"text": texts[:2]}),
        changed(more={"a": ("",)}),
        key_of_content({"events": events}),
        key_of_content({}),
    ]
    assert len(set(others)) == len(others)
    assert changed() == changed(events={**events, "addr": np.arange(10)[:5]})
    assert changed() == changed(events={**events, "addr": np.arange(0, 10)[:5].copy()})


@given(st.lists(st.text(max_size=3), max_size=5), st.lists(st.text(max_size=3)))
def test_texts_that_differ_have_other_keys(one, other):
    keys = [key_of_content({"t": {"s": tuple(texts)}}) for texts in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)
