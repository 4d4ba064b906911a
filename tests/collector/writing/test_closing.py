"""A program's end: what is written first, how long is waited, and what is said of a cut."""

from __future__ import annotations

import threading
import time

import pytest

from memboard.collector import ending
from memboard.collector.writing import append
from memboard.collector.writing.append import AppendFile
from memboard.collector.writing.queues import captures as capture_queue
from memboard.tb_plugin.cli.opening import read_whole, run_of_file
from tests.collector.recordings import read, record, wait_until
from tests.collector.writing.clockwork import (
    Clockwork,
    capture,
    only_file,
    row,
)


class Valve:
    """A disk that a test stops: from then on each append waits until it is opened."""

    def __init__(self, monkeypatch):
        self._is_open = threading.Event()
        self._is_open.set()
        self.num_let_through = 0
        """Appends that a stopped disk still takes."""
        append_to = AppendFile.append

        def guarded(file, data):
            if not self._is_open.is_set() and self.num_let_through:
                self.num_let_through -= 1
            else:
                self._is_open.wait(300)
            return append_to(file, data)

        monkeypatch.setattr(AppendFile, "append", guarded)

    def stop(self, after=0):
        self.num_let_through = after
        self._is_open.clear()

    def open(self):
        self._is_open.set()


@pytest.fixture
def valve(monkeypatch):
    made = Valve(monkeypatch)
    yield made
    made.open()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("memboard.collector.writing.writer.STALLED_SECONDS", 0.3)


def started(tmp_path, **keywords):
    """A writer that sleeps after its first round."""
    writer = Clockwork(tmp_path, flush_seconds=3600, **keywords).writer
    writer.start()
    wait_until(lambda: writer._num_finished == 1)
    return writer


def kinds_after_start(path):
    """Kinds of records behind the header, each once in a row."""
    kinds = read(path, last=False).kinds
    return [
        kind
        for before, kind in zip(["", *kinds], kinds, strict=False)
        if kind != before and kind not in ("", "header", "schema", "note")
    ]


def problems_in(path):
    run = run_of_file(path)
    run._clock = lambda: time.time() + 3600  # nobody writes any more
    read_whole(run)
    (attempt,) = run.attempts
    return attempt, [problem.what for problem in run.problems]


def test_how_it_ended_comes_first_then_the_crash_then_the_rest(tmp_path):
    writer = started(tmp_path)
    writer.put_capture(capture(1))
    for step in range(5):
        writer.put_row(0, row(step))
    writer.put_capture(capture(2, kind="history", context="exception"))
    writer.close("exception", "ValueError: x", 300, step=5, phase="train")
    expected = ["close", "capture", "chunk", "capture", "digest", "close"]
    assert kinds_after_start(only_file(tmp_path)) == expected
    found = read(only_file(tmp_path))
    assert [one.kind for one in found.captures] == ["history", "modules"]
    assert found.close.is_complete
    assert (found.close.steps.taken, found.close.steps.dropped) == (5, 0)


def test_a_large_capture_does_not_hold_the_end_back(tmp_path, monkeypatch):
    """The end is written between two captures, not behind all that wait."""
    writer = started(tmp_path)
    begun, go_on = threading.Event(), threading.Event()
    encode = capture_queue.encode_body

    def slow(one):
        begun.set()
        go_on.wait(300)
        return encode(one)

    monkeypatch.setattr(capture_queue, "encode_body", slow)
    for number in range(3):
        writer.put_capture(capture(number))
    writer.wake()
    assert begun.wait(300)
    writer.end("closed", "")
    go_on.set()
    wait_until(lambda: len(read(only_file(tmp_path)).captures) == 3)
    kinds = kinds_after_start(only_file(tmp_path))
    assert kinds[:3] == ["capture", "close", "capture"]
    writer.close("closed", "", 300)


def test_a_frozen_disk_is_given_up_and_what_it_lacks_is_counted(
    tmp_path, valve, impatient, caplog
):
    writer = started(tmp_path)
    valve.stop()
    for step in range(30):
        writer.put_row(0, row(step))
    writer.put_capture(capture(1))
    writer.close("closed", "", 300)
    assert "30 steps and 1 other record could not be written" in caplog.text.replace(
        "\n", " "
    )
    assert "does not answer" in caplog.text
    assert writer.num_dropped >= 31
    valve.open()
    writer._thread.join(300)
    assert writer.num_dropped == 0, "it came back before the process ended"


def test_a_disk_that_is_full_at_the_end_costs_what_is_counted(tmp_path, disk, caplog):
    writer = started(tmp_path)
    disk.room = 0
    for step in range(30):
        writer.put_row(0, row(step))
    writer.close("closed", "", 300)
    assert "30 steps and" in caplog.text
    assert writer.num_dropped >= 30


def test_a_file_that_is_cut_says_how_the_program_ended_and_that_it_was_cut(
    tmp_path, valve, impatient
):
    writer = started(tmp_path)
    for step in range(30):
        writer.put_row(0, row(step))
    valve.stop(after=1)
    writer.close("closed", "", 300)
    found = read(only_file(tmp_path))
    assert found.steps() == []
    assert (found.close.how, found.close.is_complete) == ("closed", False)
    assert found.close.steps.taken == 30
    attempt, problems = problems_in(only_file(tmp_path))
    assert attempt.ended == "closed"
    (cut,) = problems
    assert "ended in order, and its recording was cut" in cut
    valve.open()
    writer._thread.join(300)
    assert problems_in(only_file(tmp_path))[1] == []


def test_wherever_it_is_cut_how_it_ended_is_known(tmp_path, monkeypatch):
    """Readers begin at the last digest: it must not hide what stands before it."""
    ends = []
    append_to = AppendFile.append

    def noted(file, data):
        start = append_to(file, data)
        ends.append(file.end)
        return start

    writer = started(tmp_path)
    for number in range(4):
        writer.put_capture(capture(number, 200_000))  # each makes a digest due
    monkeypatch.setattr(AppendFile, "append", noted)
    writer.close("exception", "ValueError: x", 300)
    path = only_file(tmp_path)
    content = path.read_bytes()
    assert len(read(path).digests) > 2
    assert ends[-1] == len(content)
    for end in ends[:-1]:
        path.write_bytes(content[:end])
        attempt, problems = problems_in(path)
        assert attempt.ended == "exception"
        (cut,) = problems
        assert "ended by an exception, and its recording was cut" in cut


def test_the_end_waits_while_bytes_are_being_written(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("memboard.collector.writing.writer.STALLED_SECONDS", 1.0)
    writer = started(tmp_path)
    pieces = []
    write = append.os.write

    def slow(descriptor, data):
        if len(data) == 1 << 12:
            time.sleep(0.05)
            pieces.append(len(data))
        return write(descriptor, data)

    monkeypatch.setattr(append, "_PIECE_BYTES", 1 << 12)
    monkeypatch.setattr(append.os, "write", slow)
    writer.put_capture(capture(1, 20_000))
    writer.close("closed", "", 300)
    assert len(pieces) * 0.05 > 1.5
    assert not writer._thread.is_alive()
    assert read(only_file(tmp_path)).close.is_complete
    assert "still being written" in caplog.text
    assert "not complete" not in caplog.text


def test_the_end_waits_so_long_and_no_longer(tmp_path, impatient, caplog):
    """A writer that goes on and on, as on an overloaded machine."""
    release = threading.Event()

    writers = []

    def watch():
        while writers and writers[0]._is_closing and not release.is_set():
            time.sleep(0)

    writer = started(tmp_path, watch=watch)
    writers.append(writer)
    writer.put_row(0, row(0))
    writer.close("closed", "", 1.0)
    assert writer._thread.is_alive()
    assert "overloaded" in caplog.text
    release.set()
    writer._thread.join(300)


def test_a_recording_ends_before_what_takes_long_at_its_end(tmp_path, monkeypatch):
    """Of a program that a launcher kills while its traces are saved, the end is known."""
    ended = []
    with record(tmp_path / "run", flush_seconds=3600) as rec:
        rec.step()
        leave = ending._leave

        def left(session):
            wait_until(lambda: rec.path and read(rec.path, last=False).close)
            ended.append(read(rec.path, last=False))
            leave(session)

        monkeypatch.setattr(ending, "_leave", left)
    (found,) = ended
    assert (found.close.how, found.close.is_complete) == ("closed", False)
    assert found.close.steps.taken == 1
    assert read(rec.path).close.is_complete
