"""Captures in a rank's file: listed without decoding, read whole, lost one at a time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memboard.collector.format.capture import (
    CAPTURE,
    PART_BYTES,
    encode_body,
    split_body,
)
from memboard.collector.format.digest import DIGEST, encode_digest
from memboard.collector.format.errors import CorruptError
from memboard.collector.format.records import Capture, CaptureEntry
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.formats.recording.captures.reading import (
    captures_of,
    read_capture,
)
from memboard.tb_plugin.formats.recording.rank_file import RankFile
from memboard.tb_plugin.index.problems import problems_of
from tests.builders import RunBuilder, age, flip_bit
from tests.tb_plugin.readers.test_rank_file import (
    opened,
    parts_of,
    values_by_step,
)

NOISE = np.random.default_rng(0).integers(1 - 2**63, 2**63, 7 * PART_BYTES // 16)
"""Does not deflate: four parts."""


def small(number):
    return {"t": {"x": np.arange(number, number + 20), "s": tuple("ab" * 10)}}


@pytest.fixture
def rank(tmp_path):
    return RunBuilder(tmp_path).rank()


def write(rank, number, **fields):
    """Some steps and a capture behind them."""
    steps = range(number * 10, number * 10 + 10)
    values = np.arange(10) + 1000.0
    rank.steps(steps, allocated_peak_bytes=values)
    known = {"tables": small(number), "iteration": number + 1, "step": steps[-1]}
    return rank.capture(**{**known, **fields})


def test_captures_are_listed_in_order_whatever_digests_lie_between(rank):
    written = []
    for number in range(12):
        kind = "modules" if number else "of tomorrow"
        written.append(write(rank, number, label=f"no {number}", kind=kind))
        if number in (2, 3, 7):
            rank.digest()
        if number == 3:
            rank.digest()  # one that lists none
    file = opened(rank.path)
    assert file.digest is not None
    assert len(file.behind.captures.found) == 4
    assert list(captures_of(file)) == written
    for number, entry in enumerate(written):
        capture = read_capture(file, entry)
        assert capture.label == f"no {number}"
        assert capture.kind == ("modules" if number else "of tomorrow")
        assert capture.tables["t"]["s"] == tuple("ab" * 10)
        assert capture.tables["t"]["x"].tolist() == list(range(number, number + 20))
    assert file.faults == []
    assert values_by_step(file).keys() == set(range(120))


def test_the_digests_alone_are_read_to_list_a_finished_file(rank, read):
    written = []
    for number in range(6):
        written.append(write(rank, number, tables={"t": {"x": NOISE}}))
        rank.digest()
        if number % 2:
            rank.digest()
    rank.close()
    file = opened(rank.path)
    assert list(captures_of(file)) == written
    assert sum(read) < 200_000 < rank.path.stat().st_size / 10
    before = len(read)
    assert list(captures_of(file)) == written
    assert len(read) == before, "listed once"


def test_a_file_without_a_digest_is_listed_by_reading_it(rank):
    written = [write(rank, number) for number in range(3)]
    file = opened(rank.path)
    assert file.digest is None
    assert list(captures_of(file)) == written


def test_a_growing_file_lists_what_came(rank):
    written = [write(rank, 0)]
    file = opened(rank.path)
    assert list(captures_of(file)) == written
    for number in range(1, 6):
        written.append(write(rank, number, tables={"t": {"x": NOISE}}))
        if number == 3:
            rank.digest()
        file.update(parts_of(rank.path), Budget(30))
        assert list(captures_of(file)) == written
    assert file.faults == []


def test_only_wanted_tables_are_decoded(rank):
    entry = write(rank, 0, tables={"a": {"x": NOISE}, "b": {"y": np.arange(3)}})
    capture = read_capture(opened(rank.path), entry, {"b"})
    assert list(capture.tables) == ["b"]


def test_a_capture_of_many_parts_comes_back(rank):
    entry = write(rank, 0, tables={"t": {"x": NOISE}})
    assert sum(kind == CAPTURE for kind, _, _ in rank.offsets) == 4
    file = opened(rank.path)
    assert np.array_equal(read_capture(file, entry).tables["t"]["x"], NOISE)


# Torn, flipped, missing.


def torn(rank, end):
    """What is known of the file where it ends at `end`."""
    data = rank.path.read_bytes()[:end]
    rank.path.write_bytes(data)
    return opened(rank.path)


@settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(share=st.floats(0, 0.999))
def test_a_file_cut_off_inside_a_capture_loses_that_one_alone(tmp_path, share):
    rank = RunBuilder(tmp_path / str(hash(share))).rank()
    first = write(rank, 0)
    rank.digest()
    second = write(rank, 1)
    last = write(rank, 2, tables={"t": {"x": NOISE}})
    file = torn(rank, last.offset + int(share * last.num_bytes))
    assert list(captures_of(file)) == [first, second]
    assert values_by_step(file).keys() == set(range(30))
    assert file.digest is not None, "found from the end"
    age(rank.path)
    problems = list(problems_of(file, live=False, now=2e12))
    if share * last.num_bytes >= 1:
        assert [problem.severity for problem in problems] == ["info"]
    assert not list(problems_of(file, live=True, now=2e12))


def test_a_cut_between_two_parts_is_named_too(rank):
    write(rank, 0, tables={"t": {"x": NOISE}}, iteration=7)
    parts = [end for kind, _, end in rank.offsets if kind == CAPTURE]
    file = torn(rank, parts[1])
    assert not file.is_torn, "all records are whole"
    (problem,) = problems_of(file, live=False, now=2e12)
    assert 'the capture "modules" of step, call 7' in problem.what
    assert problem.severity == "info"


def test_parts_that_arrive_one_by_one_become_a_capture(rank):
    entry = write(rank, 0, tables={"t": {"x": NOISE}})
    data = rank.path.read_bytes()
    ends = [end for kind, _, end in rank.offsets if kind == CAPTURE]
    rank.path.write_bytes(data[: ends[0]])
    file = opened(rank.path)
    for before, end in pairwise([*ends[:1], *range(ends[0] + 1, len(data), 77_777)]):
        with rank.path.open("ab") as tail:
            tail.write(data[before:end])
        file.update(parts_of(rank.path), Budget(30))
        assert captures_of(file) == ()
        rest = end
    with rank.path.open("ab") as tail:
        tail.write(data[rest:])
    file.update(parts_of(rank.path), Budget(30))
    assert list(captures_of(file)) == [entry]
    assert file.faults == []
    assert np.array_equal(read_capture(file, entry).tables["t"]["x"], NOISE)


@pytest.mark.parametrize("with_digest", [True, False])
@pytest.mark.parametrize("part", [0, 1, 3])
def test_a_flipped_bit_costs_one_capture_and_is_named(rank, with_digest, part):
    write(rank, 0)
    hit = write(rank, 1, tables={"t": {"x": NOISE}})
    write(rank, 2)
    if with_digest:
        rank.close()
    starts = [start for kind, start, _ in rank.offsets if kind == CAPTURE]
    flip_bit(rank.path, starts[1 + part] + 5000)
    file = opened(rank.path)
    # A digest still lists what cannot be read; without one it is never listed.
    others = [entry for entry in captures_of(file) if entry != hit]
    assert [read_capture(file, entry).iteration for entry in others] == [1, 3]
    assert (hit in captures_of(file)) == with_digest
    with pytest.raises(CorruptError, match='capture "modules" of step, call 2'):
        read_capture(file, hit)
    assert 1 <= len(file.faults) <= 3
    assert file.faults[0].where.startswith("bytes ")
    assert values_by_step(file).keys() == set(range(30))


def test_a_damaged_digest_in_the_chain_is_read_around(rank):
    written = []
    for number in range(6):
        written.append(write(rank, number))
        if number % 2:
            rank.digest()
    rank.close()
    digests = [start for kind, start, _ in rank.offsets if kind == DIGEST]
    flip_bit(rank.path, digests[1] + 60)
    file = opened(rank.path)
    assert list(captures_of(file)) == written
    assert file.faults


def parts_of_capture():
    """The parts of a capture, to be appended one by one."""
    capture = Capture(
        kind="history", time_ns=1, step=3, phase="train", function="f", iteration=2,
        tables={"t": {"x": NOISE}},
    )  # fmt: skip
    return split_body(capture, encode_body(capture), digest_offset=0)


def test_a_missing_first_part_is_one_fault_not_many(rank):
    for part in parts_of_capture()[1:]:
        rank.append(CAPTURE, part)
    entry = write(rank, 0)
    file = opened(rank.path)
    assert list(captures_of(file)) == [entry]
    (fault,) = file.faults
    assert "the start of the capture" in fault.what


def test_parts_that_something_comes_between_are_named_and_what_comes_is_kept(rank):
    parts = parts_of_capture()
    rank.append(CAPTURE, parts[0])
    rank.steps(range(10), allocated_peak_bytes=np.arange(10.0))
    for part in parts[1:]:
        rank.append(CAPTURE, part)
    file = opened(rank.path)
    assert captures_of(file) == ()
    assert 'the capture "history" of f, call 2' in file.faults[0].what
    assert len(file.faults) == 2
    assert values_by_step(file).keys() == set(range(10))


# Hostile.


def digest_listing(*entries, before=0):
    return encode_digest([], [], [], entries, previous_offset=0, captures_before=before)


def entry_at(offset, num_bytes=100):
    return CaptureEntry(
        offset=offset, num_bytes=num_bytes, kind="modules", time_ns=1, step=None,
        phase="train", function="step", iteration=1, context="", label="",
    )  # fmt: skip


def test_listings_that_point_anywhere_are_damage_not_reads(rank):
    steps = np.arange(10)
    rank.steps(steps, allocated_peak_bytes=steps * 1.0)
    size = rank.path.stat().st_size
    rank.append(
        DIGEST,
        digest_listing(entry_at(size + 10**9), entry_at(0), entry_at(100, 2**62)),
    )
    file = opened(rank.path)
    assert captures_of(file) == ()
    with pytest.raises(CorruptError, match="claims"):
        read_capture(file, entry_at(100, 2**62))
    with pytest.raises(CorruptError):
        read_capture(file, entry_at(100, 50))
    with pytest.raises(CorruptError):
        read_capture(file, entry_at(size + 10**9))


@pytest.mark.parametrize("before", [5, 10**12, 2**62, "itself"])
def test_a_chain_that_leads_nowhere_ends(rank, before):
    entry = write(rank, 0)
    before = rank.path.stat().st_size if before == "itself" else before
    rank.append(DIGEST, digest_listing(entry, before=before))
    assert list(captures_of(opened(rank.path))) == [entry]


def test_a_listing_with_odd_entries_keeps_the_others(rank):
    entry = write(rank, 0)
    odd = replace(entry, kind=5)
    rank.append(DIGEST, digest_listing(odd, entry))
    assert list(captures_of(opened(rank.path))) == [entry]


def test_the_budget_bounds_the_walk_and_the_next_one_goes_on(rank, monkeypatch):
    written = []
    for number in range(8):
        written.append(write(rank, number))
        rank.digest()
    file = opened(rank.path)
    budget = Budget(30)
    digest_at = RankFile.digest_at

    def twice(self, reader, offset):
        if len(file.listed_captures) == 2:
            budget.allows(1000)
            monkeypatch.setattr(budget, "allows", lambda: False)
        return digest_at(self, reader, offset)

    monkeypatch.setattr(RankFile, "digest_at", twice)
    assert list(captures_of(file, budget)) == written[-3:]
    assert list(captures_of(file)) == written


def test_a_file_that_is_replaced_is_listed_anew(rank, tmp_path):
    write(rank, 0)
    rank.close()
    file = opened(rank.path)
    assert len(captures_of(file)) == 1
    other = RunBuilder(tmp_path / "other").rank()
    other.steps(range(10), allocated_peak_bytes=np.arange(10.0))
    other.close()
    other.path.replace(rank.path)
    file.update(parts_of(rank.path), Budget(30))
    assert captures_of(file) == ()


def test_rows_that_are_not_rolled_up_are_in_no_picture(rank):
    rank.steps(range(100), allocated_peak_bytes=[float(v + 1) for v in range(100)])
    high = {"allocated_peak_bytes": [1e15] * 5, "rss_bytes": [1e15] * 5}
    rank.rows("function/f", range(5), rolled_up=False, **high)
    rank.close()
    assert max(values_by_step(opened(rank.path)).values()) == 100.0
