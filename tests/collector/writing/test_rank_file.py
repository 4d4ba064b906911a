"""From rows to a rank's file: one append or none, chunks, digests, the disk budget."""

from __future__ import annotations

import errno
import math
import os

import numpy as np
import pytest

from memboard.collector.format.encoding.numeric import ABSENT
from memboard.collector.format.records import Note, decode_chunk
from memboard.collector.writing.append import AppendFile, DeletedError
from memboard.collector.writing.rank_file import RankFile
from memboard.collector.writing.tables import Table, to_column
from tests.collector.recordings import read
from tests.collector.writing.clockwork import (
    START_NS,
    STEP,
    closed,
    header,
    rank_file,
    row,
    write_rows,
)


def note(label):
    return Note(kind="mark", time_ns=START_NS, step=0, data={"label": label})


# One append or none.


def test_a_file_is_never_shared(tmp_path):
    AppendFile(tmp_path / "a").close()
    with pytest.raises(FileExistsError):
        AppendFile(tmp_path / "a")


@pytest.mark.parametrize("at_once", [True, False])
def test_a_short_write_that_fails_is_taken_back(tmp_path, monkeypatch, at_once):
    file = AppendFile(tmp_path / "a")
    assert file.append(b"whole") == 0
    real, calls = os.write, []

    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    def write(fd, data):
        calls.append(len(data))
        return real(fd, data[:3]) if len(calls) == 1 else fail()

    monkeypatch.setattr(os, "write", write)
    if not at_once:
        monkeypatch.setattr(os, "ftruncate", fail)
    for _ in range(2):
        with pytest.raises(OSError, match="Input"):
            file.append(b"abcdef")
    assert calls[:2] == [6, 3]
    assert file.path.read_bytes() == (b"whole" if at_once else b"wholeabc")
    monkeypatch.undo()
    assert file.append(b"next") == 5
    assert file.path.read_bytes() == b"wholenext"
    file.close()
    file.close()


def test_a_deleted_file_is_noticed(tmp_path):
    file = AppendFile(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    assert not file.is_deleted()  # moved is not deleted: the descriptor follows
    (tmp_path / "b").unlink()
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
    assert any(np.nanmax(c) == math.inf for c in table.rollup.fine.columns()[2:-2])


# The file of a rank.


def test_what_goes_in_comes_out_and_the_digests_agree_with_it(tmp_path):
    path = tmp_path / "a"
    file = rank_file(path)
    rng = np.random.default_rng(11)
    noise = rng.integers(2**30, size=20_000).tolist()
    rows = [row(step, rng.random(), 2**30 + noise[step]) for step in range(20_000)]
    file.notes.add(note("first"))
    write_rows(file, rows, per_flush=17)
    closed(file)
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
    assert last.num_rows == 20_000
    assert last.fine["rss_bytes:max"].max() == 2**30 + max(noise)
    assert last.fine["step_last"].max() == 19_999
    for digest in found.digests:
        assert [dict(n.data) for n in digest.notes] == [{"label": "first"}]
        assert list(digest.schemas.values()) == [STEP]


def test_a_failed_write_loses_nothing_and_repeats_nothing(tmp_path, disk):
    path = tmp_path / "a"
    file = rank_file(path)
    for step in range(100):
        file.add_row(0, row(step))
        file.notes.add(note(str(step)))
        disk.room = 0 if step % 3 else 10**12
        if step % 3:
            with pytest.raises(OSError, match="No space"):
                file.flush()
        else:
            file.flush()
    disk.room = 10**12
    closed(file)
    found = read(path)
    assert found.steps() == list(range(100))
    assert [n["label"] for n in found.notes_of("mark")] == [str(s) for s in range(100)]
    assert found.digests[-1].tables[0].num_rows == 100


def test_a_header_that_does_not_fit_leaves_no_file(tmp_path, disk):
    disk.room = 0
    file = RankFile(max_bytes=0)
    with pytest.raises(OSError, match="No space"):
        file.open(tmp_path / "a", header())
    assert not (tmp_path / "a").exists()
    assert not file.is_open


def test_the_disk_budget_ends_the_chunks_but_not_the_story(tmp_path):
    path, budget = tmp_path / "a", 120_000
    file = rank_file(path, budget)
    rng = np.random.default_rng(7)
    rows = [row(s, rng.random(), int(rng.integers(2**30))) for s in range(40_000)]
    write_rows(file, rows[:20_000], per_flush=50)
    at_budget = path.stat().st_size
    file.notes.add(note("late"))
    write_rows(file, rows[20_000:], per_flush=50)
    closed(file)
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
    assert found.chunk_offsets[-1] < budget
    assert path.stat().st_size - at_budget < 4 * 150_000  # a few more digests
