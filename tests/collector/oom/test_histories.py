"""The history behind a report: who records it, and what it may cost."""

# what fails, and where, is what is tested

from __future__ import annotations

import pytest

from memboard.collector.format.snapshots import rebuilt
from tests.collector.oom.stage import histories, reports
from tests.collector.recordings import read, record, wait_until

torch = pytest.importorskip("torch")


def test_a_recording_of_the_programs_own_stays_and_gives_its_segments(staged, tmp_path):
    stage = staged()
    stage.recording = ("all", "all", 2**63)
    with record(tmp_path) as rec:
        stage.fail()
    assert stage.calls == []
    assert stage.recording == ("all", "all", 2**63)
    assert stage.num_snapshots == 0  # of unknown size: it might take minutes
    (history,) = histories(rec.path)
    assert "program" in history.meta["no_events"]
    assert set(rebuilt(history.tables)) == {"segments"}
    (report,) = reports(rec.path)
    assert report.meta["history"]["recording"] == "program"
    assert not report.meta["history"]["events"]
    assert report.meta["holders"]["source"] == "segments"


def test_without_history_the_snapshot_has_segments_alone(staged, tmp_path):
    stage = staged()
    with record(tmp_path, oom={"history": False}) as rec:
        stage.fail()
    assert stage.calls == []
    (history,) = histories(rec.path)
    assert "oom.history" in history.meta["no_events"]
    assert len(history.tables["blocks"]["address"])
    assert read(rec.path).source("oom.history")["status"] == "off"


def test_events_that_would_take_too_long_are_left_out(staged, tmp_path, monkeypatch):
    monkeypatch.setattr("memboard.collector.oom.history.MAX_PCT", 100.0)
    stage = staged()
    stage.num_allocations = 10**7
    history = {"enabled": False, "max_entries": 10**6}
    with record(tmp_path, history=history) as rec:
        stage.fail()
    assert stage.num_snapshots == 0
    (history,) = histories(rec.path)
    assert "would hold the error up for about 7 s" in history.meta["no_events"]


def test_stacks_are_given_up_where_allocations_come_too_often(staged, tmp_path):
    stage = staged()
    with record(tmp_path, flush_seconds=0.15) as rec:

        def is_given_up():
            stage.num_allocations += 20_000  # every 10 ms
            return stage.calls[-1][1] is None

        wait_until(is_given_up)
        assert rec.flush(60)  # the round in which that happens is over
        assert stage.recording == (None, "python", 100_000)
        stage.fail()
    note = read(rec.path).source("oom.stacks")
    assert note["status"] == "off"
    assert "allocations per second" in note["reason"]
    assert "_record_memory_history" in note["remedy"]
    (report,) = reports(rec.path)
    assert report.meta["history"]["stacks"] == "off"
    assert report.meta["history"]["events"]
