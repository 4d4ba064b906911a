"""Rows, captures, disks that refuse, and writers with every knob in hand."""

from __future__ import annotations

import errno
import time
from pathlib import Path

import numpy as np

from memboard.collector.clock.process_clock import PROCESS_CLOCK
from memboard.collector.config import load
from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.format.capture import encode_body
from memboard.collector.format.columns import AXES, RSS, TIMING
from memboard.collector.format.records import Capture, Close, DeviceIdentity, Schema
from memboard.collector.process.rank import Identity, new_attempt
from memboard.collector.writing.append import AppendFile
from memboard.collector.writing.header import make_header
from memboard.collector.writing.rank_file import RankFile
from memboard.collector.writing.writer import Writer, WriterPlan
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.cli.opening import read_whole, run_of_file
from memboard.tb_plugin.formats.recording.captures.reading import (
    captures_of,
    read_capture,
)
from tests.collector.recordings import rank_files
from tests.tb_plugin.readers.test_rank_file import opened

STEP = Schema(schema_id=0, table="step", phase="train", columns=(*AXES, *TIMING, *RSS))
ATTEMPT = "20231114T221320001-00000000"
START_NS = 1_700_000_000 * 10**9


def row(step, seconds=0.5, rss=2**30):
    return [START_NS + step * 10**9, step, seconds, rss]


def capture(number, num_values=50, **fields):
    """A capture that does not deflate and says its number."""
    rng = np.random.default_rng(number)
    tables = {
        "values": {"x": rng.integers(0, 2**62, num_values)},
        "names": {"name": (f"number {number}",)},
    }
    known = {"kind": "modules", "phase": "train", "function": "step"}
    known |= {"time_ns": START_NS + number, "step": number, "iteration": number}
    return Capture(**{**known, "tables": tables, **fields})


def identity(rank=0, world_size=1, *, settled=True):
    return Identity(
        rank=rank,
        local_rank=rank,
        world_size=world_size,
        local_world_size=None,
        node_rank=None,
        host="host",
        job="",
        settled=settled,
    )


def header(who=None, attempt=ATTEMPT):
    return make_header(
        run_dir=Path("run"),
        attempt=attempt,
        identity=who or identity(),
        started=PROCESS_CLOCK.anchor(),
        device=DeviceIdentity(device_type="cpu"),
        memory=(None, None),
        mesh={},
        config=load(None),
    )


def rank_file(path, max_bytes=0, schema=STEP):
    """A rank's file that is open and has a table."""
    file = RankFile(max_bytes=max_bytes)
    file.open(path, header())
    file.add_schema(schema)
    return file


def write_rows(file, rows, per_flush):
    for start in range(0, len(rows), per_flush):
        for values in rows[start : start + per_flush]:
            file.add_row(0, values)
        file.flush()


def put(file, number, num_values=50, **options):
    one = capture(number, num_values)
    return file.write_capture(one, encode_body(one), **options)


def closed(file):
    file.close(Close(time_ns=START_NS, how="closed", message=""))


class Disk:
    """Refuses appends above a size, like a disk that has that much room."""

    def __init__(self, monkeypatch):
        self.room = 10**12
        self.refused = []
        """When it has refused."""
        append = AppendFile.append

        def guarded(file, data):
            if len(data) > self.room:
                self.refused.append(time.monotonic())
                raise OSError(errno.ENOSPC, "No space left on device")
            return append(file, data)

        monkeypatch.setattr(AppendFile, "append", guarded)


class Clockwork:
    """A writer, which runs inside a `with` block."""

    def __init__(self, run_dir, **keywords):
        self.who = keywords.pop("who", identity())
        settings = {
            "flush_seconds": 0.1,
            "queue_rows": 100,
            "max_file_bytes": 0,
            "scalars": False,
            "watch": lambda: None,
        }
        plan = WriterPlan(
            run_dir=run_dir,
            identify=lambda: self.who,
            make_header=header,
            **{**settings, **keywords},
        )
        self.writer = Writer(plan, self.who, new_attempt(START_NS), WarnOnce())
        self.writer.put_schema(STEP)

    def __enter__(self):
        self.writer.start()
        return self.writer

    def __exit__(self, *_):
        self.writer.close("closed", "", 60)


def attempt_path(folder):
    return folder / f"rank00000-{ATTEMPT}.events"


def only_file(run_dir):
    (path,) = rank_files(run_dir)
    return path


def found_in(path):
    """Numbers of the captures that read back whole."""
    file = opened(path, 0)
    numbers = []
    for entry in captures_of(file, Budget(30)):
        back = read_capture(file, entry)
        number = entry.iteration
        expected = capture(number, len(back.tables["values"]["x"]))
        assert np.array_equal(
            back.tables["values"]["x"], expected.tables["values"]["x"]
        )
        assert back.tables["names"] == expected.tables["names"]
        assert (back.step, back.time_ns) == (number, START_NS + number)
        numbers.append(number)
    assert file.faults == []
    return numbers


def the_only_recording(run_dir, rank):
    """What the page is told of a run of one recording, however many files it has."""
    run = run_of_file(rank_files(run_dir)[-1])
    read_whole(run)
    assert (run.ranks, run.problems) == ([rank], ())
    (attempt,) = run.attempts
    return attempt.files[rank]
