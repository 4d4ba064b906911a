"""A rank's file: opened from its end, followed while it grows, salvaged when broken."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memboard.collector.format.digest import DIGEST
from memboard.collector.format.encoding.payload import pack
from memboard.collector.format.records import CHUNK, SCHEMA
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.cache import Cache
from memboard.tb_plugin.formats.recording.frames.parts import Part
from memboard.tb_plugin.formats.recording.rank_file import RankFile
from memboard.tb_plugin.formats.recording.series import SeriesKey, SeriesReader
from tests.builders import RunBuilder, flip_bit, peak_of

KEY = SeriesKey("step", "allocated_peak_bytes")


def parts_of(path) -> tuple[Part, ...]:
    status = path.stat()
    known = (status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino)
    return (Part(str(path), *known, 0, path.name, ""),)


def opened(path, rank: int = 0) -> RankFile:
    file = RankFile(rank, path.name.partition("-")[2].partition(".")[0], path.name)
    file.update(parts_of(path), Budget(30))
    return file


def rollup(file: RankFile):
    return SeriesReader(Cache()).rollup(file, KEY, None)


def values_by_step(file: RankFile) -> dict[int, float]:
    """Every row the file still gives, read row by row."""
    reader = SeriesReader(Cache())
    rows = reader.row_by_row(file, KEY, None, -np.inf, np.inf, Budget(30))
    return {
        int(s): v for s, v in zip(rows.first, rows.high, strict=True) if not np.isnan(v)
    }


def expected(num_steps: int, rank: int = 0) -> dict[int, float]:
    return {step: float(peak_of(rank, step)) for step in range(num_steps)}


def test_a_finished_file_reads_back_whole(tmp_path):
    (rank,) = RunBuilder(tmp_path).simple(1, 500)
    file = opened(rank.path)
    assert file.header == rank.header
    assert file.close.how == "closed"
    assert file.faults == []
    assert not file.is_torn
    assert file.behind.chunks == {}, "a finished file needs nothing but its digest"
    assert rollup(file).high.tolist() == list(expected(500).values())
    assert values_by_step(file) == expected(500)


def test_opening_a_finished_file_reads_a_fraction_of_it(tmp_path, read):
    run = RunBuilder(tmp_path)
    rank = run.rank()
    rng = np.random.default_rng(0)
    steps = np.arange(60_000)
    rank.steps(steps, allocated_peak_bytes=rng.integers(0, 2**40, len(steps)))
    rank.close()
    file = opened(rank.path)
    assert file.digest is not None
    assert sum(read) < rank.path.stat().st_size / 4
    assert len(read) <= 4


def test_a_growing_file_is_followed_without_reading_it_again(tmp_path, read):
    rank = RunBuilder(tmp_path).rank()
    rank.steps(range(2000), allocated_peak_bytes=peak_of(0, np.arange(2000)))
    file = opened(rank.path)
    read.clear()
    for start in range(2000, 2500, 50):
        steps = np.arange(start, start + 50)
        rank.steps(steps, allocated_peak_bytes=peak_of(0, steps))
        file.update(parts_of(rank.path), Budget(30))
    assert 0 < sum(read) < 10_000
    assert rollup(file).high.tolist() == list(expected(2500).values())


def test_a_digest_that_arrives_while_following_replaces_the_tail(tmp_path):
    rank = RunBuilder(tmp_path).rank()
    rank.steps(range(100), allocated_peak_bytes=peak_of(0, np.arange(100)))
    file = opened(rank.path)
    assert sum(map(len, file.behind.chunks.values())) == 2
    rank.digest()
    rank.steps(range(100, 130), allocated_peak_bytes=peak_of(0, np.arange(100, 130)))
    file.update(parts_of(rank.path), Budget(30))
    assert sum(map(len, file.behind.chunks.values())) == 1
    assert rollup(file).high.tolist() == list(expected(130).values())
    assert values_by_step(file) == expected(130)


def test_a_file_that_was_replaced_is_read_anew(tmp_path):
    (rank,) = RunBuilder(tmp_path).simple(1, 100)
    file = opened(rank.path)
    assert file.update(parts_of(rank.path), Budget(30)) is False
    other = RunBuilder(tmp_path / "other").simple(1, 300)[0]
    other.path.replace(rank.path)
    assert file.update(parts_of(rank.path), Budget(30)) is True
    assert rollup(file).high.tolist() == list(expected(300).values())


def test_a_chain_of_digests_gives_every_chunk(tmp_path):
    rank = RunBuilder(tmp_path).rank()
    for start in range(0, 1000, 100):
        steps = np.arange(start, start + 100)
        rank.steps(steps, allocated_peak_bytes=peak_of(0, steps))
        rank.digest()
    rank.close()
    assert values_by_step(opened(rank.path)) == expected(1000)


def test_a_zoomed_read_decodes_only_the_chunks_it_needs(tmp_path, monkeypatch):
    rank = RunBuilder(tmp_path).rank()
    for start in range(0, 5000, 500):
        steps = np.arange(start, start + 500)
        rank.steps(steps, allocated_peak_bytes=peak_of(0, steps))
        rank.digest()
    rank.close()
    file = opened(rank.path)
    reader = SeriesReader(Cache())
    decoded = []
    read_record = file.read_record
    monkeypatch.setattr(
        file, "read_record", lambda *a: decoded.append(a[1]) or read_record(*a)
    )
    rows = reader.row_by_row(file, KEY, None, 4890, 4910, Budget(30))
    assert rows.first.tolist() == list(range(4850, 4950))
    assert decoded.count(CHUNK) == 2
    assert decoded.count(DIGEST) <= 2, "the chain is walked only as far as needed"


# --- Damage -------------------------------------------------------------------------


def built(tmp_path, *, close: bool = True):
    """A file with every kind of record: 10 chunks, digests, notes."""
    rank = RunBuilder(tmp_path).rank()
    rank.source("device")
    for start in range(0, 200, 100):
        steps = np.arange(start, start + 100)
        rank.steps(steps, rows_per_chunk=20, allocated_peak_bytes=peak_of(0, steps))
        if start == 0:
            rank.note("epoch", 100, epoch=1)
            rank.digest()
    if close:
        rank.close()
    return rank


@given(fraction=st.floats(0, 1), close=st.booleans())
@settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_prefix_of_a_file_loses_only_its_tail(tmp_path_factory, fraction, close):
    rank = built(tmp_path_factory.mktemp("prefix"), close=close)
    data = rank.path.read_bytes()
    cut = round(len(data) * fraction)
    rank.path.write_bytes(data[:cut])
    file = opened(rank.path)
    whole = [(k, e) for k, _, e in rank.offsets if e <= cut]
    num_rows = 20 * sum(kind == CHUNK for kind, _ in whole)
    assert values_by_step(file) == expected(num_rows)
    assert file.faults == []
    version_end = rank.offsets[0][1]
    boundaries = {0, version_end, *(end for _, _, end in rank.offsets)}
    assert file.is_torn == (cut not in boundaries)


@given(data=st.data())
@settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_flipped_bit_costs_one_record_and_is_reported(tmp_path_factory, data):
    rank = built(tmp_path_factory.mktemp("flip"), close=data.draw(st.booleans()))
    size = rank.path.stat().st_size
    offset = data.draw(st.integers(0, size - 1))
    flip_bit(rank.path, offset, data.draw(st.integers(0, 7)))
    file = opened(rank.path)
    found = values_by_step(file)
    file.check(Budget(30))
    hit = [kind for kind, start, end in rank.offsets if start <= offset < end]
    lost_rows = 20 if hit == [CHUNK] else 0
    if hit == [SCHEMA]:
        # Chunks before the first digest need it; the digest repeats it.
        lost_rows = 0 if file.digest is not None else 100
    assert found.items() <= expected(200).items()
    assert len(found) >= 200 - lost_rows
    in_torn_end = file.is_torn and offset >= file.read_to
    assert file.faults or in_torn_end
    again = opened(rank.path)
    assert values_by_step(again) == found


def test_two_damaged_places_are_both_reported_and_cost_two_chunks(tmp_path):
    rank = built(tmp_path, close=False)
    chunks = [(s, e) for kind, s, e in rank.offsets if kind == CHUNK]
    for start, end in (chunks[6], chunks[8]):
        flip_bit(rank.path, (start + end) // 2)
    file = opened(rank.path)
    assert len(values_by_step(file)) == 160
    assert len(file.faults) == 2
    assert f"bytes {chunks[6][0]} to {chunks[6][1]}" in file.faults[0].where


def test_damage_before_the_digest_is_found_by_the_check_alone(tmp_path):
    rank = built(tmp_path)
    start, end = next((s, e) for kind, s, e in rank.offsets if kind == CHUNK)
    flip_bit(rank.path, (start + end) // 2)
    file = opened(rank.path)
    assert file.faults == []
    assert rollup(file).high.tolist() == list(expected(200).values()), (
        "the digest has it"
    )
    assert file.check(Budget(30)) is True
    assert [fault.where for fault in file.faults] == [f"bytes {start} to {end}"]


def test_a_broken_last_digest_falls_back_to_reading_from_the_start(tmp_path):
    rank = built(tmp_path)
    start, end = [(s, e) for kind, s, e in rank.offsets if kind == DIGEST][-1]
    flip_bit(rank.path, (start + end) // 2)
    file = opened(rank.path)
    assert values_by_step(file) == expected(200)
    assert len(file.faults) == 1
    assert file.close is not None


def test_a_lost_header_is_replaced_by_what_the_name_tells(tmp_path):
    rank = RunBuilder(tmp_path).rank(3)
    rank.steps(range(40), allocated_peak_bytes=peak_of(3, np.arange(40)))
    start, end = rank.offsets[0][1:]
    flip_bit(rank.path, (start + end) // 2)
    file = opened(rank.path, rank=3)
    assert file.written_header is None
    assert file.header.rank == 3
    assert file.header.started.wall_ns == rank.header.started.wall_ns
    assert values_by_step(file) == expected(40, rank=3)


def test_a_header_that_names_another_rank_is_reported(tmp_path):
    rank = RunBuilder(tmp_path).rank(5, named_rank=2)
    rank.steps(range(40), allocated_peak_bytes=peak_of(5, np.arange(40)))
    file = opened(rank.path, rank=2)
    (fault,) = file.faults
    assert "rank 2" in fault.what
    assert "rank 5" in fault.what
    assert len(values_by_step(file)) == 40


def test_a_file_of_another_format_is_skipped_with_what_to_do(tmp_path):
    rank = RunBuilder(tmp_path).rank(headless=True)
    plain = {"format_version": 99, "versions": {"memboard": "7.0"}}
    rank.append("header", pack(plain))
    file = opened(rank.path)
    (fault,) = file.faults
    assert "7.0" in fault.what
    assert "pip install -U memboard" in fault.remedy


def test_unknown_records_and_foreign_events_are_ignored(tmp_path):
    rank = RunBuilder(tmp_path).rank()
    rank.append("invention", b"\x00\x01")
    rank.steps(range(20), allocated_peak_bytes=peak_of(0, np.arange(20)))
    rank.append("invention", b"")
    file = opened(rank.path)
    assert file.faults == []
    assert values_by_step(file) == expected(20)


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b"{}", b"\xff\xfe", b'{"kind": 3, "time_ns": "x"}', b"[" * 5000],
    ids=["empty", "list", "object", "not text", "types", "deep"],
)
@pytest.mark.parametrize(
    "kind", ["header", "schema", "note", "close", "chunk", "digest"]
)
def test_an_intact_frame_with_nonsense_inside_is_one_fault(tmp_path, kind, payload):
    rank = RunBuilder(tmp_path).rank()
    rank.steps(range(20), allocated_peak_bytes=peak_of(0, np.arange(20)))
    rank.append(kind, payload)
    rank.steps(range(20, 40), allocated_peak_bytes=peak_of(0, np.arange(20, 40)))
    file = opened(rank.path)
    assert values_by_step(file) == expected(40)
    assert len(file.faults) == 1


def test_garbage_under_our_name_is_not_taken_for_records(tmp_path):
    rank = RunBuilder(tmp_path).rank()
    rank.path.write_bytes(
        random.Random(7).randbytes(1 << 20) + b"memboard/chunk" * 10_000
    )
    file = opened(rank.path)
    assert not file.has_records


def test_a_budget_that_runs_out_is_taken_up_again(tmp_path):
    rank = RunBuilder(tmp_path).rank()
    rank.steps(
        range(30_000),
        rows_per_chunk=10,
        allocated_peak_bytes=peak_of(0, np.arange(30_000)),
    )
    file = RankFile(0, rank.header.attempt, "x")
    parts = parts_of(rank.path)
    for _ in range(1000):
        file.update(parts, Budget(1e-3))
        if not file.unfinished:
            break
    assert not file.unfinished
    assert values_by_step(file) == expected(30_000)


def test_no_descriptor_stays_open(tmp_path):
    ranks = RunBuilder(tmp_path).simple(3, 50)
    for rank in ranks:
        values_by_step(opened(rank.path, rank.rank))
    assert open_below(tmp_path) == []
    with ranks[0].path.open("rb"):
        assert open_below(tmp_path) == [ranks[0].path]


def open_below(folder: Path) -> list[Path]:
    """Files of a folder that this process has open; other threads open others."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found.append(descriptor.readlink())
    return [path for path in found if path.is_relative_to(folder)]


LATE = {
    "device_type": "cuda",
    "device_index": 3,
    "device_name": "NVIDIA H100 80GB HBM3",
    "device_uuid": "a",
    "device_total_bytes": 80 << 30,
}


@pytest.mark.parametrize("finished", [False, True])
def test_a_device_that_came_into_use_later_is_the_headers(tmp_path, finished):
    """A recording that begins with `import torch` begins before the device is in use."""
    rank = RunBuilder(tmp_path).rank(
        device_name=None, device_total_bytes=None, device_index=None
    )
    rank.steps(range(10), allocated_peak_bytes=[1.0] * 10)
    before = opened(rank.path)
    assert before.header.device_total_bytes is None
    rank.note("device", device_name=7, device_total_bytes=-1)  # it may say anything
    before.update(parts_of(rank.path), Budget(30))
    assert before.header.device_total_bytes is None
    rank.note("device", **LATE)
    rank.steps(range(10, 20), allocated_peak_bytes=[1.0] * 10)
    if finished:
        rank.close()
    before.update(parts_of(rank.path), Budget(30))
    for file in (before, opened(rank.path)):
        found = {name: getattr(file.header, name) for name in LATE}
        assert found == LATE
        assert file.header.host == rank.header.host
