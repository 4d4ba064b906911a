"""The allocator model against a brute-force count, and against torch's known numbers."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.simulate.allocator import (
    CachingAllocator,
    SimulatedOutOfMemoryError,
)
from collector.simulate.allocator_settings import MIB
from collector.simulate.stats import (
    ACTIVE,
    ALLOCATED,
    INACTIVE_SPLIT,
    LARGE,
    REQUESTED,
    RESERVED,
    SMALL,
    TOTAL,
    row_names,
)

CAPACITY = 600 * MIB

# Sizes around every border the allocator draws, and between them.
SIZES = st.one_of(
    st.integers(1, 4096),
    st.integers(MIB - 600, MIB + 600),
    st.integers(1, 12 * MIB),
    st.integers(10 * MIB - 600, 10 * MIB + 600),
    st.integers(10 * MIB, 90 * MIB),
)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), SIZES, st.integers(0, 1)),
        st.tuples(st.just("free"), st.integers(0, 10**6), st.just(0)),
        st.tuples(st.just("record_stream"), st.integers(0, 10**6), st.integers(0, 2)),
        st.tuples(st.just("synchronize"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("empty_cache"), st.just(0), st.just(0)),
    ),
    max_size=120,
)


def count(allocator: CachingAllocator) -> Counter[tuple[int, int]]:
    """Every statistic by walking all blocks of all segments."""
    totals: Counter[tuple[int, int]] = Counter()
    for segment in allocator.segments.values():
        blocks = list(segment.blocks())
        for pool in (TOTAL, segment.pool):
            totals[pool, RESERVED] += segment.size_bytes
            for block in blocks:
                if block.allocated:
                    totals[pool, ALLOCATED] += block.size_bytes
                if not block.is_free:
                    totals[pool, ACTIVE] += block.size_bytes
                    totals[pool, REQUESTED] += block.requested_bytes
                elif len(blocks) > 1:
                    totals[pool, INACTIVE_SPLIT] += block.size_bytes
    return totals


def check(allocator: CachingAllocator) -> None:
    stats = allocator.stats
    expected = count(allocator)
    for pool in (TOTAL, SMALL, LARGE):
        for stat in (ALLOCATED, ACTIVE, RESERVED, INACTIVE_SPLIT, REQUESTED):
            assert stats.get(stat, pool) == expected[pool, stat], (pool, stat)
            assert stats.get_peak(stat, pool) >= stats.get(stat, pool)
        assert stats.get(ALLOCATED, pool) <= stats.get(ACTIVE, pool)
        assert stats.get(REQUESTED, pool) <= stats.get(ACTIVE, pool)
        in_use = stats.get(ACTIVE, pool) + stats.get(INACTIVE_SPLIT, pool)
        assert in_use <= stats.get(RESERVED, pool)
    assert stats.get(RESERVED) <= allocator.capacity_bytes
    end = 0
    for segment in sorted(allocator.segments.values(), key=lambda s: s.address):
        assert segment.address >= end, "segments overlap"
        end = segment.address + segment.size_bytes
        at, was_free = segment.address, False
        for block in segment.blocks():
            assert block.address == at, "blocks leave a gap or overlap"
            assert block.size_bytes % 512 == 0
            assert block.size_bytes > 0
            assert not (was_free and block.is_free), "free neighbours were not merged"
            at, was_free = at + block.size_bytes, block.is_free
        assert at == end, "blocks do not fill their segment"


@settings(max_examples=150, deadline=None)
@given(OPERATIONS)
def test_statistics_equal_a_walk_over_all_blocks_after_every_operation(operations):
    allocator = CachingAllocator(CAPACITY)
    live = []
    for name, number, stream in operations:
        if name == "allocate":
            ooms = allocator.num_ooms
            with suppress(SimulatedOutOfMemoryError):
                live.append(allocator.allocate(number, stream))
                assert live[-1].size_bytes >= number
                ooms -= 1
            assert allocator.num_ooms == ooms + 1
        elif name == "free" and live:
            allocator.free(live.pop(number % len(live)))
        elif name == "record_stream" and live:
            allocator.record_stream(live[number % len(live)], stream)
        elif name == "synchronize":
            allocator.synchronize(number)
        elif name == "empty_cache":
            allocator.empty_cache()
        check(allocator)
    for block in live:
        allocator.free(block)
    for stream in range(3):
        allocator.synchronize(stream)
    check(allocator)
    for stat in (ALLOCATED, ACTIVE, REQUESTED, INACTIVE_SPLIT):
        assert allocator.stats.get(stat) == 0
    allocator.empty_cache()
    assert allocator.stats.get(RESERVED) == 0
    assert allocator.segments == {}


@pytest.mark.parametrize(
    ("asked", "block", "segment", "pool"),
    [
        (1, 512, 2 * MIB, SMALL),
        (513, 1024, 2 * MIB, SMALL),
        (MIB, MIB, 2 * MIB, SMALL),
        (MIB + 1, MIB + 512, 20 * MIB, LARGE),
        (10 * MIB - 512, 10 * MIB - 512, 20 * MIB, LARGE),
        (10 * MIB, 10 * MIB, 10 * MIB, LARGE),
        # A rest of up to 1 MiB is not worth a block of its own in the large pool.
        (11 * MIB, 12 * MIB, 12 * MIB, LARGE),
        (11 * MIB - 512, 11 * MIB - 512, 12 * MIB, LARGE),
    ],
)
def test_one_request_gets_torch_s_block_and_segment(asked, block, segment, pool):
    allocator = CachingAllocator(CAPACITY)
    got = allocator.allocate(asked)
    assert got.size_bytes == block
    assert allocator.stats.get(RESERVED, pool) == segment
    assert allocator.stats.get(RESERVED) == segment
    assert allocator.stats.get(REQUESTED) == asked
    assert allocator.stats.get(INACTIVE_SPLIT) == segment - block


def test_the_smallest_block_that_fits_is_taken():
    allocator = CachingAllocator(CAPACITY)
    wide = allocator.allocate(60 * MIB)
    narrow = allocator.allocate(30 * MIB)
    address = narrow.address
    allocator.free(wide)
    allocator.free(narrow)
    assert allocator.allocate(28 * MIB).address == address
    assert allocator.stats.get(RESERVED) == 90 * MIB


def test_a_full_device_gives_its_cache_back_once_before_it_fails():
    allocator = CachingAllocator(40 * MIB)
    cached = allocator.allocate(20 * MIB)
    allocator.free(cached)
    kept = allocator.allocate(30 * MIB)
    assert (allocator.num_alloc_retries, allocator.num_ooms) == (1, 0)
    assert allocator.stats.get(RESERVED) == 30 * MIB
    with pytest.raises(SimulatedOutOfMemoryError) as caught:
        allocator.allocate(12 * MIB)
    assert caught.value.free_bytes == 10 * MIB
    assert caught.value.requested_bytes == 12 * MIB
    assert (allocator.num_alloc_retries, allocator.num_ooms) == (2, 1)
    allocator.free(kept)
    assert allocator.allocate(12 * MIB).size_bytes == 12 * MIB


def test_a_block_another_stream_uses_stays_active_until_that_stream_is_done():
    allocator = CachingAllocator(CAPACITY)
    block = allocator.allocate(30 * MIB)
    allocator.record_stream(block, 1)
    allocator.free(block)
    assert allocator.stats.get(ALLOCATED) == 0
    assert allocator.stats.get(ACTIVE) == 30 * MIB
    assert allocator.allocate(30 * MIB) is not block
    allocator.synchronize(1)
    assert allocator.stats.get(ACTIVE) == 30 * MIB
    assert allocator.allocate(30 * MIB) is block


def test_streams_do_not_share_blocks():
    allocator = CachingAllocator(CAPACITY)
    allocator.free(allocator.allocate(30 * MIB, stream=0))
    allocator.allocate(30 * MIB, stream=1)
    assert allocator.stats.get(RESERVED) == 60 * MIB


def test_peaks_restart_from_the_current_values():
    allocator = CachingAllocator(CAPACITY)
    allocator.free(allocator.allocate(30 * MIB))
    kept = allocator.allocate(512)
    assert allocator.stats.get_peak(ALLOCATED) == 30 * MIB
    allocator.stats.reset_peaks()
    assert allocator.stats.get_peak(ALLOCATED) == kept.size_bytes == 512
    assert allocator.stats.get_peak(RESERVED) == 32 * MIB


def test_a_row_holds_current_and_peak_by_name():
    allocator = CachingAllocator(CAPACITY)
    allocator.free(allocator.allocate(3 * MIB))
    allocator.allocate(100)
    row = dict(zip(row_names(), allocator.stats.row(), strict=True))
    assert row["allocated_bytes"] == 512
    assert row["allocated_peak_bytes"] == 3 * MIB
    assert row["requested_small_pool_bytes"] == 100
    assert row["reserved_large_pool_bytes"] == 20 * MIB
    assert row["reserved_bytes"] == 22 * MIB


def test_misuse_is_refused():
    allocator = CachingAllocator(CAPACITY)
    block = allocator.allocate(1)
    allocator.free(block)
    with pytest.raises(ValueError, match="not allocated"):
        allocator.free(block)
    with pytest.raises(ValueError, match="at least one"):
        allocator.allocate(0)
