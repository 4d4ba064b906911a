"""What is free at a moment: how much, in which pieces, for whom, and who pins it.

The allocator keeps free blocks apart by *arena*: a request finds only those of its own
memory pool, stream and size class (small: up to 1 MiB). Free memory of another arena is
of no use to it until a whole segment is given back to the device, which `empty_cache`
and a retry before an out-of-memory error do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.allocator.rounding import (
    LARGE_SEGMENT_BYTES,
    SMALL_BYTES,
    SMALL_SEGMENT_BYTES,
)
from tb_plugin.analysis.arrays import NOTHING, Table, grouped, highest, numbered, sums
from tb_plugin.analysis.snapshots.snapshot import INACTIVE

if TYPE_CHECKING:
    from tb_plugin.analysis.allocator.rounding import Rounding
    from tb_plugin.analysis.allocator.segments import SegmentState
    from tb_plugin.analysis.arrays import Flags, Ints


_FIRST_LOG2: Final = 9


@dataclass(frozen=True, slots=True)
class FreeHistogram:
    """Free blocks by size: row r holds those from 512 << r up to below 512 << (r + 1)."""

    split: Ints
    """Number of those that share their segment with live blocks (inactive_split)."""
    split_bytes: Ints
    whole: Ints
    """Number of those that fill their segment."""
    whole_bytes: Ints

    @property
    def from_bytes(self) -> Ints:
        """Where each row begins."""
        begins: Ints = np.int64(1) << (np.arange(len(self.split)) + _FIRST_LOG2)
        return begins


@dataclass(frozen=True, slots=True)
class Arenas(Table):
    """Free memory by pool, stream and size class; of arenas that have segments."""

    pool: Ints
    """Row of `Snapshot.pools`; NOTHING: not recorded."""
    stream: Ints
    is_large: Flags
    reserved_bytes: Ints
    free_bytes: Ints
    largest: Ints
    """Largest free block; 0: none."""
    num_blocks: Ints
    """Free blocks."""
    releasable_bytes: Ints
    """What `empty_cache` would give back to the device."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a request could be served at a moment, and if not, what was in the way."""

    requested_bytes: int
    size: int
    """As the allocator rounds it."""
    is_large: bool
    block: int
    """Row of `BlockRows`: the free block it would get; NOTHING: none fits."""
    largest: int
    """Largest free block of its arena."""
    free: int
    """All free blocks of its arena, in bytes."""
    other_stream_largest: int
    """Largest free block of the same pool and size class, of other streams."""
    other_pool_largest: int
    """The same of other memory pools, on any stream."""
    releasable_bytes: int
    """What giving free segments back would add to what the device has."""
    new_segment_bytes: int
    """What has to be reserved where no block fits."""

    @property
    def fits(self) -> bool:
        """A free block serves it; nothing need be reserved."""
        return self.block != NOTHING


@dataclass(frozen=True, slots=True)
class Pins:
    """Segments that live blocks keep reserved although most of them is free."""

    segment: Ints
    """Row of `SegmentRows`; those with most free bytes first."""
    free_bytes: Ints
    live_bytes: Ints
    num_live: Ints
    stack: Ints
    """Of the block that holds most in it."""
    stack_bytes: Ints


@dataclass(frozen=True, slots=True)
class Pinners:
    """By stack: free bytes that would go back to the device without its blocks."""

    stack: Ints
    """Those that hold most alone first."""
    alone_bytes: Ints
    """In segments where no other stack has a live block."""
    shared_bytes: Ints
    """In segments that other stacks hold too."""
    live_bytes: Ints
    """Of its own blocks in these segments."""
    num_segments: Ints


def free_histogram(state: SegmentState) -> FreeHistogram:
    """Free blocks by powers of two."""
    rows = np.flatnonzero(state.blocks.state == INACTIVE)
    size = state.blocks.size[rows]
    is_whole = size == state.segments.total_size[state.blocks.segment[rows]]
    bucket = np.maximum(np.frexp(size.astype(np.float64))[1] - 1 - _FIRST_LOG2, 0)
    num = int(bucket.max(initial=-1)) + 1
    columns = []
    for chosen in (~is_whole, is_whole):
        own = bucket[chosen]
        columns += [np.bincount(own, minlength=num), sums(own, size[chosen], num)]
    return FreeHistogram(*columns)


def arenas(state: SegmentState) -> Arenas:
    """Free memory by arena, the one with most reserved first."""
    segments = state.segments
    first, place = numbered(segments.pool, segments.stream, segments.is_large)
    num = len(first)
    is_free = state.blocks.state == INACTIVE
    block_arena = place[state.blocks.segment[is_free]]
    size = state.blocks.size[is_free]
    reserved = sums(place, segments.total_size, num)
    found = Arenas(
        pool=segments.pool[first].astype(np.int64),
        stream=segments.stream[first].astype(np.int64),
        is_large=segments.is_large[first],
        reserved_bytes=reserved,
        free_bytes=sums(block_arena, size, num),
        largest=highest(block_arena, size, num),
        num_blocks=np.bincount(block_arena, minlength=num),
        releasable_bytes=sums(place, releasable(state), num),
    )
    return found.take(np.argsort(-reserved, kind="stable"))


def releasable(state: SegmentState) -> Ints:
    """By segment: bytes that `empty_cache` would give back.

    A segment goes whole or not at all; an expandable one page by page, where a page lies
    in a free block. Segments of private pools stay while their graphs may run.
    """
    segments, blocks = state.segments, state.blocks
    rows = np.flatnonzero(blocks.state == INACTIVE)
    segment = blocks.segment[rows]
    page = np.where(segments.is_large, LARGE_SEGMENT_BYTES, SMALL_SEGMENT_BYTES)[
        segment
    ]
    start = blocks.address[rows] - segments.address[segment]
    end = start + blocks.size[rows]
    pages = np.maximum(end // page - -(-start // page), 0) * page
    is_whole = blocks.size[rows] == segments.total_size[segment]
    back = np.where(
        segments.is_expandable[segment], pages, blocks.size[rows] * is_whole
    )
    back = np.where(is_private(segments.pool)[segment], 0, back)
    return sums(segment, back, len(segments))


def is_private(pool: Ints) -> Flags:
    """Whether rows of `Snapshot.pools` are of private pools; what is not known is not."""
    return pool > 0


def fit(
    state: SegmentState,
    rounding: Rounding,
    requested_bytes: int,
    *,
    pool: int = 0,
    stream: int = 0,
) -> Fit:
    """Where a request of one pool and stream (rows of the snapshot's) would go.

    Segments whose pool is not recorded count as those of the ordinary one.
    """
    size = rounding.size(requested_bytes)
    is_large = size > SMALL_BYTES
    segments, blocks = state.segments, state.blocks
    free = np.flatnonzero(blocks.state == INACTIVE)
    segment = blocks.segment[free]
    num_bytes = blocks.size[free]
    same_class = segments.is_large[segment] == is_large
    same_pool = np.maximum(segments.pool[segment], 0) == pool
    same_stream = segments.stream[segment] == stream
    own = same_class & same_pool & same_stream
    serves = np.flatnonzero(own & rounding.lends(num_bytes, size))
    block = NOTHING
    if len(serves):  # the smallest, of equal ones the one at the lowest address
        block = int(free[serves[np.argmin(num_bytes[serves])]])

    def most(rows: Flags) -> int:
        return int(num_bytes[rows].max(initial=0))

    return Fit(
        requested_bytes=requested_bytes,
        size=size,
        is_large=is_large,
        block=block,
        largest=most(own),
        free=int(num_bytes[own].sum()),
        other_stream_largest=most(same_class & same_pool & ~same_stream),
        other_pool_largest=most(same_class & ~same_pool),
        releasable_bytes=int(releasable(state).sum()),
        new_segment_bytes=rounding.segment_size(size),
    )


def pins(
    state: SegmentState, life_stack: Ints, most: int = 200
) -> tuple[Pins, Pinners]:
    """Who keeps partly free segments reserved; `life_stack` is `Lifetimes.stack`.

    Of expandable segments too, although these give whole free pages back.
    """
    segments, blocks = state.segments, state.blocks
    held = (segments.free_size > 0) & (segments.num_active > 0)
    rows = np.flatnonzero((blocks.state != INACTIVE) & held[blocks.segment])
    segment, size = blocks.segment[rows], blocks.size[rows]
    stack = life_stack[blocks.life[rows]]
    # What each stack holds in each segment.
    stacks, which = grouped(stack)
    first, place = numbered(segment, which)
    pair_bytes = sums(place, size, len(first))
    pair_segment, pair_stack = segment[first], which[first]
    return (
        _pinned(state, pair_segment, stacks[pair_stack], pair_bytes, most),
        _pinners(state, pair_segment, pair_stack, pair_bytes, stacks),
    )


def _pinned(
    state: SegmentState, segment: Ints, stack: Ints, num_bytes: Ints, most: int
) -> Pins:
    segments = state.segments
    # The largest stack of each segment comes last of it.
    order = np.lexsort((num_bytes, segment))
    last = order[np.flatnonzero(np.diff(segment[order], append=NOTHING) != 0)]
    last = last[np.argsort(-segments.free_size[segment[last]], kind="stable")][:most]
    found = segment[last]
    return Pins(
        segment=found,
        free_bytes=segments.free_size[found],
        live_bytes=segments.total_size[found] - segments.free_size[found],
        num_live=segments.num_active[found],
        stack=stack[last],
        stack_bytes=num_bytes[last],
    )


def _pinners(
    state: SegmentState, segment: Ints, which: Ints, num_bytes: Ints, stacks: Ints
) -> Pinners:
    free = state.segments.free_size[segment]
    is_alone = np.bincount(segment, minlength=len(state.segments))[segment] == 1
    num = len(stacks)
    alone = sums(which[is_alone], free[is_alone], num)
    shared = sums(which[~is_alone], free[~is_alone], num)
    live = sums(which, num_bytes, num)
    order = np.lexsort((-shared, -alone))
    return Pinners(
        stack=stacks[order],
        alone_bytes=alone[order],
        shared_bytes=shared[order],
        live_bytes=live[order],
        num_segments=np.bincount(which, minlength=len(stacks))[order],
    )
