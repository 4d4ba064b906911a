"""Expandable segments: small scenarios worked out by hand from torch's documentation."""

from __future__ import annotations

import pytest

from tests.simulate.allocator.allocator import (
    CachingAllocator,
    SimulatedOutOfMemoryError,
)
from tests.simulate.allocator.settings import MIB, AllocatorSettings
from tests.simulate.allocator.stats import INACTIVE_SPLIT, RESERVED
from tests.simulate.allocator_checks import check
from tests.simulate.history.history import ACTIONS, History


def expandable(capacity: int, history: History | None = None) -> CachingAllocator:
    settings = AllocatorSettings(expandable_segments=True)
    return CachingAllocator(capacity, settings, history=history)


def events(history: History) -> list[tuple[str, int]]:
    return [(ACTIONS[entry.action], entry.size_bytes) for entry in history.entries()]


def test_large_blocks_follow_each_other_in_pages_of_20_mebibytes():
    history = History()
    allocator = expandable(400 * MIB, history)
    first = allocator.allocate(30 * MIB)
    second = allocator.allocate(25 * MIB)
    third = allocator.allocate(5 * MIB)
    # 30 MiB need two pages, whose last 10 MiB the second block uses before a third.
    assert second.address == first.address + 30 * MIB
    assert third.address == second.address + 25 * MIB
    assert events(history) == [
        ("segment_map", 40 * MIB),
        ("alloc", 30 * MIB),
        ("segment_map", 20 * MIB),
        ("alloc", 25 * MIB),
        ("alloc", 5 * MIB),
    ]
    assert allocator.stats.get(RESERVED) == 60 * MIB
    (segment,) = allocator.segments.values()
    assert segment.size_bytes == 460 * MIB  # nine eighths of 400, in whole pages
    check(allocator)


def test_small_blocks_have_a_segment_of_their_own_in_pages_of_2_mebibytes():
    allocator = expandable(400 * MIB)
    allocator.allocate(MIB)
    allocator.allocate(MIB)
    allocator.allocate(512)
    allocator.allocate(3 * MIB)
    assert allocator.stats.get(RESERVED) == 4 * MIB + 20 * MIB
    assert len(allocator.segments) == 2
    assert allocator.stats.get(INACTIVE_SPLIT) == 0


def test_empty_cache_unmaps_the_whole_pages_of_free_blocks():
    history = History()
    allocator = expandable(400 * MIB, history)
    blocks = [allocator.allocate(30 * MIB) for _ in range(3)]
    allocator.free(blocks[1])
    base = blocks[0].address
    allocator.empty_cache()
    # Free: 30 to 60 MiB, with the page from 40 to 60 whole; and 90 to 100, with none.
    assert events(history)[-1] == ("segment_unmap", 20 * MIB)
    assert list(history.entries())[-1].address == base + 40 * MIB
    assert allocator.stats.get(RESERVED) == 80 * MIB
    (segment,) = allocator.segments.values()
    runs = [[b.size_bytes // MIB for b in run] for run in segment.mapped_runs()]
    assert runs == [[30, 10], [30, 10]]
    check(allocator)
    # The hole is mapped again for a block that fits there: it needs 30 of 10 + 20.
    again = allocator.allocate(30 * MIB)
    assert again.address == base + 30 * MIB
    assert allocator.stats.get(RESERVED) == 100 * MIB
    check(allocator)


def test_a_segment_without_pages_goes():
    allocator = expandable(400 * MIB)
    allocator.free(allocator.allocate(50 * MIB))
    assert allocator.stats.get(RESERVED) == 60 * MIB
    allocator.empty_cache()
    assert allocator.segments == {}
    assert allocator.stats.get(RESERVED) == 0
    check(allocator)


def test_holes_that_make_a_plain_allocator_fail_are_mapped_elsewhere():
    plain, growing = CachingAllocator(160 * MIB), expandable(160 * MIB)
    for allocator in (plain, growing):
        allocator.free(allocator.allocate(120 * MIB))
        held = [allocator.allocate(30 * MIB) for _ in range(4)]
        allocator.free(held[0])
        allocator.free(held[2])
    # Two holes of 30 MiB, and 40 MiB on the device.
    with pytest.raises(SimulatedOutOfMemoryError) as caught:
        plain.allocate(50 * MIB)
    assert caught.value.free_bytes == 40 * MIB
    # Each hole has one whole page of 20 MiB, which the retry unmaps.
    assert growing.allocate(50 * MIB).address == held[3].address + 30 * MIB
    assert (growing.num_alloc_retries, growing.num_ooms) == (1, 0)
    assert growing.stats.get(RESERVED) == 140 * MIB
    check(growing)


def test_a_retry_unmaps_cached_pages_of_the_other_pool():
    allocator = expandable(100 * MIB)
    small = [allocator.allocate(MIB) for _ in range(20)]
    for block in small:
        allocator.free(block)
    assert allocator.stats.get(RESERVED) == 20 * MIB
    allocator.allocate(90 * MIB)
    assert allocator.stats.get(RESERVED) == 100 * MIB
    assert (allocator.num_alloc_retries, allocator.num_ooms) == (1, 0)
    check(allocator)


def test_a_block_that_cannot_grow_is_preferred_to_one_in_front_of_room():
    allocator = expandable(400 * MIB)
    first = allocator.allocate(44 * MIB)
    pin = allocator.allocate(6 * MIB)
    last = allocator.allocate(30 * MIB)  # ends where the mapped pages end
    middle = first.address
    allocator.free(first)  # 44 MiB, followed by the pin
    allocator.free(last)  # 30 MiB, followed by all the room there is
    # 30 is the best fit by size; but with its room it counts as more than 44.
    assert allocator.allocate(28 * MIB).address == middle
    assert pin.allocated
    check(allocator)
