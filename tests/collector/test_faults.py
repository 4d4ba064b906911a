"""Faults of the disk and the process: training goes on, and says why."""

from __future__ import annotations

import contextlib
import logging
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import memboard as mb
from memboard.collector import engine
from memboard.collector.core.warn_once import logger
from tests import programs
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
    tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(engine, "QUEUE_ROWS", 500)
    with small_disk(tmp_path / "disk", "256k") as disk:
        run_dir = disk / "run"
        rec = record(run_dir, flush_seconds=0.05)

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


def test_a_read_only_directory_is_told_once_and_costs_nothing_else(
    tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(engine, "QUEUE_ROWS", 64)
    with small_disk(tmp_path / "disk", "1m") as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with record(disk / "run") as rec:
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
    (lost,) = told(caplog, "could not be written")
    assert "3 steps and" in lost


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
import os, sys, time, memboard as mb
rec = mb.record(sys.argv[1], flush_seconds=0.05)
rec.step(); assert rec.flush(60)
os.closerange(3, 256)
for _ in range(20): rec.step(); time.sleep(0.02)
rec.close()
"""


def test_a_program_that_closes_every_descriptor_goes_on_in_a_new_file(tmp_path):
    done = programs.run(CLOSE_ALL, tmp_path / "run")
    first, second = (read(path) for path in rank_files(tmp_path / "run"))
    assert first.steps() == [0]
    assert second.steps() == list(range(1, 21))
    assert None not in second.column("rss_bytes")
    assert done.stderr.count("started anew") == 1


HANDLER = """
import signal, sys, time, memboard as mb, memboard.collector.engine
memboard.collector.engine.QUEUE_ROWS = 64
rec = mb.record(sys.argv[1], flush_seconds=0.05)
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
    programs.run(HANDLER, tmp_path / "run")
    found = read_only_file(tmp_path / "run")
    assert found.close.how == "closed"
    assert {note["name"] for note in found.notes_of("span")} == {"h", "s"}


# Forks.


FORK = """
import os, sys, memboard as mb
rec = mb.record(sys.argv[1], flush_seconds=0.1)
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
    programs.run(FORK, tmp_path / "run")
    found = read_only_file(tmp_path / "run")
    assert found.steps() == list(range(54))
    assert found.notes_of("mark") == []
    assert found.damages == []
    assert found.close.how == "closed"


def test_a_forked_child_may_record_for_itself(tmp_path):
    code = (
        "import os, sys, memboard as mb\n"
        "rec = mb.record(sys.argv[1] + '/parent')\n"
        "if os.fork() == 0:\n"
        "    assert mb.active() is None\n"
        "    with mb.record(sys.argv[1] + '/child') as own:\n"
        "        own.step(7)\n"
        "    os._exit(0)\n"
        "assert os.wait()[1] == 0\n"
        "rec.step(1)\n"
    )
    programs.run(code, tmp_path)
    assert read_only_file(tmp_path / "child").steps() == [7]
    assert read_only_file(tmp_path / "parent").steps() == [1]


def test_dataloader_workers_live_beside_a_recording(tmp_path):
    torch = pytest.importorskip("torch")

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 64

        def __getitem__(self, index):
            if (active := mb.active()) is not None:
                active.step()  # as a careless dataset might
            return torch.tensor([index])

    data = torch.utils.data.DataLoader(
        Data(), batch_size=4, num_workers=2, multiprocessing_context="fork", timeout=300
    )
    config = {**ONLY_STEPS, "process": 0.05}
    seen = []

    def both_seen():
        return rec.flush(60) and 2 in read(rec.path).column("num_workers", "workers")

    with mb.record(tmp_path / "run", config=config) as rec:
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
        "import os, signal, sys, threading, time, memboard as mb\n"
        "rec = mb.record(sys.argv[1], flush_seconds=3600)\n"
        f"rec.step()\n{end}\n"
    )
    result = programs.run(program, tmp_path / "run", check=False)
    assert result.returncode == code
    found = read_only_file(tmp_path / "run")
    assert found.steps()[0] == 0
    assert found.close is not None
