"""How cached memory goes back: scenarios worked out by hand."""

from __future__ import annotations

import pytest

from tests.simulate.allocator.allocator import (
    CachingAllocator,
    SimulatedOutOfMemoryError,
)
from tests.simulate.allocator.device import DeviceMemory
from tests.simulate.allocator.settings import MIB, AllocatorSettings
from tests.simulate.allocator_checks import check


def limited(capacity: int, **chosen) -> CachingAllocator:
    device = DeviceMemory(capacity, memory_fraction=1.0)
    return CachingAllocator(capacity, AllocatorSettings(**chosen), device=device)


def segments(allocator: CachingAllocator) -> list[int]:
    return sorted(one.size_bytes // MIB for one in allocator.segments.values())


def test_blocks_above_the_split_limit_are_neither_split_nor_lent():
    allocator = CachingAllocator(
        1000 * MIB, AllocatorSettings(max_split_bytes=64 * MIB)
    )
    large = allocator.allocate(100 * MIB)
    allocator.free(large)
    # A smaller request does not get it, nor one that it exceeds by 20 MiB or more.
    assert allocator.allocate(30 * MIB) is not large
    assert allocator.allocate(80 * MIB) is not large
    assert segments(allocator) == [30, 80, 100]
    # One that it exceeds by less gets all of it.
    assert allocator.allocate(82 * MIB) is large
    assert large.size_bytes == 100 * MIB
    check(allocator)


def test_blocks_below_the_split_limit_are_split_as_ever():
    allocator = CachingAllocator(
        1000 * MIB, AllocatorSettings(max_split_bytes=64 * MIB)
    )
    block = allocator.allocate(60 * MIB)
    allocator.free(block)
    assert allocator.allocate(30 * MIB).address == block.address
    assert segments(allocator) == [60]


def test_one_oversize_block_makes_room_before_all_of_the_cache_does():
    allocator = CachingAllocator(300 * MIB, AllocatorSettings(max_split_bytes=64 * MIB))
    for held in [allocator.allocate(size * MIB) for size in (70, 90, 130)]:
        allocator.free(held)
    allocator.allocate(50 * MIB)
    # The smallest of those that may not be lent: 70 MiB, once, without a retry.
    assert segments(allocator) == [50, 90, 130]
    assert allocator.num_alloc_retries == 0


def test_several_oversize_blocks_make_room_largest_first():
    allocator = CachingAllocator(300 * MIB, AllocatorSettings(max_split_bytes=64 * MIB))
    for held in [allocator.allocate(size * MIB) for size in (70, 90, 130)]:
        allocator.free(held)
    allocator.allocate(200 * MIB)
    assert segments(allocator) == [70, 200]
    assert allocator.num_alloc_retries == 0


def test_collection_needs_a_memory_fraction_as_torch_s_does():
    chosen = AllocatorSettings(garbage_collection_threshold=0.5)
    free_for_all, fractioned = (
        CachingAllocator(200 * MIB, chosen),
        limited(200 * MIB, garbage_collection_threshold=0.5),
    )
    for allocator in (free_for_all, fractioned):
        allocator.free(allocator.allocate(120 * MIB))
        for _ in range(3):
            allocator.free(allocator.allocate(30 * MIB))
        held = [allocator.allocate(100 * MIB)]
        allocator.free(held.pop())
        # Nothing fits 130 MiB: above half of the device, cached segments are collected.
        allocator.allocate(130 * MIB)
    assert free_for_all.num_alloc_retries == 1
    assert fractioned.num_alloc_retries == 0
    assert segments(fractioned) == [130]


def test_only_the_older_half_goes_while_it_suffices():
    allocator = limited(400 * MIB, garbage_collection_threshold=0.5)
    blocks = [allocator.allocate(size * MIB) for size in (100, 80, 60)]
    for block in blocks:
        allocator.free(block)
    for _ in range(5):
        allocator.free(allocator.allocate(55 * MIB))  # keeps the 60 young
    # 240 MiB are reserved, 40 above the threshold. Ages: 6, 6 and 1; the mean is 4.33.
    allocator.allocate(130 * MIB)
    assert segments(allocator) == [60, 130]
    assert allocator.num_alloc_retries == 0


def test_a_retry_waits_for_streams_and_spares_split_segments():
    allocator = CachingAllocator(100 * MIB)
    first, second = allocator.allocate(40 * MIB), allocator.allocate(20 * MIB)
    small = allocator.allocate(4 * MIB)
    allocator.record_stream(first, 1)
    allocator.free(first)
    allocator.free(second)
    assert segments(allocator) == [20, 20, 40]
    # Pending until the retry waits for the stream; the segment of 4 MiB stays.
    allocator.allocate(70 * MIB)
    assert segments(allocator) == [20, 70]
    assert allocator.num_sync_all_streams == 1
    assert small.allocated
    with pytest.raises(SimulatedOutOfMemoryError):
        allocator.allocate(17 * MIB)
    check(allocator)
