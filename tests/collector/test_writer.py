"""From rows to files: one append or none, chunks, digests, budget, back-off, moves."""

from __future__ import annotations

import errno
import itertools
import math
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from collector.clock.process_clock import PROCESS_CLOCK
from collector.config import load
from collector.core import guard
from collector.core.rank import Identity, new_attempt
from collector.core.warn_once import WarnOnce
from collector.format.columns import AXES, RSS, TIMING
from collector.format.encoding.framing import Damage, read_frames
from collector.format.encoding.numeric import ABSENT
from collector.format.names import rank_file_name
from collector.format.records import Note, Schema, decode_chunk
from collector.sources.device.accelerator import DeviceIdentity
from collector.writing.append import AppendFile, DeletedError
from collector.writing.header import make_header
from collector.writing.note_queue import NoteQueue
from collector.writing.rank_file import RankFile
from collector.writing.tables import Table, to_column
from collector.writing.writer import Writer, WriterPlan
from tb_plugin.cli.opening import read_whole, run_of_file
from tests.collector.recordings import rank_files, read, read_only_file, wait_until

STEP = Schema(schema_id=0, table="step", phase="train", columns=(*AXES, *TIMING, *RSS))
ATTEMPT = "20231114T221320001-00000000"
START_NS = 1_700_000_000 * 10**9


def row(step, seconds=0.5, rss=2**30):
    return [START_NS + step * 10**9, step, seconds, rss]


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


def header(who=None, attempt="20231114T221320001-00000000"):
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


def note(kind="mark", **data):
    return Note(kind=kind, time_ns=START_NS, step=0, data=data)


# One append or none.


def test_a_file_is_never_shared(tmp_path):
    AppendFile(tmp_path / "a").close()
    with pytest.raises(FileExistsError):
        AppendFile(tmp_path / "a")


def test_a_short_write_that_fails_is_taken_back(tmp_path, monkeypatch):
    file = AppendFile(tmp_path / "a")
    assert file.append(b"whole") == 0
    real, calls = os.write, []

    def write(fd, data):
        calls.append(len(data))
        if len(calls) == 1:
            return real(fd, data[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="No space"):
        file.append(b"abcdef")
    assert calls == [6, 3]
    assert file.path.read_bytes() == b"whole"
    monkeypatch.undo()
    assert file.append(b"next") == 5
    assert file.path.read_bytes() == b"wholenext"
    file.close()
    file.close()


def test_a_tear_that_cannot_be_taken_back_at_once_is_taken_back_later(
    tmp_path, monkeypatch
):
    file = AppendFile(tmp_path / "a")
    file.append(b"whole")
    real_write = os.write

    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    def tear(fd, data):
        real_write(fd, data[:2])
        fail()

    monkeypatch.setattr(os, "write", tear)
    monkeypatch.setattr(os, "ftruncate", fail)
    with pytest.raises(OSError, match="Input"):
        file.append(b"abcdef")
    assert file.path.read_bytes() == b"wholeab"
    with pytest.raises(OSError, match="Input"):
        file.append(b"x")
    monkeypatch.undo()
    assert file.append(b"next") == 5
    assert file.path.read_bytes() == b"wholenext"
    file.close()


def test_a_deleted_file_is_noticed(tmp_path):
    file = AppendFile(tmp_path / "a")
    assert not file.is_deleted()
    (tmp_path / "a").rename(tmp_path / "b")
    assert not file.is_deleted()  # moved is not deleted: the descriptor follows
    (tmp_path / "b").unlink()
    assert file.is_deleted()
    with pytest.raises(DeletedError):
        file.append(b"x")
    file.close()


def test_a_number_that_is_another_files_by_now_is_never_written_to(tmp_path):
    """A program that closes all descriptors may open its own under the same number."""
    file = AppendFile(tmp_path / "a")
    file.append(b"ours")
    theirs = file.fileno()
    other = os.open(tmp_path / "b", os.O_RDWR | os.O_CREAT)
    os.dup2(other, theirs)  # in one go: another thread may open files too
    os.close(other)
    with pytest.raises(DeletedError):
        file.append(b"x")
    file.close()
    os.fstat(theirs)  # still open
    os.close(theirs)
    assert (tmp_path / "a").read_bytes() == b"ours"
    assert (tmp_path / "b").read_bytes() == b""


# Values to columns.


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([1, 2], "i8", [1, 2]),
        ([1, None], "i8", [1, ABSENT]),
        ([math.nan, math.inf, 3], "i8", [ABSENT, ABSENT, 3]),
        ([2**63, -(2**63), 2**63 - 1], "i8", [ABSENT, ABSENT, 2**63 - 1]),
        (["text", 4], "i8", [ABSENT, 4]),
        ([None, 1.5, math.inf], "f8", [math.nan, 1.5, math.inf]),
        (["text", 10**400, 2], "f4", [math.nan, math.nan, 2.0]),
    ],
)
def test_what_does_not_fit_a_column_is_absent(values, dtype, expected):
    column = to_column(values, dtype)
    assert column.dtype == (np.int64 if dtype == "i8" else np.float64)
    np.testing.assert_array_equal(column, expected)


def test_infinities_survive_into_chunk_and_rollup():
    table = Table(STEP)
    for step, seconds in enumerate((1.0, math.inf, -math.inf, math.nan, 1e300)):
        table.add(row(step, seconds))
    columns = decode_chunk(table.encode(digest_offset=0))
    assert columns[2].tolist()[:3] == [1.0, math.inf, -math.inf]
    table.commit(is_on_disk=True)
    assert any(np.nanmax(c) == math.inf for c in table.rollup.fine.columns()[4:])


# The file of a rank.


def write_rows(file, rows, per_flush):
    for start in range(0, len(rows), per_flush):
        for values in rows[start : start + per_flush]:
            file.add_row(0, values)
        file.flush()


def opened(path, **keywords):
    file = RankFile(max_bytes=0, **keywords)
    file.open(path, header())
    file.add_schema(STEP)
    return file


def test_what_goes_in_comes_out_and_the_digests_agree_with_it(tmp_path):
    path = tmp_path / "a"
    file = opened(path)
    rng = np.random.default_rng(11)
    noise = rng.integers(2**30, size=40_000).tolist()
    rows = [row(step, rng.random(), 2**30 + noise[step]) for step in range(40_000)]
    file.notes.add(note(label="first"))
    write_rows(file, rows, per_flush=17)
    file.close("closed", "", num_dropped=0, time_ns=START_NS)
    found = read(path)
    assert found.damages == []
    assert found.kinds[:3] == ["", "header", "schema"]
    assert found.kinds[-2:] == ["digest", "close"]
    assert found.steps() == [values[1] for values in rows]
    assert found.column("rss_bytes") == [values[3] for values in rows]
    assert found.close.digest_offset == found.digest_offsets[-1]

    # Digests chain back, and their directories together list every chunk once.
    assert len(found.digests) > 3
    previous = [digest.previous_offset for digest in found.digests]
    assert previous == [0, *found.digest_offsets[:-1]]
    listed = [o for d in found.digests for o in d.tables[0].chunk_offset.tolist()]
    assert listed == found.chunk_offsets
    last = found.digests[-1].tables[0]
    assert last.num_rows == 40_000
    assert last.fine["rss_bytes:max"].max() == 2**30 + max(noise)
    assert last.fine["step_last"].max() == 39_999
    for digest in found.digests:
        assert [dict(n.data) for n in digest.notes] == [{"label": "first"}]
        assert list(digest.schemas.values()) == [STEP]


def test_a_failed_write_loses_nothing_and_repeats_nothing(tmp_path, monkeypatch):
    path = tmp_path / "a"
    file = opened(path)
    failing = False

    def append(self, data, real=AppendFile.append):
        if failing:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, data)

    monkeypatch.setattr(AppendFile, "append", append)
    for step in range(100):
        file.add_row(0, row(step))
        file.notes.add(note(label=str(step)))
        failing = step % 3 != 0
        if failing:
            with pytest.raises(OSError, match="No space"):
                file.flush()
        else:
            file.flush()
    failing = False
    file.close("closed", "", num_dropped=0, time_ns=START_NS)
    found = read(path)
    assert found.steps() == list(range(100))
    assert [n["label"] for n in found.notes_of("mark")] == [str(s) for s in range(100)]
    assert found.digests[-1].tables[0].num_rows == 100


def test_a_header_that_does_not_fit_leaves_no_file(tmp_path, monkeypatch):
    def append(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(AppendFile, "append", append)
    file = RankFile(max_bytes=0)
    with pytest.raises(OSError, match="No space"):
        file.open(tmp_path / "a", header())
    assert not (tmp_path / "a").exists()
    assert not file.is_open


def test_the_disk_budget_ends_the_chunks_but_not_the_story(tmp_path):
    path, budget = tmp_path / "a", 120_000
    file = RankFile(max_bytes=budget)
    file.open(path, header())
    file.add_schema(STEP)
    rng = np.random.default_rng(7)
    rows = [row(s, rng.random(), int(rng.integers(2**30))) for s in range(40_000)]
    write_rows(file, rows[:20_000], per_flush=50)
    at_budget = path.stat().st_size
    file.notes.add(note(label="late"))
    write_rows(file, rows[20_000:], per_flush=50)
    file.close("closed", "", num_dropped=0, time_ns=START_NS)
    found = read(path)
    kept = len(found.steps())
    assert file.is_full
    assert 500 < kept < 20_000
    assert found.steps() == list(range(kept))  # a gapless beginning
    assert file.num_over_budget == 40_000 - kept
    last = found.digests[-1].tables[0]
    assert last.num_rows == 40_000
    assert last.fine["rss_bytes:max"].max() == max(values[3] for values in rows)
    assert last.fine["step_last"].max() == 39_999
    assert found.notes_of("mark") == [{"label": "late"}]
    chunks_end = found.chunk_offsets[-1]
    assert chunks_end < budget
    assert path.stat().st_size - at_budget < 4 * 150_000  # a few more digests


def test_another_rank_goes_on_in_a_file_that_continues_the_first(tmp_path):
    old = tmp_path / rank_file_name(0, ATTEMPT)
    file = opened(old)
    file.notes.add(note(label="early"))
    write_rows(file, [row(step) for step in range(2000)], per_flush=1)
    assert b"memboard/digest" in old.read_bytes()
    file.add_row(0, row(2000))  # pending meanwhile
    file.go_on(tmp_path / rank_file_name(3, ATTEMPT), header(identity(3, 4)))
    write_rows(file, [row(step) for step in range(2001, 2100)], per_flush=20)
    file.close("closed", "", num_dropped=0, time_ns=START_NS)
    new = tmp_path / rank_file_name(3, ATTEMPT, 1)
    assert file.path == new
    found = read(old, new)
    assert found.header.rank == 3
    assert found.steps() == list(range(2100))
    assert found.notes_of("mark") == [{"label": "early"}]
    listed = [o for d in found.digests for o in d.tables[0].chunk_offset.tolist()]
    assert listed == found.chunk_offsets
    assert found.digests[-1].tables[0].num_rows == 2100


def test_a_digest_repeats_a_bounded_number_of_notes():
    book = NoteQueue()
    for index in range(2000):
        book.add(note("mark", label=index))
        book.add(note(f"kind{index}"))
    assert len(book) == 4000
    assert book.repeated() == []  # nothing is on disk yet
    book.commit()
    kept = book.repeated()
    assert len(book) == 0
    assert [n.data["label"] for n in kept if n.kind == "mark"] == list(
        range(1488, 2000)
    )
    assert len(kept) < 1000


# The thread.


class Clockwork:
    """A writer with every knob in hand."""

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


def test_rows_come_to_the_disk_by_themselves(tmp_path):
    with Clockwork(tmp_path, flush_seconds=0.1) as writer:
        wait_until(lambda: writer.path is not None)
        for step in range(3):
            writer.put_row(0, row(step))
            wait_until(lambda step=step: step in read(writer.path).steps())
        assert read(writer.path).steps() == [0, 1, 2]


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


def test_failures_back_off_and_the_rows_wait(tmp_path, monkeypatch, caplog):
    attempts, failing = [], True
    real = AppendFile.append

    def append(self, data):
        attempts.append(time.monotonic())
        if failing:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, data)

    with Clockwork(tmp_path, flush_seconds=0.05) as writer:
        wait_until(lambda: writer.path is not None)
        monkeypatch.setattr(AppendFile, "append", append)
        for step in range(50):
            writer.put_row(0, row(step))
        wait_until(lambda: len(attempts) >= 3)
        failing = False
        wait_until(lambda: len(read(writer.path).steps()) == 50)
    first, second, third = attempts[:3]  # after 1 s, after 2 s: not every 0.04 s
    assert second - first >= 1
    assert third - second >= 2
    assert read_only_file(tmp_path).close.num_dropped == 0
    warnings = [r for r in caplog.records if "cannot be written" in r.getMessage()]
    assert len(warnings) == 1
    assert "Free space" in warnings[0].getMessage()


def the_only_recording(run_dir, rank):
    """What the page is told of a run of one recording, however many files it has."""
    run = run_of_file(rank_files(run_dir)[-1])
    read_whole(run)
    assert (run.ranks, run.problems) == ([rank], ())
    (attempt,) = run.attempts
    return attempt.files[rank]


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


def test_closing_waits_no_longer_than_it_may(tmp_path, monkeypatch, caplog):
    release = threading.Event()
    real = AppendFile.append

    def slow(self, data):
        release.wait(60)
        return real(self, data)

    clockwork = Clockwork(tmp_path)
    writer = clockwork.writer
    writer.start()
    wait_until(lambda: writer.path is not None)
    monkeypatch.setattr(AppendFile, "append", slow)
    writer.put_row(0, row(0))
    writer.close("closed", "", 0.3)
    assert writer._thread.is_alive(), "closing waited for the disk"
    assert "could not be completed within 0.3 s" in caplog.text
    release.set()
    writer._thread.join(60)


def test_clocks_are_noted_so_that_processes_can_be_aligned(tmp_path):
    with Clockwork(tmp_path):
        pass
    found = read_only_file(tmp_path)
    (clock,) = [n for n in found.notes if n.kind == "clock"]
    assert abs(clock.data["monotonic_ns"] - time.monotonic_ns()) < 60e9
    assert abs(clock.time_ns - time.time_ns()) < 60e9


def test_file_names_parse_and_no_byte_is_unframed(tmp_path):
    with Clockwork(tmp_path) as writer:
        writer.put_row(0, row(0))
    (path,) = rank_files(tmp_path)
    assert path.name == rank_file_name(0, writer.attempt)
    frames = list(read_frames(path.read_bytes(), last=True))
    assert not any(isinstance(frame, Damage) for frame in frames)
    assert frames[0].offset == 0
    assert frames[-1].end == path.stat().st_size
    for frame, after in itertools.pairwise(frames):
        assert frame.end == after.offset
