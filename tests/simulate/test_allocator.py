"""The allocator model against a brute-force count, and against torch's known numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulate.allocator.allocator import (
    CachingAllocator,
    SimulatedOutOfMemoryError,
)
from tests.simulate.allocator.device import DeviceMemory
from tests.simulate.allocator.settings import MIB, AllocatorSettings
from tests.simulate.allocator.stats import (
    ACTIVE,
    ALLOCATED,
    INACTIVE_SPLIT,
    LARGE,
    REQUESTED,
    RESERVED,
    SMALL,
    row_names,
)
from tests.simulate.allocator_checks import (
    CAPACITY,
    OPERATIONS,
    apply,
    check,
)

SETTINGS = st.one_of(
    st.just(AllocatorSettings()),
    st.builds(
        AllocatorSettings,
        max_split_bytes=st.sampled_from([21 * MIB, 32 * MIB, 64 * MIB]),
        roundup_power2_divisions=st.sampled_from([(0,) * 16, (4,) * 16]),
        garbage_collection_threshold=st.sampled_from([0.0, 0.3, 0.8]),
    ),
    st.builds(
        AllocatorSettings,
        expandable_segments=st.just(True),
        roundup_power2_divisions=st.sampled_from([(0,) * 16, (8,) * 16]),
    ),
)


@given(SETTINGS, st.sampled_from([None, 0.4]), OPERATIONS)
def test_statistics_equal_a_walk_over_all_blocks_after_every_operation(
    chosen, fraction, operations
):
    device = DeviceMemory(CAPACITY, memory_fraction=fraction)
    allocator = CachingAllocator(CAPACITY, chosen, device=device)
    live = []
    for operation in operations:
        apply(allocator, live, operation)
        check(allocator)
        assert device.reserved_bytes <= (fraction or 1) * CAPACITY
    for block in live:
        allocator.free(block)
    allocator.use_pool(None)
    allocator.empty_cache()
    check(allocator)
    for stat in (ALLOCATED, ACTIVE, REQUESTED, INACTIVE_SPLIT):
        assert allocator.stats.get(stat) == 0
    for pool in (1, 2):
        allocator.release_pool((0, pool))
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
    assert allocator.stats.get(ACTIVE) == 60 * MIB, "the next allocation notices"
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


def test_what_is_not_torch_s_leaves_less_for_segments():
    device = DeviceMemory(100 * MIB, non_torch_bytes=30 * MIB)
    allocator = CachingAllocator(100 * MIB, device=device)
    allocator.allocate(60 * MIB)
    assert device.free_bytes == 10 * MIB
    device.non_torch_bytes += 4 * MIB
    with pytest.raises(SimulatedOutOfMemoryError) as caught:
        allocator.allocate(8 * MIB)
    # 8 MiB would come from a segment of 20 MiB.
    assert (caught.value.requested_bytes, caught.value.free_bytes) == (8 * MIB, 6 * MIB)


def test_a_memory_fraction_fails_requests_the_device_could_serve():
    device = DeviceMemory(100 * MIB, memory_fraction=0.5)
    allocator = CachingAllocator(100 * MIB, device=device)
    allocator.allocate(40 * MIB)
    with pytest.raises(SimulatedOutOfMemoryError) as caught:
        allocator.allocate(12 * MIB)
    assert caught.value.free_bytes == 60 * MIB
    allocator.allocate(10 * MIB)


def test_a_private_pool_keeps_its_memory_until_it_is_released():
    allocator = CachingAllocator(100 * MIB)
    allocator.use_pool((0, 1))
    allocator.free(allocator.allocate(60 * MIB))
    allocator.use_pool(None)
    allocator.empty_cache()
    assert allocator.stats.get(RESERVED) == 60 * MIB
    # It fits into the free block, but that belongs to the pool.
    with pytest.raises(SimulatedOutOfMemoryError) as caught:
        allocator.allocate(50 * MIB)
    assert caught.value.free_bytes == 40 * MIB
    allocator.use_pool((0, 1))
    reused = allocator.allocate(50 * MIB)
    assert allocator.stats.get(RESERVED) == 60 * MIB
    allocator.free(reused)
    allocator.use_pool(None)
    allocator.release_pool((0, 1))
    assert allocator.allocate(50 * MIB).arena.pool_id == (0, 0)
    assert (allocator.num_alloc_retries, allocator.num_ooms) == (2, 1)


def test_a_device_address_serves_the_next_request_of_its_size():
    allocator = CachingAllocator(100 * MIB)
    block = allocator.allocate(30 * MIB)
    address = block.address
    allocator.free(block)
    allocator.empty_cache()
    assert allocator.allocate(32 * MIB).address != address
    assert allocator.allocate(30 * MIB).address == address


@pytest.mark.parametrize(
    ("rest", "num_blocks"), [(MIB, 1), (MIB + 512, 2), (5 * MIB, 2)]
)
def test_a_rest_of_more_than_1_mebibyte_is_split_off_in_the_large_pool(
    rest, num_blocks
):
    allocator = CachingAllocator(CAPACITY)
    allocator.free(allocator.allocate(30 * MIB))
    allocator.allocate(30 * MIB - rest)
    (segment,) = allocator.segments.values()
    assert len(list(segment.blocks())) == num_blocks


def test_a_rest_of_512_bytes_is_split_off_in_the_small_pool():
    allocator = CachingAllocator(CAPACITY)
    first = allocator.allocate(MIB)
    second = allocator.allocate(MIB - 512)
    (segment,) = allocator.segments.values()
    assert [b.size_bytes for b in segment.blocks()] == [MIB, MIB - 512, 512]
    assert second.address == first.address + MIB


def test_misuse_is_refused():
    allocator = CachingAllocator(CAPACITY)
    block = allocator.allocate(1)
    allocator.free(block)
    with pytest.raises(ValueError, match="not allocated"):
        allocator.free(block)
    with pytest.raises(ValueError, match="at least one"):
        allocator.allocate(0)
