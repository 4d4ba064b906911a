"""Responses about the allocator's segments: what is where, what is free, who pins it.

All are of one history and one device, as those of `allocations`, and need it to be open.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from memboard.tb_plugin.api.base import Columns, F64Column, I32Column, U8Column
from memboard.tb_plugin.api.memory.blocks import (
    AllocationGroup,
    AllocationMoment,
    AllocationsResponse,
)
from memboard.tb_plugin.api.memory.histories import HistoryOddity
from memboard.tb_plugin.api.tables import TableRows

SegmentSort: TypeAlias = Literal["address", "size", "free", "largest_free", "age"]
"""address ascends; the others descend, but age: the oldest first."""

SizeClass: TypeAlias = Literal["small", "large"]
"""The allocator's pools: requests of at most 1 MiB are small."""

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

ACTION_WORDS: Final = {
    "alloc": "allocated",
    "free_requested": "free requested",
    "free_completed": "freed",
    "free": "freed",
    "segment_alloc": "segment reserved",
    "segment_free": "segment returned",
    "segment_map": "segment mapped",
    "segment_unmap": "segment unmapped",
    "snapshot": "snapshot",
    "oom": "out of memory",
    "annotate": "annotation",
    "unknown": "unknown event",
}


class SegmentRows(Columns, frozen=True):
    """Segments in the query's order; columns of equal length."""

    address: F64Column
    total_bytes: F64Column
    allocated_bytes: F64Column
    """Of allocated blocks, as rounded; likewise the next two."""
    pending_bytes: F64Column
    """Freed, and waiting for another stream."""
    free_bytes: F64Column
    requested_bytes: F64Column
    """As requested, of allocated and pending blocks."""
    largest_free_bytes: F64Column
    num_active: I32Column
    """Blocks that are allocated or pending."""
    kind: I32Column  # Row of `SegmentsResponse.kinds`
    num_alike: I32Column
    """How many equal full segments begin here; 1 of any other."""
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
    stack: I32Column  # -1: none
    category: U8Column
    """Index in `SegmentsResponse.categories`; their number of free blocks."""


class SegmentFigure(Struct, frozen=True):
    """A number of bytes that explains why memory cannot be used."""

    name: str
    bytes: float
    hint: str
    is_cause: bool = False
    """The request fails on it."""


class SegmentsWhy(Columns, frozen=True):
    """Why memory cannot be used: what is free, or what became of a request."""

    tone: Literal["ok", "bad", "plain"]
    """The request fits, or does not, or there is none."""
    sentence: str
    more: tuple[str, ...]
    """What else bears on it, the most important first."""
    figures: tuple[SegmentFigure, ...]
    culprit: int
    """The stack that keeps free memory apart, or from being returned; -1: none."""
    lives: I32Column
    """Blocks whose end would make room for it, the largest first."""


class SegmentPins(Struct, frozen=True):
    """Segments with pinned free memory: what keeps them, by their addresses."""

    address: tuple[float, ...]
    text: tuple[str, ...]


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
    """Of those that pass; likewise the next five."""
    allocated_bytes: float
    pending_bytes: float
    free_bytes: float
    whole_bytes: float
    """Free, of segments where nothing lives."""
    pinned_bytes: float
    """Free, and kept from being returned by live blocks of the same segment or page."""
    segments: SegmentRows
    blocks: SegmentBlocks
    kinds: tuple[str, ...]
    """`large · expandable · pool (0, 1)`."""
    categories: tuple[AllocationGroup, ...]
    """As Blocks colours them, with the bytes of allocated blocks."""
    free_sizes: TableRows
    """Free blocks by powers of two: those that share their segment with live blocks
    (inactive_split), and those that fill it. Noted: where the request would fit."""
    arenas: TableRows
    """By pool, stream and size class, which no free block leaves; of all, whatever the
    filter."""
    why: SegmentsWhy
    pins: SegmentPins
    pinners: TableRows
    """By stack: free bytes that could go back to the device without its blocks. They go
    back segment by segment, those of expandable ones page by page."""
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


class AllocatorEventsResponse(Struct, frozen=True):
    """Route `/allocator_events` (run, history, device): events as a list.

    Rows e0 up to e0 + count (default 200, at most 2,000). With `actions`
    (AllocatorAction, separated by commas) rows are those events alone.
    """

    device: int
    e0: int
    num_events: int
    row_of_moment: int
    """The last row not after the parameter `moment` (default: the end); -1: none."""
    table: TableRows
    """`num_all`: those of `actions`. For requests, without a heading: `life`, the
    allocation that the event begins or ends; -1: none."""
