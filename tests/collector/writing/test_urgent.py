"""Captures that cannot wait: on the disk before all others, whatever the budget."""

from __future__ import annotations

import threading
import time

from tests.collector.recordings import read, wait_until
from tests.collector.writing.clockwork import (
    Clockwork,
    attempt_path,
    capture,
    found_in,
    only_file,
    put,
    rank_file,
    row,
)


def test_an_urgent_capture_is_on_the_disk_when_put_returns(tmp_path):
    with Clockwork(tmp_path, flush_seconds=3600) as writer:
        # After its first round the writer sleeps until it is woken.
        wait_until(lambda: writer._num_finished == 1)
        for number in range(3):
            writer.put_capture(capture(number))
        assert writer.put_urgent(capture(9), 60)
        assert found_in(only_file(tmp_path))[0] == 9  # before those that came first
    assert sorted(found_in(only_file(tmp_path))) == [0, 1, 2, 9]


def test_it_is_written_where_others_find_no_room(tmp_path):
    path, budget = attempt_path(tmp_path), 4 << 20
    file = rank_file(path, budget)
    while put(file, 1, 65_536):
        pass
    assert put(file, 7, urgent=True)
    file.release()
    assert found_in(path)[-1] == 7


def test_a_full_disk_holds_nobody_up_for_long_and_gets_it_later(
    tmp_path, disk, monkeypatch
):
    monkeypatch.setattr("memboard.collector.writing.output._RETRY_SECONDS", (0.3, 0.3))
    # However often it is asked before it has room again.
    monkeypatch.setattr("memboard.collector.writing.queues.captures._MAX_TRIES", 10**9)
    with Clockwork(tmp_path, flush_seconds=0.05) as writer:
        wait_until(lambda: writer.path is not None)
        disk.room = 0
        assert not writer.put_urgent(capture(1), 0.2)
        disk.room = 10**12
        wait_until(lambda: found_in(writer.path) == [1])
        writer.put_row(0, row(0))
    assert read(only_file(tmp_path)).steps() == [0]


def test_a_disk_that_stays_full_costs_it_and_nothing_else(tmp_path, disk, monkeypatch):
    monkeypatch.setattr(
        "memboard.collector.writing.output._RETRY_SECONDS", (0.02, 0.02)
    )
    with Clockwork(tmp_path, flush_seconds=0.05) as writer:
        wait_until(lambda: writer.path is not None)
        disk.room = 100
        # It is given up within the time, and that is no success.
        assert not writer.put_urgent(capture(1), 60)
        assert writer.num_dropped == 1
        disk.room = 10**12
        assert writer.put_urgent(capture(2), 60)
    assert found_in(only_file(tmp_path)) == [2]


def test_so_many_wait_and_no_more(tmp_path, disk):
    with Clockwork(tmp_path, flush_seconds=3600) as writer:
        wait_until(lambda: writer.path is not None)
        disk.room = 0
        taken = [writer.put_urgent(capture(number), 0.0) for number in range(40)]
        assert taken == [False] * 40
        assert writer.num_dropped >= 20
        disk.room = 10**12


def test_after_the_end_nothing_is_taken_and_nobody_waits(tmp_path):
    clockwork = Clockwork(tmp_path)
    with clockwork as writer:
        writer.put_row(0, row(0))
    began = time.monotonic()
    assert not writer.put_urgent(capture(1), 600)
    assert time.monotonic() - began < 300


def test_several_threads_may_put_urgent_ones(tmp_path):
    with Clockwork(tmp_path, flush_seconds=3600) as writer:
        done: list[bool] = []
        threads = [
            threading.Thread(
                target=lambda n=number: done.append(writer.put_urgent(capture(n), 60.0))
            )
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert done == [True] * 8
    assert sorted(found_in(only_file(tmp_path))) == list(range(8))
