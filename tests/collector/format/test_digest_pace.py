"""Digests stay a small share of the file, and what no digest covers stays small too."""

from __future__ import annotations

import itertools

import pytest

from collector.format.rollup import SHARE, DigestPace

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
