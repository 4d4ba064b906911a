"""Responses about the allocator's segments: what is where, what is free, who pins it.

All are of one history and one device, as those of `allocations`, and need it to be open.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from tb_plugin.api.base import Columns, F64Column, I32Column, U8Column
from tb_plugin.api.blocks import AllocationMoment, AllocationsResponse
from tb_plugin.api.histories import HistoryOddity
from tb_plugin.api.modules import CategoryGroup

SegmentSort: TypeAlias = Literal["address", "size", "free", "largest_free", "age"]
"""address ascends; the others descend, but age: the oldest first."""

SizeClass: TypeAlias = Literal["small", "large"]
"""Which of the allocator's pools: requests of at most 1 MiB are small."""

AllocatorAction: TypeAlias = Literal[
    "alloc",
    "free_requested",
    "free_completed",
    "free",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "snapshot",
    "oom",
    "annotate",
    "unknown",
]


class SegmentRows(Columns, frozen=True):
    """Segments in the order that was asked for; columns of equal length."""

    address: F64Column
    total_bytes: F64Column
    allocated_bytes: F64Column
    """Of allocated blocks, as rounded; likewise the next two."""
    pending_bytes: F64Column
    """Freed, and waiting for another stream."""
    free_bytes: F64Column
    requested_bytes: F64Column
    """As asked for, of allocated and pending blocks."""
    largest_free_bytes: F64Column
    num_active: I32Column
    """Blocks that are allocated or pending."""
    stream: I32Column
    """Row of `HistoryFacts.streams`."""
    pool: I32Column
    """Row of `HistoryFacts.pools`; -1: not recorded."""
    is_large: U8Column
    is_expandable: U8Column
    opened: I32Column
    """The event that brought it, or its first part; -1: before all."""
    stack: I32Column
    """Of that event; -1: none."""
    first_block: I32Column
    """Row of `SegmentBlocks` where its blocks begin."""
    num_blocks: I32Column
    """0 where its blocks were left out."""


class SegmentBlocks(Columns, frozen=True):
    """Blocks of the segments, by address within each; columns of equal length."""

    offset: F64Column
    """Bytes from the segment's address."""
    size: F64Column
    state: U8Column
    """0 free, 1 allocated, 2 pending free."""
    life: I32Column
    """For `/allocation_block`; -1 of free blocks."""
    stack: I32Column
    """-1: none."""
    category: U8Column
    """Index in `SegmentsResponse.categories`; their number of free blocks."""


class FreeSizes(Columns, frozen=True):
    """Free blocks by powers of two: from `from_bytes` up to below twice that."""

    from_bytes: F64Column
    num_split: I32Column
    """Of those that share their segment with live blocks (inactive_split)."""
    split_bytes: F64Column
    num_whole: I32Column
    """Of those that fill their segment."""
    whole_bytes: F64Column


class SegmentArenas(Columns, frozen=True):
    """Memory by pool, stream and size class: no free block leaves its own."""

    pool: I32Column
    """Row of `HistoryFacts.pools`; -1: not recorded."""
    stream: I32Column
    is_large: U8Column
    reserved_bytes: F64Column
    free_bytes: F64Column
    largest_free_bytes: F64Column
    num_free: I32Column
    releasable_bytes: F64Column
    """What `torch.cuda.empty_cache()` would give back."""


class SegmentObstacle(Struct, frozen=True):
    """Neighbouring blocks whose live ones, freed, would make room for a request."""

    segment_address: float
    offset: float
    """Bytes from the segment's address; likewise `size`: live and free blocks."""
    size: float
    num_live: int
    live_bytes: float
    stack: int
    """That holds most of these; -1: none."""


class SegmentRequest(Struct, frozen=True):
    """A request at this moment: where it would go, or what is in the way."""

    is_oom: bool
    """It is the request that failed at this very event."""
    requested_bytes: float
    rounded_bytes: float
    is_large: bool
    stream: int
    pool: int
    fits: bool
    """A free block of its own arena serves it."""
    largest_free_bytes: float
    """Of its arena."""
    free_bytes: float
    """All free blocks of its arena."""
    other_stream_largest_bytes: float
    """Largest free block of the same pool and size class on other streams."""
    other_pool_largest_bytes: float
    releasable_bytes: float
    new_segment_bytes: float
    """What would have to be reserved anew."""
    device_free_bytes: float | None
    """None: not recorded."""
    obstacle: SegmentObstacle | None
    """None: it fits, or no segment that it may use is as long."""


class SegmentPins(Columns, frozen=True):
    """Segments with pinned free memory, most free first: the stack that holds most."""

    segment_address: F64Column
    live_bytes: F64Column
    num_live: I32Column
    stack: I32Column


class SegmentPinners(Columns, frozen=True):
    """By stack: free bytes that could go back to the device without its blocks."""

    stack: I32Column
    alone_bytes: F64Column
    """In segments where no other stack has a live block."""
    shared_bytes: F64Column
    live_bytes: F64Column
    """Of its own blocks in these segments."""
    num_segments: I32Column


class SegmentsResponse(Struct, frozen=True):
    """Route `/segments` (run, history, device): all segments and blocks at a moment.

    Parameters besides::

        moment      default: the out-of-memory error, else the peak of reserved bytes
        sort        SegmentSort (default: size)
        stream      row of HistoryFacts.streams; pool: row of HistoryFacts.pools
        size_class  SizeClass: these alone
        request     bytes: whether such a request would fit (with stream and pool)
    """

    device: int
    moment: AllocationMoment
    action: AllocatorAction | None
    """Of the event; None: before all."""
    action_bytes: float | None
    num_segments: int
    """That pass the filter; `segments` holds at most 2,000, and their first 200,000
    blocks."""
    reserved_bytes: float
    """Of those that pass; likewise the next four."""
    allocated_bytes: float
    pending_bytes: float
    free_bytes: float
    requested_bytes: float
    segments: SegmentRows
    blocks: SegmentBlocks
    categories: tuple[CategoryGroup, ...]
    free_sizes: FreeSizes
    arenas: SegmentArenas
    """Of all, whatever the filter."""
    request: SegmentRequest | None
    pins: SegmentPins
    pinners: SegmentPinners
    oddities: tuple[HistoryOddity, ...]
    """What does not fit together or had to be assumed."""


class SegmentTimelineResponse(Struct, frozen=True):
    """Route `/segment_timeline` (as `/allocations`): what the allocator held, over time.

    A life here is a segment, or a part of an expandable one, from the event that brought
    it to the one that took it back; groups are size classes and private pools. `order` is
    `allocation` or anything else; `colour` is ignored, and so is `active`, which is the
    sum of what is drawn.
    """

    picture: AllocationsResponse


class AllocatorEventsResponse(Columns, frozen=True):
    """Route `/allocator_events` (run, history, device): events as a list.

    Rows e0 up to e0 + count (default 200, at most 2,000); columns of equal length. With
    `actions` (AllocatorAction, separated by commas) rows are those events alone.
    """

    device: int
    e0: int
    num_events: int
    """All of the device."""
    num_rows: int
    """Those of `actions`."""
    row_of_moment: int
    """The last row not after the parameter `moment` (default: the end); -1: none."""
    event: I32Column
    """By row."""
    actions: tuple[AllocatorAction, ...]
    action: U8Column
    """Index in `actions`."""
    address: F64Column
    """NaN where it has none."""
    version: I32Column
    """How often the address had been used before, as memory_viz counts; -1: no block."""
    bytes: F64Column
    """As asked for; segments: theirs; oom: what was asked for; snapshot: active."""
    stream: I32Column
    """Row of `HistoryFacts.streams`."""
    stack: I32Column
    """-1: none."""
    life: I32Column
    """The allocation it begins or ends; -1: none."""
    active: F64Column
    """Bytes after the event."""
    reserved: F64Column
    device_free: F64Column
    """oom: bytes the device had free; else NaN."""
    time_ms: F64Column
    """Since the epoch; NaN: not known."""
