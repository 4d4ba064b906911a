"""Rollups keep peaks exactly, however the rows arrive and however long the run is.

Digests, which repeat them, stay a small share of the file, and what no digest covers stays
small too.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.format.encoding.numeric import ABSENT
from memboard.collector.format.rollup import SHARE, DigestPace, Rollup, rollup_names


def oracle(rows: np.ndarray, width: int) -> list[tuple[float, float, float]]:
    """(max, min, mean) of each run of `width` rows, in plain Python."""
    buckets = []
    for start in range(0, len(rows), width):
        present = [v for v in rows[start : start + width] if v != ABSENT]
        if present:
            mean = sum(present) / len(present)
            buckets.append((max(present), min(present), mean))
        else:
            buckets.append((np.nan, np.nan, np.nan))
    return buckets


@given(
    st.lists(st.integers(0, 2**50) | st.just(ABSENT), max_size=300),
    st.lists(st.integers(1, 40), min_size=1, max_size=30),
    st.sampled_from([2, 8, 33]),
)
def test_buckets_equal_a_plain_loop_over_the_rows(values, batches, max_buckets):
    rows = np.array(values, np.int64)
    rollup = Rollup(1, max_buckets=max_buckets)
    start = 0
    while start < len(rows):
        for size in batches:
            part = slice(start, start + size)
            index = np.arange(len(rows), dtype=np.int64)[part]
            rollup.add(index * 10, index, [rows[part]])
            start += size
    width = rollup.rows_per_bucket
    names = rollup_names(["x"], max_only=width == 1)
    result = dict(zip(names, rollup.columns(), strict=True))
    expected = oracle(rows, width)
    assert rollup.num_rows == len(rows)
    assert len(result["x:max"]) == len(expected) <= max_buckets
    for index, name in enumerate(("x:max", "x:min", "x:mean")):
        np.testing.assert_allclose(
            result.get(name, result["x:max"]),
            [bucket[index] for bucket in expected],
            rtol=1e-12,
        )
    firsts = np.arange(0, len(rows), width)
    assert np.array_equal(result["step_first"], firsts)
    lasts = np.minimum(firsts + width, len(rows)) - 1
    assert np.array_equal(result["step_last"], lasts)
    assert np.array_equal(result["ns_first"], firsts * 10)
    assert np.array_equal(result["ns_last"], lasts * 10)


def test_max_only_keeps_the_maxima_alone():
    rollup = Rollup(1, max_buckets=4, max_only=True)
    index = np.arange(100, dtype=np.int64)
    rollup.add(index, index, [index])
    result = dict(
        zip(rollup_names(["x"], max_only=True), rollup.columns(), strict=True)
    )
    assert set(result) == {"step_first", "step_last", "ns_first", "ns_last", "x:max"}
    assert result["x:max"][-1] == 99


# The pace of digests.

KIB, MIB = 1 << 10, 1 << 20


def written_file(chunk_bytes, digest_bytes, num_chunks):
    """(file size, bytes of digests, longest stretch no digest covered, its file size)."""
    pace = DigestPace()
    end = digests = covered = 0
    walks = []
    for number in range(1, num_chunks + 1):
        end += chunk_bytes
        walks.append((end - covered, end))
        if pace.is_due(end):
            size = digest_bytes(number)
            if pace.admits(size, end):
                end += size
                digests += size
                covered = end
                pace.written(end)
    return end, digests, walks


@pytest.mark.parametrize("chunk_bytes", [450, 8 * KIB, 300 * KIB])
@pytest.mark.parametrize(
    "digest_bytes",
    [
        lambda n: 2 * KIB,
        lambda n: min(10 * KIB + 30 * n, 60 * KIB),  # a rollup that fills up
        lambda n: 10 * KIB + 40 * (n % 1000),  # one that widens and fills up again
    ],
)
def test_digests_are_a_bounded_share_and_leave_a_bounded_rest(
    chunk_bytes, digest_bytes
):
    num_chunks = 100 * MIB // chunk_bytes
    end, digests, walks = written_file(chunk_bytes, digest_bytes, num_chunks)
    largest = max(map(digest_bytes, range(1, num_chunks + 1)))
    assert 0 < digests <= end / (SHARE + 1)
    for walk, size in walks:
        assert walk <= max(64 * KIB, SHARE * largest, size / 8) + chunk_bytes


def test_a_digest_that_is_too_big_waits_and_is_not_encoded_again_and_again():
    pace, encoded, end = DigestPace(), 0, 0
    while True:
        end += 500
        if pace.is_due(end):
            encoded += 1
            if pace.admits(100 * KIB, end):
                break
    assert encoded == 2
    assert SHARE * 100 * KIB <= end < SHARE * 100 * KIB + 500


def test_the_end_and_rows_without_chunks_have_digests_whatever_their_size():
    pace = DigestPace()
    assert not pace.is_due(100)
    pace.flush_soon()
    assert pace.is_due(100)
    assert pace.admits(MIB, 100)
    pace.written(100 + MIB)
    assert not pace.is_due(200 + MIB)

    covered = []
    for number in range(1, 20_001):
        pace.roll_up(1)
        if pace.is_due(200 + MIB):
            assert pace.admits(MIB, 200 + MIB)
            pace.written(200 + MIB)
            covered.append(number)
    assert covered[0] == 1024
    assert all(b >= 1.25 * a for a, b in itertools.pairwise(covered))
    assert covered[-1] > 20_000 / 1.3
