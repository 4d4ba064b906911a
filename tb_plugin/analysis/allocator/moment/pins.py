"""Blocks that pin free memory at a moment: it cannot be returned to the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.allocator.moment.arenas import is_private, releasable
from memboard.tb_plugin.analysis.allocator.rounding import (
    LARGE_SEGMENT_BYTES,
    SMALL_SEGMENT_BYTES,
)
from memboard.tb_plugin.analysis.arrays import NOTHING, Table, grouped, numbered, sums
from memboard.tb_plugin.analysis.snapshots.snapshot import INACTIVE

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.segments import SegmentState
    from memboard.tb_plugin.analysis.arrays import Ints


@dataclass(frozen=True, slots=True)
class Pins(Table):
    """Segments with pinned free memory, most free first: the stack that holds most."""

    address: Ints
    live_bytes: Ints
    num_live: Ints
    stack: Ints


@dataclass(frozen=True, slots=True)
class SegmentPinners(Table):
    """By stack: free bytes that could go back to the device without its blocks.

    They go back segment by segment, those of expandable ones page by page.
    """

    stack: Ints
    alone_bytes: Ints
    """Where no other stack has a live block."""
    shared_bytes: Ints
    """Where others have live blocks as well."""
    live_bytes: Ints
    """Of its own blocks in these segments."""
    num_segments: Ints


def pins(
    state: SegmentState, life_stack: Ints, most: int
) -> tuple[Pins, SegmentPinners]:
    """Who keeps free memory from being returned to the device, at most so many of both.

    `life_stack` is `Lifetimes.stack`. Whole free pages of expandable segments go back
    whoever has the rest: nobody pins these.
    """
    segments, blocks = state.segments, state.blocks
    is_pinned = (segments.free_size > releasable(state)) & (segments.num_active > 0)
    rows = np.flatnonzero((blocks.state != INACTIVE) & is_pinned[blocks.segment])
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
    rows_pinned = segment[last]
    return Pins(
        address=segments.address[rows_pinned],
        live_bytes=segments.total_size[rows_pinned] - segments.free_size[rows_pinned],
        num_live=segments.num_active[rows_pinned],
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
    (segment, start), rest = _ends_of(state, free)
    (live_segment, live_at), _ = _ends_of(state, rows)
    first, unit = numbered(np.append(segment, live_segment), np.append(start, live_at))
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
