"""Faults of sources: they switch themselves off, say why, and are tried again."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from memboard.collector import engine
from memboard.collector.core import guard
from memboard.collector.core.source import Unavailable
from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.format.columns import RSS, SWAP
from memboard.collector.sources import STEP
from memboard.collector.sources.device.accelerator import Device
from memboard.collector.sources.sampling import Live, Sampler, next_due
from memboard.collector.sources.source import Reader, Source
from tests import programs
from tests.collector.recordings import (
    read,
    read_only_file,
    record,
    wait_until,
)


def told(caplog, words):
    return [r.getMessage() for r in caplog.records if words in r.getMessage()]


class Fake:
    """A source that fails as it is told to."""

    def __init__(self, name, columns):
        self.num_opened = self.num_samples = self.num_closed = 0
        self.behave = self.behave_at_opening = lambda: None
        self.columns = columns
        self.source = Source(
            name=name,
            cost="none",
            columns=lambda _: columns,
            open=self.open,
            setting="bad",
        )

    def open(self, config, device):
        self.num_opened += 1
        self.behave_at_opening()
        return Reader(self.sample, self.close)

    def sample(self):
        self.num_samples += 1
        return self.behave() or tuple(range(len(self.columns)))

    def close(self):
        self.num_closed += 1


def fail():
    raise OSError("the device fell off the bus")


@pytest.mark.parametrize("behave", [fail, lambda: (1, 2, 3, 4), lambda: 7])
def test_a_step_source_that_fails_is_switched_off_and_the_rest_goes_on(
    tmp_path, monkeypatch, caplog, behave
):
    bad = Fake("bad", SWAP)
    monkeypatch.setattr(engine, "STEP", (bad.source, *STEP))
    with record(tmp_path / "run") as rec:
        rec.step()
        bad.behave = behave
        for _ in range(5):
            rec.step()
    found = read_only_file(tmp_path / "run")
    assert found.steps()[0] == 0
    assert found.steps()[-1] == 5
    assert found.column("swap_total_bytes")[0] == 0
    assert set(found.column("swap_total_bytes")[1:]) == {None}
    assert None not in found.column("rss_bytes")
    note = found.source("bad")
    assert note["status"] == "failed"
    assert "bad=False" in note["remedy"]
    assert len(told(caplog, "the source bad failed")) == 1
    assert bad.num_closed == 1
    assert bad.num_samples == 2


def test_a_fault_of_ours_in_a_step_is_told_once_with_its_traceback(tmp_path, caplog):
    with record(tmp_path / "run") as rec:
        write_step = rec._session.engine.write_step
        rec._session.engine.write_step = None
        rec.step()
        rec.step()
        rec._session.engine.write_step = write_step
        rec.step()
    assert len(told(caplog, "step did not work")) == 1
    assert "TypeError" in caplog.text
    assert read_only_file(tmp_path / "run").steps() == [2]


def test_a_device_that_does_not_answer_is_told_once(tmp_path, monkeypatch, caplog):
    def identity(self):
        raise RuntimeError("driver shut down")

    monkeypatch.setattr(Device, "identity", identity)
    with record(tmp_path / "run", flush_seconds=0.05) as rec:
        for _ in range(20):
            rec.step()
            assert rec.flush(60)
    assert len(told(caplog, "the device does not answer")) == 1
    assert read_only_file(tmp_path / "run").steps() == list(range(20))


class Timed:
    """Fakes as the sampler's thread samples them."""

    def __init__(self, *fakes):
        self.rows, self.said, self.lives = [], [], []
        self.sampler = Sampler(lambda: self.opened(fakes), self.sampled)
        self.sampler.start()

    def opened(self, fakes):
        device = Device(absent=Unavailable("none"))
        for fake in fakes:
            live = Live(fake.source, None, device, self.note, WarnOnce())
            live.interval_seconds = 0.02
            assert live.open()
            self.lives.append(live)
        return self.lives

    def sampled(self, live, values):
        self.rows.append((live.source.name, tuple(values)))

    def note(self, source, status, reason, remedy):
        self.said.append((source.name, status, reason))

    def statuses(self, name):
        return [status for named, status, _ in self.said if named == name]

    def count(self, name):
        return sum(row[0] == name for row in self.rows)


def test_a_timed_source_that_fails_is_closed_and_the_others_keep_their_pace():
    good, bad = Fake("good", RSS), Fake("bad", SWAP)
    bad.behave = fail
    timed = Timed(bad, good)
    wait_until(lambda: timed.count("good") >= 10)
    timed.sampler.stop(60)
    assert timed.statuses("bad") == ["recorded", "failed"]
    assert (bad.num_samples, bad.num_closed, good.num_closed) == (1, 1, 1)
    samples = good.num_samples
    time.sleep(0.1)
    assert good.num_samples == samples


def test_a_source_that_failed_is_tried_again_after_longer_and_longer_pauses(
    monkeypatch,
):
    monkeypatch.setattr(guard, "FIRST_SECONDS", 0.01)
    bad = Fake("bad", SWAP)
    bad.behave = fail
    timed = Timed(bad)
    wait_until(lambda: bad.num_samples >= 4)
    assert timed.rows == []
    bad.behave = lambda: None
    wait_until(lambda: timed.count("bad") >= 3)
    timed.sampler.stop(60)
    assert timed.statuses("bad") == ["recorded", "failed", "recorded"]
    assert (bad.num_opened, bad.num_closed) == (1, 1)


def test_pauses_double_and_end_somewhere():
    again = guard.Retry()
    assert again.is_due()
    pauses = [again.failed() for _ in range(2000)]  # a disk is full for days
    assert pauses[:3] == [5.0, 10.0, 20.0]
    assert set(pauses[10:]) == {600.0}
    assert not again.is_due()


def test_a_step_source_that_failed_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr(guard, "FIRST_SECONDS", 0.0)
    bad = Fake("bad", SWAP)
    monkeypatch.setattr(engine, "STEP", (bad.source,))
    with record(tmp_path / "run") as rec:
        rec.step()
        bad.behave = fail
        rec.step()
        rec.step()
        bad.behave = lambda: None
        rec.step()
        rec.step()
    found = read_only_file(tmp_path / "run")
    assert found.column("swap_total_bytes") == [0, None, None, 0, 0]
    said = [n["status"] for n in found.notes_of("source") if n["name"] == "bad"]
    assert said == ["recorded", "failed", "recorded"]


def test_a_step_source_that_did_not_open_is_opened_later(tmp_path, monkeypatch, caplog):
    def opening():
        if bad.num_opened <= 2:
            raise OSError(24, "Too many open files")

    bad = Fake("bad", SWAP)
    bad.behave_at_opening = opening
    monkeypatch.setattr(engine, "STEP", (*STEP, bad.source))
    monkeypatch.setattr(guard, "FIRST_SECONDS", 0.0)
    with record(tmp_path / "run") as rec:
        for _ in range(3):
            rec.step()
    found = read_only_file(tmp_path / "run")
    assert found.column("swap_total_bytes") == [None, 0, 0]
    said = [n for n in found.notes_of("source") if n["name"] == "bad"]
    assert [note["status"] for note in said] == ["failed", "recorded"]
    assert "ulimit -n" in said[0]["remedy"]
    assert len(told(caplog, "the source bad failed")) == 1


OUT_OF_FILES = """
import logging, resource, sys
import memboard as mb
from memboard.collector import engine
from memboard.collector.core import guard
from tests.collector.recordings import read, wait_until
class Told(logging.Handler):
    def emit(self, record):
        told.append(record.getMessage())
told = []
logging.getLogger("memboard").addHandler(Told())
guard.FIRST_SECONDS = guard.LONGEST_SECONDS = 0.2
run_dir = sys.argv[1]
rec = mb.record(run_dir, flush_seconds=0.1, process=0.05, host=0.05)
wait_until(lambda: rec.flush(60) and "process" in {t for t, _ in read(rec.path).tables()})
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
# Below every number that is open: what another thread closes just now is no use either.
resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
rec.step()  # the scalars would be made now
words = ("the source process failed", "no scalars")
wait_until(lambda: all(any(word in one for one in told) for word in words))
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
def are_back():
    rec.step()
    rec.flush(60)
    found = read(rec.path)
    last = {n["name"]: n["status"] for n in found.notes_of("source")}
    return "failed" not in last.values() and list(
        (rec.run_dir / "memboard").glob("events.out.*")
    )
wait_until(are_back)
rec.close()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on open files")
def test_what_ran_out_of_files_once_comes_back(tmp_path):
    programs.run(OUT_OF_FILES, tmp_path / "run")
    found = read_only_file(tmp_path / "run")
    failed = [n for n in found.notes_of("source") if n["status"] == "failed"]
    assert {"process", "scalars"} <= {note["name"] for note in failed}
    assert all("open files" in note["remedy"] for note in failed)


def test_a_source_that_does_not_come_back_is_left_behind():
    stuck, good = Fake("stuck", SWAP), Fake("good", RSS)
    release = threading.Event()
    stuck.behave = lambda: release.wait(60) and None
    timed = Timed(stuck, good)
    sampler = timed.sampler
    wait_until(lambda: stuck.num_samples == 1)
    _, since = sampler._round.busy
    assert sampler.replace_if_stuck(since + 29.9) is None  # slow is no hang yet
    assert sampler.replace_if_stuck(since + 30.1) is timed.lives[0]
    wait_until(lambda: timed.count("good") >= 3)
    assert sampler.replace_if_stuck(time.monotonic() + 0.1) is None
    release.set()
    wait_until(lambda: stuck.num_closed == 1)
    sampler.stop(60)
    assert timed.count("stuck") == 0  # what came too late is not recorded
    assert timed.statuses("stuck") == ["recorded", "failed"]
    assert (stuck.num_samples, stuck.num_closed, good.num_closed) == (1, 1, 1)


def test_a_hanging_source_delays_neither_flushes_nor_close(tmp_path, monkeypatch):
    release, stuck = threading.Event(), Fake("stuck", SWAP)
    stuck.behave = lambda: release.wait(60) and None
    monkeypatch.setattr(engine, "TIMED", (stuck.source,))
    monkeypatch.setattr(engine, "SAMPLER_SECONDS", 0.02)
    rec = record(tmp_path / "run", flush_seconds=0.2)
    wait_until(lambda: stuck.num_samples == 1)
    wait_until(lambda: rec.path is not None)
    rec.step()
    wait_until(lambda: read(rec.path).steps() == [0])
    rec.close()
    assert stuck.num_closed == 0, "closing waited for the source"
    assert read(rec.path).close.how == "closed"
    release.set()


def test_moments_missed_are_skipped_and_the_pace_is_kept():
    device = Device(absent=Unavailable("none"))
    live = Live(Fake("x", RSS).source, None, device, lambda *_: None, WarnOnce())
    live.interval_seconds = 0.5
    now = time.monotonic()
    for late in (0.0, 0.2, 0.7, 100.3, 86_400.0):
        due = next_due(now - late, live)
        assert now < due <= time.monotonic() + 0.5
        beats = (due - (now - late)) / 0.5
        assert abs(beats - round(beats)) < 1e-6  # still on its own grid
