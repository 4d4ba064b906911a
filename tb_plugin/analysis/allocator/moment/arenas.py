"""Free blocks of a moment, by size and by arena, and what of them can be given back.

The allocator keeps free blocks apart by *arena*: a request finds only those of its own
memory pool, stream and size class (small: up to 1 MiB). Free memory of another arena is
of no use to it until a whole segment is given back to the device, which `empty_cache`
and a retry before an out-of-memory error do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.allocator.rounding import (
    LARGE_SEGMENT_BYTES,
    SMALL_SEGMENT_BYTES,
)
from memboard.tb_plugin.analysis.arrays import Table, highest, numbered, sums
from memboard.tb_plugin.analysis.snapshots.snapshot import INACTIVE

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.segments import SegmentState
    from memboard.tb_plugin.analysis.arrays import Flags, Ints

_FIRST_LOG2: Final = 9


@dataclass(frozen=True, slots=True)
class FreeSizes(Table):
    """Free blocks by powers of two: from `from_bytes` up to below twice that."""

    from_bytes: Ints
    num_split: Ints
    """Of those that share their segment with live blocks (inactive_split)."""
    split_bytes: Ints
    num_whole: Ints
    """Of those that fill their segment."""
    whole_bytes: Ints

    def largest_first(self) -> FreeSizes:
        """Sizes of which there is a block."""
        return self.take(np.flatnonzero(self.num_split + self.num_whole)[::-1])


@dataclass(frozen=True, slots=True)
class SegmentArenas(Table):
    """Memory by pool, stream and size class: no free block leaves its own."""

    pool: Ints
    """Row of `Snapshot.pools`; -1: not recorded."""
    stream: Ints
    is_large: Flags
    reserved_bytes: Ints
    free_bytes: Ints
    largest_free_bytes: Ints
    num_free: Ints
    releasable_bytes: Ints
    """What `torch.cuda.empty_cache()` would give back."""


def free_sizes(state: SegmentState) -> FreeSizes:
    """Free blocks by powers of two, from 512 bytes on."""
    rows = np.flatnonzero(state.blocks.state == INACTIVE)
    size = state.blocks.size[rows]
    is_whole = size == state.segments.total_size[state.blocks.segment[rows]]
    bucket = np.maximum(np.frexp(size.astype(np.float64))[1] - 1 - _FIRST_LOG2, 0)
    num = int(bucket.max(initial=-1)) + 1
    columns = []
    for chosen in (~is_whole, is_whole):
        own = bucket[chosen]
        columns += [np.bincount(own, minlength=num), sums(own, size[chosen], num)]
    return FreeSizes(np.int64(1) << (np.arange(num) + _FIRST_LOG2), *columns)


def arenas(state: SegmentState) -> SegmentArenas:
    """Memory by arena, of those that have segments, the one with most reserved first."""
    segments = state.segments
    first, place = numbered(segments.pool, segments.stream, segments.is_large)
    num = len(first)
    is_free = state.blocks.state == INACTIVE
    block_arena = place[state.blocks.segment[is_free]]
    size = state.blocks.size[is_free]
    reserved = sums(place, segments.total_size, num)
    num_free: Ints = np.bincount(block_arena, minlength=num)
    order = np.argsort(-reserved, kind="stable")
    return SegmentArenas(
        pool=segments.pool[first[order]],
        stream=segments.stream[first[order]],
        is_large=segments.is_large[first[order]],
        reserved_bytes=reserved[order],
        free_bytes=sums(block_arena, size, num)[order],
        largest_free_bytes=highest(block_arena, size, num)[order],
        num_free=num_free[order],
        releasable_bytes=sums(place, releasable(state), num)[order],
    )


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
