"""Opening histories: once each, without waiting, kept within bounds."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest

from collector.format.snapshots import tables_of
from collector.simulate import Form
from tb_plugin.formats.snapshots.files.found import FoundSnapshot
from tb_plugin.jobs import histories as module
from tb_plugin.jobs.histories import HistoriesReader
from tb_plugin.jobs.history_list import FoundHistory, reference_of_file
from tb_plugin.jobs.worker.column_cache import ColumnCache
from tb_plugin.jobs.worker.errors import FileError, LimitError
from tb_plugin.server.errors import NotReadyError
from tests.collector.recordings import wait_until
from tests.tb_plugin.pages.history_runs import trained

if TYPE_CHECKING:
    from tb_plugin.jobs.worker.column_cache import FileKey


RUN = MagicMock()


class Waiting:
    """An import that ends when the test says so."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.progress = 0.3
        self.go_on = threading.Event()
        self.error: Exception | None = None

    def wait(self, seconds: float) -> bool:
        return self.go_on.wait(seconds)

    def followed(self, note):
        while not self.wait(0.01):
            note(self.progress)
        return self.result()

    def result(self):
        if self.error is not None:
            raise self.error
        return tables_of(trained(500).snapshot(Form()))


class Importing:
    """An importer that counts what it is asked for."""

    def __init__(self) -> None:
        self.cache = ColumnCache(
            Path("/nowhere")
        )  # of what is opened here nothing is kept
        self.started: list[Waiting] = []
        self.again: list[bool] = []

    def start(self, path: str, listed: FileKey, *, again: bool) -> Waiting:
        assert listed.inode == int(Path(path).stem)
        self.again.append(again)
        self.started.append(Waiting(Path(path)))
        return self.started[-1]


def file_of(number: int) -> FoundHistory:
    file = FoundSnapshot(
        id=f"f{number:016x}",
        path=f"/nowhere/{number}.pickle",
        shown_path=f"{number}.pickle",
        size_bytes=10,
        mtime_ns=10**18,
        device=1,
        inode=number,
        rank=number,
    )
    return FoundHistory("run", reference_of_file(file), "file", file)


def until(is_so) -> None:
    wait_until(is_so)


@pytest.fixture
def importing():
    return Importing()


@pytest.fixture
def reader(importing):
    made = HistoriesReader(lambda: importing)
    yield made
    for waiting in importing.started:
        waiting.go_on.set()


def opened(reader, importing, number, run=RUN):
    opening = reader.open(run, file_of(number))
    until(lambda: importing.started and importing.started[-1].path.stem == str(number))
    importing.started[-1].go_on.set()
    assert opening.wait(60)
    return opening


def test_what_is_asked_for_twice_is_opened_once(reader, importing):
    first, second = (reader.open(RUN, file_of(1)) for _ in range(2))
    assert first is second
    assert first.state == "opening"
    assert reader.opened("run", file_of(1).reference.id) is None
    until(lambda: first.doing == "reading the file")
    assert 0 < first.progress < 1
    importing.started[0].go_on.set()
    assert first.wait(60)
    assert first.state == "ready"
    assert first.progress == 1
    assert len(importing.started) == 1
    assert reader.opened("run", file_of(1).reference.id) is first.history
    assert reader.open(RUN, file_of(1)) is first


def test_one_that_takes_long_keeps_nobody_waiting(reader, importing):
    slow = reader.open(RUN, file_of(1))
    until(lambda: importing.started)
    held = importing.started[0]
    for number in range(2, 6):
        assert opened(reader, importing, number).state == "ready"
    assert slow.state == "opening"
    held.go_on.set()
    assert slow.wait(60)


def test_no_more_than_so_many_are_opened_at_a_time(reader, monkeypatch):
    monkeypatch.setattr(module, "MAX_OPENING", 3)
    for number in range(3):
        reader.open(RUN, file_of(number))
    with pytest.raises(NotReadyError) as caught:
        reader.open(RUN, file_of(3))
    assert caught.value.remedy
    assert reader.open(RUN, file_of(0)).state == "opening"


def test_what_failed_is_told_again_and_tried_again_later(
    reader, importing, monkeypatch
):
    opening = reader.open(RUN, file_of(1))
    until(lambda: importing.started)
    importing.started[0].error = FileError("It is torn.", "byte 7", "Copy it again.")
    importing.started[0].go_on.set()
    assert opening.wait(60)
    assert opening.state == "failed"
    assert opening.problem.what == "It is torn."
    assert opening.problem.where == "byte 7"
    assert opening.problem.rank == 1
    assert reader.open(RUN, file_of(1)) is opening
    monkeypatch.setattr(module, "_RETRY_S", 0.0)
    again = reader.open(RUN, file_of(1))
    assert again is not opening
    until(lambda: len(importing.started) == 2)
    importing.started[1].go_on.set()
    assert again.wait(60)
    assert again.state == "ready"


def test_a_person_may_have_it_tried_again_at_once_and_each_wish_counts_once(
    reader, importing
):
    def fail(number):
        until(lambda: len(importing.started) == number + 1)
        importing.started[number].error = LimitError("Too much.", "", "Record less.")
        importing.started[number].go_on.set()

    first = reader.open(RUN, file_of(1))
    fail(0)
    assert first.wait(60)
    assert reader.open(RUN, file_of(1)) is first
    second = reader.open(RUN, file_of(1), again=1)
    assert second is not first
    assert reader.open(RUN, file_of(1), again=1) is second  # it is under way
    fail(1)
    assert second.wait(60)
    # The page goes on asking in the same words.
    assert reader.open(RUN, file_of(1), again=1) is second
    third = reader.open(RUN, file_of(1), again=2)
    until(lambda: len(importing.started) == 3)
    importing.started[2].go_on.set()
    assert third.wait(60)
    assert third.state == "ready"
    assert reader.open(RUN, file_of(1), again=3) is third
    assert importing.again == [False, True, True]


def test_a_fault_of_ours_is_a_problem_and_not_the_end(reader, importing, caplog):
    opening = reader.open(RUN, file_of(1))
    until(lambda: importing.started)
    importing.started[0].error = ZeroDivisionError("ours")
    importing.started[0].go_on.set()
    assert opening.wait(60)
    assert "ZeroDivisionError" in opening.problem.what
    assert "traceback" in opening.problem.remedy
    assert opened(reader, importing, 2).state == "ready"


def test_another_file_of_the_same_name_is_another_history(reader, importing):
    first = opened(reader, importing, 1)
    changed = file_of(1)
    source = FoundSnapshot(
        **{
            **{name: getattr(changed.source, name) for name in FoundSnapshot.__slots__},
            "mtime_ns": 2 * 10**18,
        }
    )
    newer = FoundHistory("run", changed.reference, "file", source)
    second = reader.open(RUN, newer)
    assert second is not first
    until(lambda: len(importing.started) == 2)
    importing.started[-1].go_on.set()
    assert second.wait(60)
    assert reader.opened("run", changed.reference.id) is second.history


def test_those_used_last_stay_within_the_bound(importing):
    probe = HistoriesReader(lambda: importing)
    probed = opened(probe, importing, 0).history
    _ = probed.device(None).categories  # which each of them gets soon
    size = probed.num_bytes()
    assert size > 100 * 500
    reader = HistoriesReader(lambda: importing, max_bytes=int(2.5 * size))
    for number in (1, 2):
        opened(reader, importing, number)
    reader.opened("run", file_of(1).reference.id)  # used again
    opened(reader, importing, 3)
    until(lambda: reader.look_up(file_of(2)) is None)
    assert reader.look_up(file_of(1)) is not None
    assert reader.look_up(file_of(3)) is not None
    assert reader.opened("run", file_of(2).reference.id) is None


def test_one_larger_than_everything_stays_while_it_is_the_last(importing):
    reader = HistoriesReader(lambda: importing, max_bytes=1)
    opened(reader, importing, 1)
    reader.tidy()
    assert reader.look_up(file_of(1)) is not None
    opened(reader, importing, 2)
    until(lambda: reader.look_up(file_of(1)) is None)


def test_what_is_derived_counts_too(reader, importing):
    history = opened(reader, importing, 1).history
    before = history.num_bytes()
    device = history.device(None)
    assert device.attribution is device.attribution
    device.groups("stack")
    _ = device.clock_us
    assert history.num_bytes() > before
