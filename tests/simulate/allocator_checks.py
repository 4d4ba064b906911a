"""What must hold of an allocator at any time, by walking all that it has."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

from hypothesis import strategies as st

from tests.simulate.allocator.allocator import (
    CachingAllocator,
    SimulatedOutOfMemoryError,
)
from tests.simulate.allocator.settings import MIB
from tests.simulate.allocator.stats import (
    ACTIVE,
    ALLOCATED,
    INACTIVE_SPLIT,
    LARGE,
    REQUESTED,
    RESERVED,
    SMALL,
    TOTAL,
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
ANY = st.integers(0, 10**6)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), SIZES, st.integers(0, 1)),
        st.tuples(st.just("allocate"), SIZES, st.just(0)),
        st.tuples(st.just("free"), ANY, st.just(0)),
        st.tuples(st.just("record_stream"), ANY, st.integers(0, 2)),
        st.tuples(st.just("synchronize"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("empty_cache"), st.just(0), st.just(0)),
        st.tuples(st.just("use_pool"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("release_pool"), st.integers(1, 2), st.just(0)),
    ),
    max_size=120,
)


def apply(allocator: CachingAllocator, live: list, operation: tuple) -> None:
    """One of `OPERATIONS`; checks what it says of itself."""
    name, number, stream = operation
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
    elif name == "use_pool":
        allocator.use_pool((0, number) if number else None)
    elif name == "release_pool":
        allocator.release_pool((0, number))


def count(allocator: CachingAllocator) -> Counter[tuple[int, int]]:
    """Every statistic by walking all blocks of all segments."""
    totals: Counter[tuple[int, int]] = Counter()
    for segment in allocator.segments.values():
        blocks = [block for block in segment.blocks() if block.mapped]
        for pool in (TOTAL, segment.pool):
            for block in blocks:
                totals[pool, RESERVED] += block.size_bytes
                if block.allocated:
                    totals[pool, ALLOCATED] += block.size_bytes
                if not block.is_free:
                    totals[pool, ACTIVE] += block.size_bytes
                    totals[pool, REQUESTED] += block.requested_bytes
                elif len(blocks) > 1 and not segment.page_bytes:
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
    assert stats.get(RESERVED) == allocator.device.reserved_bytes
    assert stats.get(RESERVED) <= allocator.capacity_bytes
    end = 0
    for segment in sorted(allocator.segments.values(), key=lambda s: s.address):
        assert segment.address >= end, "segments overlap"
        end = segment.address + segment.size_bytes
        check_blocks(segment)
    check_lists(allocator)


def check_blocks(segment) -> None:
    at, before = segment.address, None
    for block in segment.blocks():
        assert block.address == at, "blocks leave a gap or overlap"
        assert block.size_bytes % 512 == 0
        assert block.size_bytes > 0
        assert block.previous is before
        assert block.is_free == (
            block.mapped and not block.allocated and not block.pending_streams
        )
        if before is not None:
            both_free = before.is_free and block.is_free
            assert not both_free, "free neighbours were not merged"
            assert before.mapped or block.mapped, "unmapped neighbours were not merged"
        if not block.mapped:
            assert (block.address - segment.address) % segment.page_bytes == 0
            assert block.size_bytes % segment.page_bytes == 0
        at, before = at + block.size_bytes, block
    assert at == segment.address + segment.size_bytes, (
        "blocks do not fill their segment"
    )


def check_lists(allocator: CachingAllocator) -> None:
    """The lists of free and of unmapped blocks hold just these, in order."""
    listed = [entry for arena in allocator.arenas() for entry in arena.free]
    blocks = [block for s in allocator.segments.values() for block in s.blocks()]
    assert {id(entry[2]) for entry in listed} == {id(b) for b in blocks if b.is_free}
    for arena in allocator.arenas():
        assert arena.free == sorted(arena.free, key=lambda entry: entry[:2])
        for size, place, block in arena.free:
            assert (size, place) == (block.size_bytes, block.place)
            assert block.arena is arena
        unmapped = {id(b) for b in blocks if not b.mapped and b.arena is arena}
        assert {id(block) for _, block in arena.unmapped} == unmapped
