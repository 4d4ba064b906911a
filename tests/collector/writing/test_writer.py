"""The writer's thread: a full queue, failures, ranks known late, faults of ours."""

from __future__ import annotations

import time

from memboard.collector.core import guard
from memboard.collector.writing.tables import Table
from tests.collector.recordings import rank_files, read, read_only_file, wait_until
from tests.collector.writing.clockwork import (
    Clockwork,
    identity,
    row,
    the_only_recording,
)


def test_a_full_queue_drops_the_newest_counts_them_and_says_so(tmp_path):
    clockwork = Clockwork(tmp_path, queue_rows=10)
    for step in range(25):
        clockwork.writer.put_row(0, row(step))
    with clockwork as writer:
        pass
    found = read_only_file(tmp_path)
    assert found.steps() == list(range(9))  # the schema had taken a place
    assert writer.num_dropped == found.close.num_dropped == 16
    (dropped,) = found.notes_of("dropped")
    assert (dropped["num_rows"], dropped["reason"]) == (
        16,
        "the disk was too slow or full",
    )


def test_notes_fit_where_rows_do_not_but_not_without_end(tmp_path):
    clockwork = Clockwork(tmp_path, queue_rows=20)
    for step in range(100):
        clockwork.writer.put_row(0, row(step))
        clockwork.writer.put_note("span", {}, step=step)
    assert len(clockwork.writer._queue.items) == 40
    with clockwork as writer:
        pass
    found = read_only_file(tmp_path)
    kept = len(found.steps()) + len(found.notes_of("span"))
    assert kept == 39  # and the schema
    assert found.close.num_dropped == writer.num_dropped == 200 - kept


def test_a_filling_queue_wakes_the_writer_early(tmp_path):
    with Clockwork(tmp_path, flush_seconds=3600, queue_rows=100) as writer:
        wait_until(lambda: writer.path is not None)
        for step in range(60):
            writer.put_row(0, row(step))
        wait_until(lambda: len(read(writer.path).steps()) >= 50)
    assert read_only_file(tmp_path).steps() == list(range(60))


def test_failures_back_off_and_the_rows_wait(tmp_path, disk, monkeypatch, caplog):
    monkeypatch.setattr("memboard.collector.writing.output._RETRY_SECONDS", (0.2, 10.0))
    with Clockwork(tmp_path, flush_seconds=0.05) as writer:
        wait_until(lambda: writer.path is not None)
        disk.room = 0
        for step in range(50):
            writer.put_row(0, row(step))
        wait_until(lambda: len(disk.refused) >= 3)
        disk.room = 10**12
        wait_until(lambda: len(read(writer.path).steps()) == 50)
    first, second, third = disk.refused[:3]
    assert second - first >= 0.2
    assert third - second >= 0.4
    assert read_only_file(tmp_path).close.num_dropped == 0
    warnings = [r for r in caplog.records if "cannot be written" in r.getMessage()]
    assert len(warnings) == 1
    assert "Free space" in warnings[0].getMessage()


def test_an_unsettled_rank_goes_on_under_its_right_name(tmp_path):
    clockwork = Clockwork(tmp_path, who=identity(settled=False))
    with clockwork as writer:
        writer.put_row(0, row(0))
        wait_until(lambda: writer.path is not None)
        wait_until(lambda: read(writer.path).steps() == [0])
        assert writer.path.name.startswith("rank00000-")
        clockwork.who = identity(2, 4)
        writer.put_row(0, row(1))
        wait_until(lambda: writer.path.name.startswith("rank00002-"))
        writer.put_row(0, row(2))
    header = the_only_recording(tmp_path, 2).header
    assert (header.rank, header.world_size) == (2, 4)
    assert read(*rank_files(tmp_path)).steps() == [0, 1, 2]


def test_the_same_rank_in_a_bigger_world_says_so_from_then_on(tmp_path):
    clockwork = Clockwork(tmp_path, who=identity(settled=False))
    with clockwork as writer:
        wait_until(lambda: writer.path is not None)
        clockwork.who = identity(0, 8)
        writer.put_row(0, row(0))
    header = the_only_recording(tmp_path, 0).header
    assert (header.world_size, header.attempt) == (8, writer.attempt)


def test_a_fault_of_ours_costs_a_batch_and_not_the_recording(
    tmp_path, monkeypatch, caplog
):
    with Clockwork(tmp_path) as writer:
        wait_until(lambda: writer.path is not None)
        encode = Table.encode

        def broken(self, **keywords):
            raise TypeError("a bug")

        monkeypatch.setattr(Table, "encode", broken)
        writer.put_row(0, row(0))
        wait_until(lambda: writer.num_dropped == 1)
        monkeypatch.setattr(Table, "encode", encode)
        writer.put_row(0, row(1))
    found = read_only_file(tmp_path)
    assert found.steps() == [1]
    assert found.close.num_dropped == 1
    assert "a bug" in caplog.text
    assert "training and recording go on" in caplog.text


def test_faults_without_end_switch_recording_off_for_a_while(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(guard, "FIRST_SECONDS", 0.2)
    is_broken = True

    def watch():
        if is_broken:
            raise RuntimeError("always")

    clockwork = Clockwork(tmp_path, watch=watch, flush_seconds=0.05)
    with clockwork as writer:
        wait_until(lambda: "is off for now after 8 faults in a row" in caplog.text)
        for step in range(1000):
            writer.put_row(0, row(step))
        assert writer.flush(60.0) is False
        assert caplog.text.count("RuntimeError: always") == 1  # one traceback
        is_broken = False
        wait_until(lambda: writer.flush(60.0))
        writer.put_row(0, row(1000))
        assert writer.flush(60.0) is True
    assert caplog.text.count("is off for now") == 1
    # What waited meanwhile, as much as there is room for, is not lost.
    steps = read_only_file(tmp_path).steps()
    assert len(steps) > 1
    assert steps[-1] == 1000


def test_clocks_are_noted_so_that_processes_can_be_aligned(tmp_path):
    with Clockwork(tmp_path):
        pass
    found = read_only_file(tmp_path)
    (clock,) = [n for n in found.notes if n.kind == "clock"]
    assert abs(clock.data["monotonic_ns"] - time.monotonic_ns()) < 60e9
    assert abs(clock.time_ns - time.time_ns()) < 60e9
