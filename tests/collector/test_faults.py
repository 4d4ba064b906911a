"""Faults of the disk, the process and the sources: training goes on, and says why."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import collector
from collector import lifecycle, retry
from collector.format.columns import RSS, SWAP
from collector.sampler import Sampler, next_due
from collector.sources.contract import SourceInfo
from collector.trouble import logger
from tests.collector.recordings import (
    ONLY_STEPS,
    rank_files,
    read,
    read_only_file,
    record,
    wait_until,
)

ROOT = Path(__file__).parents[2]


def told(caplog, words):
    return [r.getMessage() for r in caplog.records if words in r.getMessage()]


@contextlib.contextmanager
def small_disk(path, size, options=""):
    """A tmpfs of its own."""
    path.mkdir()
    mount = [*f"mount -t tmpfs -o size={size}{options} memboard".split(), str(path)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs the right to mount a tmpfs: {done.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def fill(path):
    """Leave no room on the disk."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)


# The disk.


def test_a_full_disk_costs_rows_and_one_warning_and_never_the_training(
    tmp_path, caplog
):
    with small_disk(tmp_path / "disk", "256k") as disk:
        run_dir = disk / "run"
        rec = record(run_dir, queue_rows=500, flush_seconds=0.05)

        def is_full():
            for _ in range(20):
                rec.step()
                rec.mark("x" * 900)
            return told(caplog, "cannot be written")

        for _ in range(10):
            rec.step()
        assert rec.flush(60)
        wait_until(is_full)
        (warning,) = told(caplog, "cannot be written")
        assert "No space left" in warning
        assert "Free space there" in warning
        for _ in range(2000):
            rec.step()
        rec.close()
        assert "could not be completed" not in caplog.text
        assert rec.num_dropped > 1000
        found = read_only_file(run_dir)
        assert found.damages == []  # the file ends on a whole record
        assert len(found.steps()) > 5
        assert found.steps() == list(range(len(found.steps())))


def test_recording_resumes_when_a_full_disk_has_room_again(tmp_path, caplog):
    with small_disk(tmp_path / "disk", "512k") as disk:
        ballast = disk / "ballast"
        with record(disk / "run", flush_seconds=0.05) as rec:
            rec.step()
            assert rec.flush(60)
            fill(ballast)
            for index in range(200):
                rec.step()
                rec.mark(f"{index} " + "x" * 500)
            wait_until(lambda: told(caplog, "cannot be written"))
            ballast.unlink()
            wait_until(lambda: len(read(rec.path).steps()) == 201)
        found = read_only_file(disk / "run")
        assert found.steps() == list(range(201))
        assert found.close.num_dropped == 0


def test_a_read_only_directory_is_told_once_and_costs_nothing_else(tmp_path, caplog):
    with small_disk(tmp_path / "disk", "1m") as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with record(disk / "run", queue_rows=64) as rec:
            for _ in range(500):
                rec.step()
            wait_until(lambda: told(caplog, "cannot be written"))
        (warning,) = told(caplog, "cannot be written")
        assert "Read-only" in warning
        assert "Make the directory writable" in warning
        assert rec.num_dropped > 400


def test_a_path_that_is_too_long_is_told_with_what_is_lost(tmp_path, caplog):
    with record(tmp_path / ("x" * 300)) as rec:
        for _ in range(3):
            rec.step()
    assert "shorter path" in told(caplog, "cannot be written")[0]
    (lost,) = told(caplog, "could not be written to")
    assert int(lost.split()[1]) >= 3


@pytest.mark.parametrize("place", ["file", "below a file"])
def test_a_logdir_that_is_no_directory_is_told_and_training_goes_on(
    tmp_path, caplog, place
):
    (tmp_path / "taken").write_text("mine")
    run_dir = tmp_path / "taken"
    with record(run_dir if place == "file" else run_dir / "run") as rec:
        rec.step()
        wait_until(lambda: told(caplog, "cannot be written"))
    assert (tmp_path / "taken").read_text() == "mine"
    assert "is a directory" in told(caplog, "cannot be written")[0]


def test_a_directory_deleted_while_recording_is_told_once_and_started_anew(
    tmp_path, caplog
):
    with record(tmp_path / "run", flush_seconds=0.05) as rec:
        for _ in range(2000):
            rec.step()
        assert rec.flush(60)
        shutil.rmtree(tmp_path / "run")
        rec.step()
        wait_until(lambda: rec.flush(60) and rank_files(tmp_path / "run"))
        shutil.rmtree(tmp_path / "run")
        for _ in range(10):
            rec.step()
        wait_until(rec.flush)
        time.sleep(0.1)  # the end of a window of the scalars
        wait_until(rec.flush)
        rec.step()  # the next row after the loss starts the scalars anew
    assert len(told(caplog, "was deleted while recording")) == 1
    found = read_only_file(tmp_path / "run")
    assert set(found.steps()) >= set(range(2001, 2011))
    assert found.close.how == "closed"
    # The rollup still knows the whole run, peaks included.
    assert found.digests[-1].tables[0].num_rows >= 2010
    assert found.digests[-1].tables[0].fine["step_first"].min() == 0
    assert len(list((tmp_path / "run" / "memboard").glob("*tfevents*"))) == 1


def test_a_log_handler_that_raises_never_reaches_training(tmp_path):
    class Broken(logging.Handler):
        def emit(self, record):
            raise RuntimeError("the log server is gone")

    handler = Broken()
    logger.addHandler(handler)
    try:
        with record(tmp_path / "run") as rec:
            rec.step("no number")
            rec.step()
        record("/dev/null/run").close()
    finally:
        logger.removeHandler(handler)
    assert read_only_file(tmp_path / "run").steps() == [0, 1]


CLOSE_ALL = """
import os, sys, time, collector
rec = collector.record(sys.argv[1], flush_seconds=0.05)
rec.step(); assert rec.flush(60)
os.closerange(3, 256)
for _ in range(20): rec.step(); time.sleep(0.02)
rec.close()
"""


def test_a_program_that_closes_every_descriptor_goes_on_in_a_new_file(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", CLOSE_ALL, str(tmp_path / "run")],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    first, second = (read(path) for path in rank_files(tmp_path / "run"))
    assert first.steps() == [0]
    assert second.steps() == list(range(1, 21))
    assert None not in second.column("rss_bytes")
    assert done.stderr.count("started anew") == 1


HANDLER = """
import signal, sys, time, collector
rec = collector.record(sys.argv[1], flush_seconds=0.05, queue_rows=64)
def handler(*_):
    rec.step()
    with rec.span("h"): rec.flush(0.01)
    if time.monotonic() < end:  # one at a time, or they pile up
        signal.setitimer(signal.ITIMER_REAL, 0.001)
end = time.monotonic() + 1.5
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001)
while True:
    rec.step()
    with rec.span("s"): rec.flush(0.0)
    if time.monotonic() > end + 0.1: break
rec.close()
"""


def test_a_signal_handler_may_call_whatever_it_interrupts(tmp_path):
    subprocess.run(
        [sys.executable, "-c", HANDLER, str(tmp_path / "run")],
        cwd=ROOT,
        check=True,
        timeout=300,
    )
    found = read_only_file(tmp_path / "run")
    assert found.close.how == "closed"
    assert {note["name"] for note in found.notes_of("span")} == {"h", "s"}


# Sources.


class Source:
    """A source that fails as it is told to."""

    def __init__(self, name, columns, interval_seconds=0.02):
        self.info = SourceInfo(name=name, cost="none")
        self.columns = columns
        self.interval_seconds = interval_seconds
        self.num_samples = 0
        self.num_closed = 0
        self.behave = lambda: None

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
    from collector import engine
    from collector.sources import Opened, open_step_sources

    bad = Source("bad", SWAP)

    def opened(config, device):
        rest = open_step_sources(config, device)
        return Opened(sources=(bad, *rest.sources), not_opened=rest.not_opened)

    monkeypatch.setattr(engine, "open_step_sources", opened)
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
    assert bad.num_samples <= 4


def test_a_fault_of_ours_in_a_step_is_told_once_with_its_traceback(tmp_path, caplog):
    with record(tmp_path / "run") as rec:
        write_step = rec._engine.write_step
        rec._engine.write_step = None
        rec.step()
        rec.step()
        rec._engine.write_step = write_step
        rec.step()
    assert len(told(caplog, "step did not work")) == 1
    assert "TypeError" in caplog.text
    assert read_only_file(tmp_path / "run").steps() == [2]


def test_a_device_that_does_not_answer_is_told_once(tmp_path, monkeypatch, caplog):
    from collector.sources.accelerator import Device

    def identity(self):
        raise RuntimeError("driver shut down")

    monkeypatch.setattr(Device, "identity", identity)
    with record(tmp_path / "run", flush_seconds=0.05) as rec:
        for _ in range(20):
            rec.step()
            assert rec.flush(60)
    assert len(told(caplog, "the device does not answer")) == 1
    assert read_only_file(tmp_path / "run").steps() == list(range(20))


class Listener:
    def __init__(self):
        self.rows, self.failures, self.recovered = [], [], []

    def sampled(self, source, values):
        self.rows.append((source.info.name, time.monotonic(), tuple(values)))

    def works(self, source):
        self.recovered.append(source.info.name)

    def failed(self, source, error):
        self.failures.append((source.info.name, error))

    def count(self, name):
        return sum(row[0] == name for row in self.rows)


def test_a_timed_source_that_fails_is_closed_and_the_others_keep_their_pace():
    good, bad = Source("good", RSS), Source("bad", SWAP)
    bad.behave = fail
    listener = Listener()
    sampler = Sampler(lambda: [bad, good], listener)
    sampler.start()
    wait_until(lambda: listener.count("good") >= 10)
    sampler.stop(60)
    assert [name for name, _ in listener.failures] == ["bad"]
    assert (bad.num_samples, bad.num_closed, good.num_closed) == (1, 1, 1)
    samples = good.num_samples
    time.sleep(0.1)
    assert good.num_samples == samples


def test_a_source_that_failed_is_tried_again_after_longer_and_longer_pauses(
    monkeypatch,
):
    monkeypatch.setattr(retry, "FIRST_SECONDS", 0.01)
    bad, listener = Source("bad", SWAP), Listener()
    bad.behave = fail
    sampler = Sampler(lambda: [bad], listener)
    sampler.start()
    wait_until(lambda: bad.num_samples >= 4)
    assert listener.rows == []
    bad.behave = lambda: None
    wait_until(lambda: listener.count("bad") >= 3)
    sampler.stop(60)
    assert [name for name, _ in listener.failures] == ["bad"]
    assert listener.recovered == ["bad"]
    assert bad.num_closed == 1


def test_pauses_double_and_end_somewhere():
    again = retry.Retry()
    assert again.is_due()
    pauses = [again.failed() for _ in range(50)]
    assert pauses[:3] == [5.0, 10.0, 20.0]
    assert set(pauses[10:]) == {600.0}
    assert not again.is_due()


def test_a_step_source_that_failed_comes_back(tmp_path, monkeypatch):
    from collector import engine
    from collector.sources import Opened

    monkeypatch.setattr(retry, "FIRST_SECONDS", 0.0)
    bad = Source("bad", SWAP)
    opened = Opened(sources=(bad,), not_opened=())
    monkeypatch.setattr(engine, "open_step_sources", lambda *_: opened)
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


OUT_OF_FILES = """
import logging, os, resource, sys
import collector
from collector import retry
from tests.collector.recordings import read, wait_until
class Told(logging.Handler):
    def emit(self, record):
        told.append(record.getMessage())
told = []
logging.getLogger("memboard").addHandler(Told())
retry.FIRST_SECONDS = 0.2
run_dir = sys.argv[1]
rec = collector.record(run_dir, flush_seconds=0.1, process=0.05, cpu=0.05, workers=0.05)
wait_until(lambda: rec.flush(60) and "process" in {t for t, _ in read(rec.path).tables()})
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
taken = []
resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
try:
    while True:
        taken.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
rec.step()  # the scalars would be made now
words = ("the source process failed", "no scalars")
wait_until(lambda: all(any(word in one for one in told) for word in words))
for fd in taken:
    os.close(fd)
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
    subprocess.run(
        [sys.executable, "-c", OUT_OF_FILES, str(tmp_path / "run")],
        cwd=ROOT,
        check=True,
        timeout=300,
    )
    found = read_only_file(tmp_path / "run")
    failed = [n for n in found.notes_of("source") if n["status"] == "failed"]
    assert {"process", "scalars"} <= {note["name"] for note in failed}
    assert all("open files" in note["remedy"] for note in failed)


def test_a_timed_source_that_gives_the_wrong_number_of_values_is_switched_off():
    odd, listener = Source("odd", SWAP), Listener()
    odd.behave = lambda: (1, 2, 3)
    sampler = Sampler(lambda: [odd], listener)
    sampler.start()
    wait_until(lambda: listener.failures)
    sampler.stop(60)
    assert "3 values for 2 columns" in str(listener.failures[0][1])
    assert listener.rows == []


def test_a_source_that_does_not_come_back_is_left_behind():
    stuck, good = Source("stuck", SWAP), Source("good", RSS)
    release, listener = threading.Event(), Listener()
    stuck.behave = lambda: release.wait(60) and None
    sampler = Sampler(lambda: [stuck, good], listener)
    sampler.start()
    wait_until(lambda: stuck.num_samples == 1)
    _, since = sampler._round.busy
    assert sampler.replace_if_stuck(since + 29.9) is None  # slow is no hang yet
    assert sampler.replace_if_stuck(since + 30.1) is stuck
    wait_until(lambda: listener.count("good") >= 3)
    assert sampler.replace_if_stuck(time.monotonic() + 0.1) is None
    release.set()
    wait_until(lambda: stuck.num_closed == 1)
    sampler.stop(60)
    assert listener.count("stuck") == 0  # what came too late is not recorded
    assert (stuck.num_samples, stuck.num_closed, good.num_closed) == (1, 1, 1)


def test_a_hanging_source_delays_neither_flushes_nor_close(tmp_path, monkeypatch):
    from collector import engine
    from collector.sources import Opened

    release, stuck = threading.Event(), Source("stuck", SWAP)
    stuck.behave = lambda: release.wait(60) and None
    opened = Opened(sources=(stuck,), not_opened=())
    monkeypatch.setattr(engine, "open_timed_sources", lambda *_: opened)
    monkeypatch.setattr(engine, "_SAMPLER_SHARE", 0.01)
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
    source = Source("x", RSS, interval_seconds=0.5)
    now = time.monotonic()
    for late in (0.0, 0.2, 0.7, 100.3, 86_400.0):
        due = next_due(now - late, source)
        assert now < due <= time.monotonic() + 0.5
        beats = (due - (now - late)) / 0.5
        assert abs(beats - round(beats)) < 1e-6  # still on its own grid


# Forks.


FORK = """
import os, sys, collector
rec = collector.record(sys.argv[1], flush_seconds=0.1)
for _ in range(50): rec.step()
children = []
for n in range(3):
    pid = os.fork()
    if pid == 0:
        rec.step(); rec.mark("child"); rec.epoch(5)
        with rec.phase("val"), rec.span("child"): rec.step()
        rec.flush(60); rec.close()
        sys.exit(0)  # runs the child's exit handlers
    children.append(pid)
    rec.step()
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0
rec.step()
rec.close()
"""


def test_a_forked_child_never_writes_into_the_parents_file_nor_hangs(tmp_path):
    subprocess.run(
        [sys.executable, "-c", FORK, str(tmp_path / "run")],
        cwd=ROOT,
        check=True,
        timeout=300,
    )
    found = read_only_file(tmp_path / "run")
    assert found.steps() == list(range(54))
    assert found.notes_of("mark") == []
    assert found.damages == []
    assert found.close.how == "closed"


def test_a_forked_child_may_record_for_itself(tmp_path):
    code = (
        "import os, sys, collector\n"
        "rec = collector.record(sys.argv[1] + '/parent')\n"
        "if os.fork() == 0:\n"
        "    assert collector.active() is None\n"
        "    with collector.record(sys.argv[1] + '/child') as own:\n"
        "        own.step(7)\n"
        "    os._exit(0)\n"
        "assert os.wait()[1] == 0\n"
        "rec.step(1)\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=True, timeout=300
    )
    assert read_only_file(tmp_path / "child").steps() == [7]
    assert read_only_file(tmp_path / "parent").steps() == [1]


def test_dataloader_workers_live_beside_a_recording(tmp_path):
    torch = pytest.importorskip("torch")

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 64

        def __getitem__(self, index):
            if (active := lifecycle.newest()) is not None:
                active.step()  # as a careless dataset might
            return torch.tensor([index])

    data = torch.utils.data.DataLoader(
        Data(), batch_size=4, num_workers=2, multiprocessing_context="fork", timeout=300
    )
    config = {**ONLY_STEPS, "workers": 0.05}
    seen = []

    def both_seen():
        return rec.flush(60) and 2 in read(rec.path).column("num_workers", "workers")

    with collector.record(tmp_path / "run", config=config) as rec:
        for _ in range(3):
            for batch in rec.loader(data):
                seen.append(batch)
                rec.step(samples=len(batch))
                if len(seen) == 20:  # in the middle of an epoch, so both are there
                    wait_until(both_seen)
    assert len(seen) == rec.num_batches == 48
    found = read_only_file(tmp_path / "run")
    assert found.steps() == list(range(48))
    assert found.column("samples")[-1] == 3 * 64
    assert found.notes_of("loader")[0]["num_workers"] == 2
    assert max(found.column("num_workers", table="workers")) == 2


# Exits.


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("sys.exit(3)", 3),
        ("os.kill(os.getpid(), signal.SIGINT); time.sleep(5)", -2),
        ("threading.Thread(target=rec.step).start()", 0),
    ],
)
def test_however_a_program_ends_in_order_its_rows_are_there(tmp_path, end, code):
    program = (
        "import os, signal, sys, threading, time, collector\n"
        "rec = collector.record(sys.argv[1], flush_seconds=3600)\n"
        f"rec.step()\n{end}\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "run")],
        cwd=ROOT,
        check=False,
        capture_output=True,
        timeout=300,
    )
    assert result.returncode == code
    found = read_only_file(tmp_path / "run")
    assert found.steps()[0] == 0
    assert found.close is not None


def test_ranks_spawned_without_a_launcher_find_their_names_later(tmp_path):
    pytest.importorskip("torch")
    program = (
        "import os, sys, collector, torch.distributed as dist\n"
        "rank = int(sys.argv[2])\n"
        "with collector.record(sys.argv[1]) as rec:\n"
        "    store = dist.FileStore(sys.argv[1] + '.store', 2)\n"
        "    dist.init_process_group('gloo', store=store, rank=rank, world_size=2)\n"
        "    for _ in range(3): rec.step()\n"
        "    dist.barrier(); dist.destroy_process_group()\n"
        "print(rec.rank)\n"
    )
    environ = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "run"), str(rank)],
            cwd=ROOT,
            env=environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    assert [process.communicate(timeout=300)[0].strip() for process in ranks] == [
        "0",
        "1",
    ]
    found = [read(path) for path in rank_files(tmp_path / "run")]
    assert [f.header.rank for f in found] == [0, 1]
    assert [f.header.world_size for f in found] == [2, 2]
    assert [f.steps() for f in found] == [[0, 1, 2], [0, 1, 2]]
    assert len(list((tmp_path / "run" / "memboard").iterdir())) == 1


def test_the_file_is_readable_at_every_moment_of_a_live_recording(tmp_path):
    """A tail of whole records, however often one looks."""
    with record(tmp_path / "run", flush_seconds=0.05) as rec:
        wait_until(lambda: rec.path is not None and rec.path.exists())
        looks = last = 0
        while looks < 100 or last <= 100:
            looks += 1
            for _ in range(50):
                rec.step()
            found = read(rec.path, last=False)
            assert found.damages == []
            assert len(found.steps()) >= last
            last = len(found.steps())
    assert json.dumps(dict(read(rec.path).header.config))
