"""Long histories are replayed once, whichever server opens them next."""

from __future__ import annotations

import pickle
import shutil
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.formats.recording.captures.reading import (
    capture_of,
    captures_of,
)
from memboard.tb_plugin.formats.snapshots.files.listing import FoundSnapshot
from memboard.tb_plugin.index.history_list import (
    FoundHistory,
    OwnCapture,
    reference_of_file,
)
from memboard.tb_plugin.jobs import replays as module
from memboard.tb_plugin.jobs.histories import Histories
from memboard.tb_plugin.jobs.replays import key_of_content
from memboard.tb_plugin.worker.cache import ColumnCache, FileKey
from memboard.tb_plugin.worker.importer import Importer
from tests.builders import RunBuilder
from tests.collector.recordings import wait_until
from tests.simulate import Form
from tests.tb_plugin.jobs.replay_results import assert_same, results
from tests.tb_plugin.pages.history_runs import captured, trained
from tests.tb_plugin.readers.test_rank_file import opened as rank_file

if TYPE_CHECKING:
    from pathlib import Path

    from memboard.tb_plugin.jobs.open_history import OpenHistory


@pytest.fixture
def all_long(monkeypatch):
    """However short a history is, it counts as long."""
    monkeypatch.setattr(module, "MIN_EVENTS", 1)


def recorded(folder: Path, num_events: int = 2000) -> Path:
    """A recording with one capture; its file."""
    captured(RunBuilder(folder), trained(num_events).snapshot(Form()))
    (path,) = folder.rglob("rank*.events")
    return path


def dumped(folder: Path, num_events: int = 2000) -> Path:
    """A snapshot in a file of its own."""
    folder.mkdir(exist_ok=True)
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(trained(num_events).snapshot(Form()), 4))
    return path


def found_in(path: Path) -> FoundHistory:
    key = FileKey.of(path.stat())
    shown = FoundSnapshot("f0123456789abcdef", str(path), path.name, key, 0)
    if path.suffix == ".pickle":
        return FoundHistory("run", reference_of_file(shown), "file", shown)
    file = rank_file(path)
    (entry,) = captures_of(file)
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


def until_kept(folder: Path, path: Path) -> Path:
    """The file of what replaying came to; keeping goes on after the history is open."""
    found = found_in(path)
    key = FileKey.of(path.stat())
    if isinstance(found.source, OwnCapture):
        key = key_of_content(capture_of(found.source.file, found.source.entry).tables)
    kept = ColumnCache(folder).path(key, module.CACHED_AS)
    wait_until(kept.exists)
    return kept


@pytest.mark.parametrize("made", [recorded, dumped])
def test_the_next_server_has_it_from_the_cache(tmp_path, server, all_long, made):
    path = made(tmp_path / "exp")
    first = server().open(path)
    assert not first.is_known
    kept = until_kept(tmp_path / "cache", path)
    second = server().open(path)
    assert second.is_known
    for one, other in zip(results(first), results(second), strict=True):
        for mine, its in zip(one, other, strict=True):
            assert_same(mine, its)
    # What is damaged is made again.
    data = kept.read_bytes()
    kept.unlink()  # who has mapped it keeps it
    kept.write_bytes(data[:-100])
    third = server().open(path)
    assert not third.is_known
    assert_same(results(third)[0][1], results(first)[0][1])


def test_what_is_written_to_a_file_anew_is_another_content(tmp_path, server, all_long):
    path = dumped(tmp_path / "exp")
    first = server().open(path)
    until_kept(tmp_path / "cache", path)
    changed = server().open(dumped(tmp_path / "exp", 500))
    assert not changed.is_known
    assert changed.device(None).num_events < first.device(None).num_events


def test_it_is_known_by_its_content_wherever_it_lies(tmp_path, server, all_long):
    path = recorded(tmp_path / "exp")
    server().open(path)
    until_kept(tmp_path / "cache", path)
    other = tmp_path / "copied" / path.name
    other.parent.mkdir()
    shutil.copyfile(path, other)
    assert server().open(other).is_known
    assert not server().open(recorded(tmp_path / "longer", 2500)).is_known


def test_short_ones_need_no_cache(tmp_path, server):
    one = server()
    assert not one.open(recorded(tmp_path / "exp")).is_known
    assert one.num_made == 0
    assert not (tmp_path / "cache").exists()


TABLES: dict[str, Any] = {
    "events": {"addr": np.arange(5), "size": np.arange(5) + 7},
    "strings": {"text": ("a", "bc", "\ud800")},
}


def other_tables(**tables: Any) -> Any:
    return key_of_content({**TABLES, **tables})


def test_the_key_is_of_every_table_column_type_and_value():
    events, texts = TABLES["events"], TABLES["strings"]["text"]
    others = [
        other_tables(),
        other_tables(events={**events, "size": np.arange(5) + 8}),
        other_tables(events={**events, "size": (np.arange(5) + 7).astype(np.int32)}),
        other_tables(events={"size": events["addr"], "addr": events["size"]}),
        other_tables(events={**events, "more": np.arange(0)}),
        other_tables(strings={"text": ("ab", "c", "\ud800")}),
        other_tables(strings={"text": texts[:2]}),
        other_tables(more={"a": ("",)}),
        key_of_content({"events": events}),
        key_of_content({}),
    ]
    assert len(set(others)) == len(others)
    assert other_tables() == other_tables(events={**events, "addr": np.arange(10)[:5]})
    assert other_tables() == other_tables(
        events={**events, "addr": np.arange(0, 10)[:5].copy()}
    )


@given(st.lists(st.text(max_size=3), max_size=5), st.lists(st.text(max_size=3)))
def test_texts_that_differ_have_other_keys(one, other):
    keys = [key_of_content({"t": {"s": tuple(texts)}}) for texts in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)
