"""Memory of a moment: what is used and free, in which pieces, for whom, and who pins it.

The allocator keeps free blocks apart by *arena*: a request finds only those of its own
memory pool, stream and size class (small: up to 1 MiB). Free memory of another arena is
of no use to it until a whole segment is given back to the device, which `empty_cache`
and a retry before an out-of-memory error do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from collector.format.sizes import counted
from tb_plugin.analysis.allocator.rounding import (
    LARGE_SEGMENT_BYTES,
    SMALL_BYTES,
    SMALL_SEGMENT_BYTES,
)
from tb_plugin.analysis.arrays import NOTHING, Table, grouped, highest, numbered, sums
from tb_plugin.analysis.snapshots.snapshot import ALLOCATED, INACTIVE, PENDING_FREE
from tb_plugin.api.blocks import AllocationLedger, LedgerEntry
from tb_plugin.api.segments import (
    FreeSizes,
    SegmentArenas,
    SegmentPinners,
)

if TYPE_CHECKING:
    from tb_plugin.analysis.allocator.replay import Replay
    from tb_plugin.analysis.allocator.rounding import Rounding
    from tb_plugin.analysis.allocator.segments import SegmentState
    from tb_plugin.analysis.arrays import Flags, Ints


_FIRST_LOG2: Final = 9


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
class Obstacle:
    """Neighbouring blocks whose live ones, freed, would make room for a request."""

    address: int
    size: int
    """Of live and free blocks."""
    lives: Ints
    """The live ones, the largest first."""
    live_bytes: int
    stack: int
    """That holds most of these; NOTHING: none."""


@dataclass(frozen=True, slots=True)
class Pins(Table):
    """Segments with pinned free memory, most free first: the stack that holds most."""

    address: Ints
    live_bytes: Ints
    num_live: Ints
    stack: Ints


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
        is_large=segments.is_large[first[order]].astype(np.uint8),
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


def obstacle(
    state: SegmentState, found: Fit, life_stack: Ints, *, pool: int, stream: int
) -> Obstacle | None:
    """The fewest live bytes between free blocks whose end would serve a request.

    Of all stretches of neighbouring blocks that are long enough, in segments that the
    request may use, the one with the fewest live bytes. None: no segment is as long.
    """
    segments, blocks = state.segments, state.blocks
    usable = (
        (segments.is_large == found.is_large)
        & (np.maximum(segments.pool, 0) == pool)
        & (segments.stream == stream)
    )
    rows = np.flatnonzero(usable[blocks.segment])
    segment, size = blocks.segment[rows], blocks.size[rows]
    live = np.where(blocks.state[rows] == INACTIVE, 0, size)
    before, live_before = (np.append(0, np.cumsum(one)) for one in (size, live))
    first = np.arange(len(rows))
    end = np.searchsorted(before, before[:-1] + found.size)
    inside = np.flatnonzero(end <= len(rows))
    inside = inside[segment[end[inside] - 1] == segment[inside]]
    if not len(inside):
        return None
    first, end = first[inside], end[inside]
    best = np.argmin(live_before[end] - live_before[first])
    chosen = np.arange(first[best], end[best])
    held = rows[chosen[live[chosen] > 0]]
    stacks, which = grouped(life_stack[blocks.life[held]])
    by_stack = sums(which, blocks.size[held], len(stacks))
    return Obstacle(
        address=int(blocks.address[rows[chosen[0]]]),
        size=int(size[chosen].sum()),
        lives=blocks.life[held[np.argsort(-blocks.size[held], kind="stable")]],
        live_bytes=int(blocks.size[held].sum()),
        stack=int(stacks[np.argmax(by_stack)]) if len(held) else NOTHING,
    )


def pins(
    state: SegmentState, life_stack: Ints, most: int
) -> tuple[Pins, SegmentPinners]:
    """Who keeps free memory from being returned to the device, at most so many of both.

    `life_stack` is `Lifetimes.stack`. Whole free pages of expandable segments go back
    whoever has the rest: nobody pins these.
    """
    segments, blocks = state.segments, state.blocks
    held = (segments.free_size > releasable(state)) & (segments.num_active > 0)
    rows = np.flatnonzero((blocks.state != INACTIVE) & held[blocks.segment])
    stacks, which = grouped(life_stack[blocks.life[rows]])
    return (
        _pinned(state, rows, stacks[which], most),
        _pinners(state, rows, which, stacks, most),
    )


def _pinned(state: SegmentState, rows: Ints, stack: Ints, most: int) -> Pins:
    segments, blocks = state.segments, state.blocks
    # What each stack holds in each segment; the largest comes last of it.
    first, place = numbered(blocks.segment[rows], stack)
    num_bytes = sums(place, blocks.size[rows], len(first))
    segment, stack = blocks.segment[rows[first]], stack[first]
    order = np.lexsort((num_bytes, segment))
    last = order[np.flatnonzero(np.diff(segment[order], append=NOTHING) != 0)]
    last = last[np.argsort(-segments.free_size[segment[last]], kind="stable")][:most]
    found = segment[last]
    return Pins(
        address=segments.address[found],
        live_bytes=segments.total_size[found] - segments.free_size[found],
        num_live=segments.num_active[found],
        stack=stack[last],
    )


def _pinners(
    state: SegmentState, rows: Ints, which: Ints, stacks: Ints, most: int
) -> SegmentPinners:
    """`which`: row of `stacks`, by row of blocks.

    What goes back goes segment by segment, and page by page of expandable ones: a stack
    alone in such a unit is all that keeps the rest of it.
    """
    free = np.flatnonzero(state.blocks.state == INACTIVE)
    (segment, at), rest = _ends_of(state, free)
    (live_segment, live_at), _ = _ends_of(state, rows)
    first, unit = numbered(np.append(segment, live_segment), np.append(at, live_at))
    pinned = sums(unit[: len(segment)], rest, len(first))
    unit = unit[len(segment) :]
    pair, _ = numbered(unit, np.append(which, which))
    unit, of_pair = unit[pair], np.append(which, which)[pair]
    is_alone = np.bincount(unit, minlength=len(first))[unit] == 1
    num = len(stacks)
    alone = sums(of_pair[is_alone], pinned[unit[is_alone]], num)
    shared = sums(of_pair[~is_alone], pinned[unit[~is_alone]], num)
    in_segment, _ = numbered(state.blocks.segment[rows], which)
    num_segments: Ints = np.bincount(which[in_segment], minlength=num)
    order = np.lexsort((-alone, -alone - shared))
    order = order[(alone + shared)[order] > 0][:most]
    return SegmentPinners(
        stack=stacks[order],
        alone_bytes=alone[order],
        shared_bytes=shared[order],
        live_bytes=sums(which, state.blocks.size[rows], num)[order],
        num_segments=num_segments[order],
    )


def _ends_of(state: SegmentState, rows: Ints) -> tuple[tuple[Ints, Ints], Ints]:
    """The units of return, by segment and number, where blocks begin and where they end.

    Of free ones the bytes in them that do not go back: nothing of whole pages.
    """
    segments, blocks = state.segments, state.blocks
    segment = blocks.segment[rows]
    page = np.where(segments.is_large, LARGE_SEGMENT_BYTES, SMALL_SEGMENT_BYTES)
    goes_by_page = segments.is_expandable & ~is_private(segments.pool)
    page = np.where(goes_by_page, page, segments.total_size)[segment]
    start = blocks.address[rows] - segments.address[segment]
    end = start + blocks.size[rows]
    first, last = start // page, (end - 1) // page
    begins = np.minimum(end, -(-start // page) * page) - start
    ends = np.where(first == last, np.where(begins > 0, 0, end - start), end % page)
    ends = np.where(ends == page, 0, ends)
    return (
        (np.append(segment, segment), np.append(first, last)),
        np.append(begins, ends),
    )


RESERVED_KEYS: Final = (
    "live",
    "rounding",
    "pending_free",
    "inactive_split",
    "free_segments",
    "private_pools",
)
"""Entries that add up to reserved bytes: requests that live, what rounding adds to them,
blocks that wait for another stream, free blocks beside live ones, segments without any,
and free memory that only private pools may use."""

NO_TOTAL: Final = "the size of the device was not recorded"
NO_FREE: Final = "the device's free memory was not recorded at this moment"
LEFT_OVER: Final = "the remainder of the device's figures; not measured by itself"


def ledger(
    replay: Replay, moment: int, device_total: int | None = None
) -> AllocationLedger:
    """Where a device's memory is just after an event: entries that add up to what is used.

        device used = live + rounding + pending_free + inactive_split + free_segments
                      + private_pools + non_torch

    All up to `private_pools` add up to reserved bytes exactly. `non_torch` is what no
    allocator knows of: CUDA contexts, communication libraries, other processes; it is what
    the device's own figures leave for it. What is not known is None, and says why.

    Args:
        replay: of the device.
        moment: the event; one of running out of memory says what the device had free.
        device_total: size of the device.
    """
    state = replay.at(moment)
    free = int(replay.device.events.device_free[moment]) if moment >= 0 else NOTHING
    entries = _reserved_entries(state)
    reserved = state.reserved_bytes
    used = non_torch = None
    caveat = NO_TOTAL if device_total is None else NO_FREE
    if device_total is not None and free != NOTHING:
        used, caveat = device_total - free, LEFT_OVER
        non_torch = used - reserved
        if non_torch < 0:
            caveat = "the device's figures and the allocator's contradict each other"
    if not replay.device.is_host:
        entries.append(LedgerEntry("non_torch", _float(non_torch), caveat))
    return AllocationLedger(tuple(entries), float(reserved), _float(used))


def _reserved_entries(state: SegmentState) -> list[LedgerEntry]:
    segments, blocks = state.segments, state.blocks
    live = blocks.state == ALLOCATED
    free = blocks.state == INACTIVE
    private = is_private(segments.pool)[blocks.segment]
    is_whole = segments.num_active[blocks.segment] == 0
    requested = int(blocks.requested_size[live].sum())
    num_bytes = {
        "live": requested,
        "rounding": int(blocks.size[live].sum()) - requested,
        "pending_free": int(blocks.size[blocks.state == PENDING_FREE].sum()),
        "inactive_split": int(blocks.size[free & ~is_whole & ~private].sum()),
        "free_segments": int(blocks.size[free & is_whole & ~private].sum()),
        "private_pools": int(blocks.size[free & private].sum()),
    }
    caveats = _caveats(state)
    return [
        LedgerEntry(key, float(num_bytes[key]), caveats.get(key, ""))
        for key in RESERVED_KEYS
    ]


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


def _caveats(state: SegmentState) -> dict[str, str]:
    found = {}
    missing = state.oddities.get("live blocks in no segment", 0)
    if missing:
        found["live"] = (
            f"not counted: {counted(missing, 'live block')} in no known segment"
        )
    assumed = state.oddities.get(
        "remainders of unknown blocks from before the recording", 0
    )
    if assumed:
        found["rounding"] = (
            f"of {counted(assumed, 'block')} from before the recording up to 1 MiB each may"
            " be counted as free"
        )
    unknown = int(np.count_nonzero(state.segments.pool == NOTHING))
    if unknown:
        found["private_pools"] = (
            f"the pool of {counted(unknown, 'segment')} was not recorded: counted as not"
            " private"
        )
    return found
