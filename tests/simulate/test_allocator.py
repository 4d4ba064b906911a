"""The allocator model against a brute-force count, and against torch's known numbers.

Operation by operation `tests/virtual/test_allocator_model.py` holds it, and the history it
writes, against torch's own.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulate.allocator.allocator import (
    CachingAllocator,
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
from tests.simulate.history.history import STARTED_US, History

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


@given(OPERATIONS, st.integers(0, 60))
def test_a_ring_keeps_the_last_entries(operations, size):
    kept, ring = History(), History(size)
    for history in (kept, ring):
        allocator = CachingAllocator(CAPACITY, history=history)
        live: list = []
        for operation in operations:
            apply(allocator, live, operation)
    everything = list(kept.entries())
    assert len(kept) == kept.num_recorded == ring.num_recorded == len(everything)
    assert len(ring) == min(size, len(everything))
    assert list(ring.entries()) == everything[len(everything) - len(ring) :]


def test_a_long_ring_holds_little_more_than_it_keeps():
    history = History(1000)
    allocator = CachingAllocator(1 << 30, history=history)
    for _ in range(30_000):
        allocator.free(allocator.allocate(1000))
    assert history.num_recorded == 90_001
    entries = list(history.entries())
    assert len(entries) == len(history) == 1000
    assert [entry.capture for entry in entries[-3:]] == [59_999, 60_000, 60_000]
    times = [entry.time_us for entry in entries]
    assert times == list(range(STARTED_US + 89_002, STARTED_US + 90_002))
