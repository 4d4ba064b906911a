"""The recorded history tells all: replaying it gives the allocator's state."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulate.allocator.allocator import (
    CachingAllocator,
    SimulatedOutOfMemoryError,
)
from tests.simulate.allocator.blocks import NO_SITE
from tests.simulate.allocator.settings import MIB, AllocatorSettings
from tests.simulate.allocator_checks import CAPACITY, OPERATIONS, apply
from tests.simulate.history.history import (
    ACTIONS,
    ALLOC,
    FREE_COMPLETED,
    FREE_REQUESTED,
    OOM,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    STARTED_US,
    History,
)
from tests.simulate.history.sites import Frame, Site, Sites

BOTH = st.sampled_from(
    [AllocatorSettings(), AllocatorSettings(expandable_segments=True)]
)


class Replay:
    """An allocator's state from its history alone."""

    def __init__(self, history: History) -> None:
        self.live: dict[int, int] = {}
        self.pending: dict[int, int] = {}
        self.segments: dict[int, int] = {}
        self.pages: set[int] = set()
        self.num_ooms = 0
        for entry in history.entries():
            self.take(entry.action, entry.address, entry.size_bytes)

    def take(self, action: int, address: int, size: int) -> None:
        if action == ALLOC:
            assert address not in self.live
            assert address not in self.pending
            self.live[address] = size
        elif action == FREE_REQUESTED:
            assert self.live.pop(address) == size
            self.pending[address] = size
        elif action == FREE_COMPLETED:
            assert self.pending.pop(address) == size
        elif action == SEGMENT_ALLOC:
            assert address not in self.segments
            self.segments[address] = size
        elif action == SEGMENT_FREE:
            assert self.segments.pop(address) == size
        elif action == SEGMENT_MAP:
            pages = set(range(address, address + size, 2 * MIB))
            assert not pages & self.pages
            self.pages |= pages
        elif action == SEGMENT_UNMAP:
            pages = set(range(address, address + size, 2 * MIB))
            assert pages <= self.pages
            self.pages -= pages
        elif action == OOM:
            self.num_ooms += 1


@given(BOTH, OPERATIONS)
def test_replaying_gives_the_segments_and_blocks(chosen, operations):
    history = History()
    allocator = CachingAllocator(CAPACITY, chosen, history=history)
    live: list = []
    for operation in operations:
        apply(allocator, live, operation)
    replay = Replay(history)
    blocks = [b for one in allocator.segments.values() for b in one.blocks()]
    held = {b.address: b.requested_bytes for b in blocks if b.allocated}
    waiting = {
        b.address: b.requested_bytes
        for b in blocks
        if b.mapped and not b.allocated and not b.is_free
    }
    assert replay.live == held
    assert replay.pending == waiting
    assert replay.num_ooms == allocator.num_ooms
    runs = [
        (run[0].address, sum(b.size_bytes for b in run))
        for segment in allocator.segments.values()
        for run in segment.mapped_runs()
    ]
    if chosen.expandable_segments:
        pages = {p for at, size in runs for p in range(at, at + size, 2 * MIB)}
        assert replay.pages == pages
    else:
        assert replay.segments == dict(runs)


@given(OPERATIONS)
def test_recording_changes_nothing(operations):
    rows = []
    for history in (None, History(), History(10)):
        allocator = CachingAllocator(CAPACITY, history=history)
        live: list = []
        for operation in operations:
            apply(allocator, live, operation)
        rows.append((allocator.stats.row(), sorted(allocator.segments)))
    assert rows[0] == rows[1] == rows[2]


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


def test_entries_of_one_call():
    history, sites = History(), Sites()
    allocator = CachingAllocator(100 * MIB, history=history)
    here = sites.number(Site((Frame("f", "a.py", 1),)))
    history.site = here
    block = allocator.allocate(3 * MIB)
    allocator.record_stream(block, 1)
    history.site = NO_SITE
    history.now_us += 50
    allocator.free(block)
    allocator.synchronize(1)
    with pytest.raises(SimulatedOutOfMemoryError):
        allocator.allocate(110 * MIB + 1, stream=1)
    rows = [
        (ACTIONS[e.action], e.size_bytes, e.stream, e.capture, e.site, e.time_us)
        for e in history.entries()
    ]
    at = STARTED_US
    assert rows == [
        ("segment_alloc", 20 * MIB, 0, 1, here, at + 1),
        ("alloc", 3 * MIB, 0, 1, here, at + 2),
        ("free_requested", 3 * MIB, 0, 2, NO_SITE, at + 53),
        # The call that fails notices what has finished, and gives the segment back.
        ("free_completed", 3 * MIB, 0, 3, NO_SITE, at + 54),
        ("segment_free", 20 * MIB, 0, 3, NO_SITE, at + 55),
        ("oom", 110 * MIB + 512, 1, 3, NO_SITE, at + 56),
    ]
    assert list(history.entries())[-1].address == 100 * MIB


def test_equal_sites_have_one_number():
    sites = Sites()
    frames = (Frame("f", "a.py", 1), Frame("g", "b.py", 2))
    assert sites.number(Site(frames)) == sites.number(Site((*frames,)))
    assert sites.number(Site(frames, "tagged")) == 1
    assert sites[1].user_metadata == "tagged"
    assert sites[NO_SITE].frames == ()
    assert len(sites) == 2


def test_pools_are_named_by_their_ids():
    history = History()
    allocator = CachingAllocator(CAPACITY, history=history)
    for pool in (None, (0, 1), (3, 0), None, (0, 1)):
        allocator.use_pool(pool)
        allocator.allocate(512)
    pools = [history.pool_ids[e.pool] for e in history.entries() if e.action == ALLOC]
    assert pools == [(0, 0), (0, 1), (3, 0), (0, 0), (0, 1)]
