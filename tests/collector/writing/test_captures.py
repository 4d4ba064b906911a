"""Captures from any thread into the file: bounded, listed, never in the rows' way."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from msgspec.structs import replace

from memboard.collector.core.source import SourceInfo
from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.format import capture as body_codec
from memboard.collector.format.capture import PART_BYTES
from memboard.collector.format.columns import AXES, Column
from memboard.collector.format.encoding.framing import Damage, read_frames
from memboard.collector.sources.source import nothing
from memboard.collector.writing.append import AppendFile
from memboard.collector.writing.queues.captures import CaptureQueue
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.formats.recording.captures.reading import captures_of
from tests.collector.recordings import rank_files, read, record, wait_until
from tests.collector.writing.clockwork import (
    START_NS,
    STEP,
    Clockwork,
    attempt_path,
    capture,
    closed,
    found_in,
    identity,
    only_file,
    put,
    rank_file,
    row,
    the_only_recording,
    write_rows,
)
from tests.programs import Program

# The queue.


def test_the_queue_is_bounded_in_bytes_and_counts_what_it_drops():
    queue = CaptureQueue(WarnOnce(), nothing, max_bytes=10_000)
    assert [queue.put(capture(n, 500)) for n in range(4)] == [True, True, False, False]
    assert queue.num_bytes == 2 * (500 * 8 + 64)
    assert queue.dropped == {"the disk was too slow or full": 2}


def test_much_that_waits_wakes_the_writer():
    wakes = []
    queue = CaptureQueue(WarnOnce(), lambda: wakes.append(queue.num_bytes))
    for number in range(5):
        queue.put(capture(number, 500_000))  # 4 MB each
    assert [num_bytes >> 20 for num_bytes in wakes] == [19]


def test_the_queue_is_bounded_in_number():
    queue = CaptureQueue(WarnOnce(), nothing)
    taken = [queue.put(capture(n, tables={})) for n in range(1100)]
    assert sum(taken) == 1024


def test_what_is_no_table_is_told_once_and_never_raised(caplog):
    queue = CaptureQueue(WarnOnce(), nothing)
    for tables in ({"t": {"x": 5}}, {"t": None}, {"t": {"x": None}}):
        assert not queue.put(capture(0, tables=tables))
    assert sum(queue.dropped.values()) == 3
    assert caplog.text.count("a capture of modules was lost") == 1


# The file.


def test_digests_list_the_captures_since_the_one_before(tmp_path):
    path = attempt_path(tmp_path)
    file = rank_file(path)
    rng = np.random.default_rng(0)
    for number in range(60):
        rows = [row(number * 100 + s, rng.random()) for s in range(100)]
        write_rows(file, rows, per_flush=10)
        if number % 7 == 0:
            put(file, number)
    closed(file)
    wrote = list(range(0, 60, 7))
    recording = read(path)
    listed = [c.iteration for d in recording.digests for c in d.captures]
    assert listed == wrote
    assert len(recording.digests) >= 3
    before = 0
    for digest, offset in zip(recording.digests, recording.digest_offsets, strict=True):
        assert digest.captures_before == before
        before = offset if digest.captures else before
    numbers = found_in(path)
    assert numbers == wrote
    assert recording.steps() == list(range(6000))


def test_a_large_capture_makes_a_digest_due(tmp_path):
    path = attempt_path(tmp_path)
    file = rank_file(path)
    write_rows(file, [row(0)], 1)
    put(file, 1, PART_BYTES)
    write_rows(file, [row(1)], 1)
    assert [c.iteration for d in read(path).digests for c in d.captures] == [1]


def test_captures_leave_a_part_of_the_disk_budget_to_rows(tmp_path):
    path, budget = attempt_path(tmp_path), 4 << 20
    file = rank_file(path, budget)
    taken = [put(file, number, 65_536) for number in range(20)]
    assert 0 < sum(taken) < 8
    assert taken == sorted(taken, reverse=True)
    assert path.stat().st_size < 0.75 * budget
    assert put(file, 30, 10)  # a small one still fits
    write_rows(file, [row(step) for step in range(1000)], 10)
    assert not file.is_full
    closed(file)
    assert found_in(path) == [*range(sum(taken)), 30]
    assert len(read(path).steps()) == 1000


def test_rows_that_are_not_rolled_up_are_kept_as_they_are(tmp_path):
    path = attempt_path(tmp_path)
    plain = replace(STEP, table="function/f", phase="val", rolled_up=False)
    file = rank_file(path, schema=plain)
    rng = np.random.default_rng(0)
    write_rows(file, [row(s, rng.random()) for s in range(5000)], 7)
    closed(file)
    recording = read(path)
    assert recording.column("step", "function/f", "val") == list(range(5000))
    last = recording.digests[-1].tables[0]
    assert last.num_rows == 5000
    assert {len(column) for column in last.fine.values()} == {0}
    assert {len(column) for column in last.coarse.values()} == {0}
    assert recording.schemas[0].rolled_up is False
    listed = [o for d in recording.digests for o in d.tables[0].chunk_offset.tolist()]
    assert listed == recording.chunk_offsets


# The thread.


def test_captures_and_rows_reach_the_disk_by_themselves(tmp_path):
    with Clockwork(tmp_path, flush_seconds=0.2) as writer:
        for number in range(1, 4):
            writer.put_row(0, row(number))
            assert writer.put_capture(capture(number, 20_000))
        wait_until(lambda: writer.path and found_in(writer.path) == [1, 2, 3])
    assert read(only_file(tmp_path)).close.num_dropped == 0


def test_a_capture_that_cannot_be_encoded_costs_itself_alone(tmp_path, caplog):
    with Clockwork(tmp_path) as writer:
        writer.put_capture(capture(1))
        uneven = {"t": {"a": np.arange(3), "b": np.arange(4)}}
        assert writer.put_capture(capture(2, tables=uneven))
        writer.put_row(0, row(0))
        writer.put_capture(capture(3))
    assert found_in(only_file(tmp_path)) == [1, 3]
    recording = read(only_file(tmp_path))
    assert recording.steps() == [0]
    (dropped,) = recording.notes_of("dropped")
    assert dropped["table"] == "captures"
    assert dropped["num_rows"] == recording.close.num_dropped == 1
    assert "different lengths" in caplog.text


def test_a_full_disk_costs_the_capture_after_three_tries_and_no_row(
    tmp_path, disk, monkeypatch
):
    monkeypatch.setattr("memboard.collector.writing.output._RETRY_SECONDS", (0.05, 0.1))
    with Clockwork(tmp_path, flush_seconds=0.05) as writer:
        wait_until(lambda: writer.path is not None)
        disk.room = 50_000
        writer.put_capture(capture(1, 50_000))
        writer.put_capture(capture(2))
        for step in range(50):
            writer.put_row(0, row(step))
        wait_until(lambda: len(read(writer.path).steps()) == 50)
        wait_until(lambda: found_in(writer.path) == [2])
        assert len(disk.refused) == 3
    recording = read(only_file(tmp_path))
    assert recording.close.how == "closed"
    assert recording.notes_of("dropped")[-1] == {
        "table": "captures",
        "num_rows": 1,
        "reason": "the disk was too slow or full",
    }


def test_a_disk_that_recovers_gets_the_capture(tmp_path, disk, monkeypatch):
    monkeypatch.setattr("memboard.collector.writing.output._RETRY_SECONDS", (0.3, 0.3))
    # However often it is asked before it has room again.
    monkeypatch.setattr("memboard.collector.writing.queues.captures._MAX_TRIES", 10**9)
    with Clockwork(tmp_path, flush_seconds=0.05) as writer:
        wait_until(lambda: writer.path is not None)
        disk.room = 50_000
        writer.put_capture(capture(1, 50_000))
        wait_until(lambda: disk.refused)
        disk.room = 10**12
    assert found_in(only_file(tmp_path)) == [1]


def test_a_disk_that_is_full_at_the_end_costs_captures_and_not_the_close(
    tmp_path, disk
):
    with Clockwork(tmp_path, flush_seconds=30) as writer:
        wait_until(lambda: writer.path is not None)
        disk.room = 50_000
        writer.put_row(0, row(0))
        writer.put_capture(capture(1, 50_000))
        writer.put_capture(capture(2))
    recording = read(only_file(tmp_path))
    assert recording.steps() == [0]
    assert recording.close.how == "closed"
    assert recording.close.num_dropped == 1
    assert found_in(only_file(tmp_path)) == [2]


def test_a_file_that_is_deleted_gets_the_capture_when_it_is_started_anew(tmp_path):
    with Clockwork(tmp_path, flush_seconds=0.1) as writer:
        writer.put_capture(capture(1))
        wait_until(lambda: writer.path and found_in(writer.path) == [1])
        writer.path.unlink()
        writer.put_capture(capture(2))
        wait_until(lambda: writer.path.exists() and found_in(writer.path) == [2])
        writer.put_capture(capture(3))
    assert found_in(only_file(tmp_path)) == [2, 3]


def test_captures_of_a_rank_that_came_out_later_are_all_its_own(tmp_path):
    clockwork = Clockwork(tmp_path, who=identity(settled=False))
    with clockwork as writer:
        writer.put_capture(capture(1))
        wait_until(lambda: writer.path and found_in(writer.path) == [1])
        clockwork.who = identity(2, 4)
        writer.put_capture(capture(2))
        wait_until(lambda: writer.path.name.startswith("rank00002-"))
    file = the_only_recording(tmp_path, 2)
    assert [one.iteration for one in captures_of(file, Budget(30))] == [1, 2]


def test_the_end_does_not_wait_for_captures_that_are_not_written(tmp_path, monkeypatch):
    release = threading.Event()
    append = AppendFile.append

    def hanging(file, data):
        release.wait(60)
        return append(file, data)

    monkeypatch.setattr("memboard.collector.writing.writer.STALLED_SECONDS", 0.1)
    writer = Clockwork(tmp_path, flush_seconds=30).writer
    writer.start()
    wait_until(lambda: writer.path is not None)
    writer.put_capture(capture(1))
    monkeypatch.setattr(AppendFile, "append", hanging)
    writer.close("closed", "", 60)
    assert writer._thread.is_alive(), "closing waited for the disk"
    release.set()
    writer._thread.join(60)


def test_the_end_waits_for_captures_that_are_being_written(tmp_path, monkeypatch):
    encode = body_codec.encode_body

    def slow(one):
        until = time.thread_time() + 0.4
        while time.thread_time() < until:
            pass
        return encode(one)

    monkeypatch.setattr("memboard.collector.writing.queues.captures.encode_body", slow)
    monkeypatch.setattr("memboard.collector.writing.writer.STALLED_SECONDS", 0.2)
    writer = Clockwork(tmp_path, flush_seconds=30).writer
    writer.start()
    wait_until(lambda: writer.path is not None)
    for number in range(3):
        writer.put_capture(capture(number))
    writer.close("closed", "", 300)
    assert not writer._thread.is_alive()
    assert found_in(only_file(tmp_path)) == [0, 1, 2]
    assert not writer.put_capture(capture(4)), "nothing is written any more"


def test_a_forked_child_forgets_what_waits(tmp_path):
    writer = Clockwork(tmp_path).writer
    writer.put_capture(capture(1))
    writer.forget()
    assert not writer.put_capture(capture(2))
    assert not rank_files(tmp_path)


# The engine's side.

COLUMNS = (
    *AXES,
    Column(name="iteration", unit="index", group="progress"),
    Column(name="rss_bytes", unit="bytes", group="process"),
)
MORE = (*COLUMNS, Column(name="hook.x", unit="count", group="process", dtype="f8"))


def engine_of(recorder):
    return recorder._session.engine


def test_a_kind_writes_rows_captures_and_notes_through_the_engine(tmp_path):
    with record(tmp_path) as recorder:
        sink = engine_of(recorder)
        for step in range(3):
            recorder.step(step)
            known = [START_NS + step, step, step + 1, 2**30]
            sink.put_row("function/f", "train", COLUMNS, known, rolled_up=False)
            sink.put_row("function/f", "val", COLUMNS, known, rolled_up=False)
            sink.put_row("activations", "train", COLUMNS, known)
        more = [START_NS, 3, 4, 2**30, 0.5]
        sink.put_row("function/f", "train", MORE, more, rolled_up=False)
        sink.put_row("function/f", "train", COLUMNS, known, rolled_up=False)
        assert sink.put_capture(capture(1))
        info = SourceInfo(name="hooks", cost="a microsecond")
        sink.note_kind(info, "absent", "no model", "Call rec.attach(model).")
    recording = read(only_file(tmp_path))
    tables = [(s.table, s.phase, s.rolled_up) for s in recording.schemas.values()]
    assert tables.count(("function/f", "train", False)) == 2, "one per set of columns"
    assert tables.count(("function/f", "val", False)) == 1
    assert tables.count(("activations", "train", True)) == 1
    assert recording.column("step", "function/f", "val") == [0, 1, 2]
    assert sorted(
        v
        for c in recording.chunks
        if recording.schemas[c.schema_id].table == "function/f"
        and recording.schemas[c.schema_id].phase == "train"
        for v in c.columns[1].tolist()
    ) == [0, 1, 2, 2, 3]
    assert found_in(only_file(tmp_path)) == [1]
    assert recording.source("hooks")["remedy"] == "Call rec.attach(model)."


def test_a_row_that_does_not_fit_is_told_and_dropped(tmp_path, caplog):
    with record(tmp_path) as recorder:
        engine_of(recorder).put_row("function/f", "train", COLUMNS, [1, 2])
        recorder.step(0)
    assert "do not fit their columns" in caplog.text
    assert read(only_file(tmp_path)).steps() == [0]


def test_names_without_end_do_not_take_memory_without_end(tmp_path, caplog):
    with record(tmp_path) as recorder:
        sink = engine_of(recorder)
        for number in range(600):
            known = [START_NS, 0, 1, 5]
            sink.put_row(f"function/f{number}", "train", COLUMNS, known)
            if number % 50 == 0:
                recorder.flush(60)
        assert len(sink._schemas._of_kinds) == 512
    assert caplog.text.count("more than 512 tables") == 1
    assert len(read(only_file(tmp_path)).schemas) == 512


# kill -9.

CHILD = """
import sys
from pathlib import Path
from tests.collector.writing.clockwork import Clockwork, capture, row

with Clockwork(Path(sys.argv[1]), flush_seconds=0.05, queue_rows=10_000) as writer:
    for number in range(10_000):
        writer.put_row(0, row(number))
        # Every tenth takes several parts: kills come inside of them too.
        writer.put_capture(capture(number, 200_000 if number % 10 == 0 else 2_000))
        if writer.flush(30.0):
            print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.05, 0.2, 0.35, 0.5])
def test_a_killed_process_loses_no_capture_that_was_flushed(tmp_path, seconds):
    child = Program(CHILD, tmp_path)
    flushed = [int(child.stdout.readline())]
    time.sleep(seconds)
    child.kill()
    flushed += [int(line) for line in child.communicate()[0].split()]
    path = only_file(tmp_path)
    numbers = found_in(path)
    assert numbers == list(range(len(numbers)))
    assert numbers[-1] >= flushed[-1]
    steps = read(path, last=False).steps()
    assert steps[: flushed[-1] + 1] == list(range(flushed[-1] + 1))
    tail = list(read_frames(path.read_bytes()))
    assert not any(isinstance(frame, Damage) for frame in tail)
