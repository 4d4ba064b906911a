"""Segments and blocks of one device at any moment.

The segments of a moment are the spans that are there (`segment_spans`); those of an
expandable segment that touch are one, as torch shows them. The blocks in them are what
lives then, and between any two of these, and at both ends, one free block: the allocator
joins free neighbours always. How long a live block is follows from `rounding`, and from
what lives next. So blocks fill their segments and never overlap, whatever the events say;
where these contradict themselves, that is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import (
    NOTHING,
    Table,
    begins,
    highest,
    place_of,
    sums,
)
from memboard.tb_plugin.analysis.snapshots.snapshot import (
    ALLOCATED,
    INACTIVE,
    PENDING_FREE,
    BlockColumns,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memboard.tb_plugin.analysis.allocator.lifetimes import Lifetimes
    from memboard.tb_plugin.analysis.allocator.rounding import BlockSizes
    from memboard.tb_plugin.analysis.allocator.segment_spans import Spans
    from memboard.tb_plugin.analysis.arrays import Flags, Ints


@dataclass(frozen=True, slots=True)
class SegmentRows(Table):
    """Segments in order of their addresses."""

    address: Ints
    total_size: Ints
    stream: Ints
    pool: Ints
    """NOTHING where neither an event nor the end says it."""
    is_large: Flags
    is_expandable: Flags
    opened: Ints
    """The event that brought it, or its first part; `BEFORE`."""
    stack: Ints
    allocated_size: Ints
    """Bytes of allocated blocks, as rounded; the next two likewise."""
    pending_size: Ints
    free_size: Ints
    requested_size: Ints
    """Bytes as requested, of allocated and pending blocks."""
    largest_free: Ints
    num_active: Ints
    first_block: Ints
    """Row of `BlockRows`; the next segment's, or their number, is its end."""


_OF_SPANS: Final = ("stream", "pool", "is_large", "is_expandable", "opened", "stack")
_NUM_SUMS: Final = len(SegmentRows.__slots__) - len(_OF_SPANS) - 2


@dataclass(frozen=True, slots=True)
class BlockRows(BlockColumns):
    """At any moment of the history; free blocks request 0 bytes."""

    life: Ints
    """Row of `Lifetimes`; NOTHING of free blocks."""


@dataclass(frozen=True, slots=True)
class SegmentState:
    """All segments and blocks just after an event."""

    moment: int
    segments: SegmentRows
    blocks: BlockRows
    oddities: Mapping[str, int]
    """What does not fit together or had to be assumed, in words, and how often."""

    def only(self, rows: Ints) -> SegmentState:
        """The same with these segments alone, in order of their addresses."""
        rows = np.sort(rows)
        segment = place_of(rows, len(self.segments))[self.blocks.segment]
        kept = np.flatnonzero(segment != NOTHING)
        blocks = self.blocks.take(kept, segment=segment[kept])
        first = np.searchsorted(blocks.segment, np.arange(len(rows)))
        segments = self.segments.take(rows, first_block=first)
        return replace(self, segments=segments, blocks=blocks)

    @property
    def reserved_bytes(self) -> int:
        return int(self.segments.total_size.sum())


class SegmentReplay:
    """Gives the state at any moment; made once per device."""

    def __init__(self, lives: Lifetimes, spans: Spans, blocks: BlockSizes) -> None:
        self.spans = spans
        # By address and birth: the lives of one address follow each other.
        order = np.lexsort((lives.born, lives.addr))
        self._life = order
        self._addr = lives.addr[order]
        self._born = lives.born[order]
        self._freed = lives.freed[order]
        self._gone = lives.gone[order]
        self._size = blocks.size[order]
        self._requested = blocks.requested[order]
        self._is_unsure = blocks.is_unsure[order]

    def at(self, moment: int) -> SegmentState:
        """The state just after an event."""
        oddities: dict[str, int] = {}
        segments = self._segments(moment, oddities)
        rows = np.flatnonzero((self._born <= moment) & (self._gone > moment))
        segment, inside = _placed(self._addr[rows], segments)
        _note(oddities, "live blocks in no segment", ~inside)
        rows, segment = rows[inside], segment[inside]
        twice = ~begins(self._addr[rows])
        _note(oddities, "live blocks at one address", twice)
        rows, segment = rows[~twice], segment[~twice]
        size = self._block_sizes(rows, segment, segments, oddities)
        blocks = self._blocks(rows, segment, size, segments, moment)
        return SegmentState(moment, _summed(segments, blocks), blocks, oddities)

    def _segments(self, moment: int, oddities: dict[str, int]) -> SegmentRows:
        spans = self.spans
        rows = spans.at(moment)
        end = np.maximum.accumulate(spans.address[rows] + spans.size[rows])
        before = np.concatenate([spans.address[rows[:1]], end[:-1]])
        overlaps = spans.address[rows] < before
        _note(oddities, "segments that overlap", overlaps)
        rows = rows[~overlaps & (spans.size[rows] > 0)]
        # Parts of one expandable segment that touch.
        goes_on = np.zeros(len(rows), np.bool_)
        if len(rows):
            left, right = rows[:-1], rows[1:]
            touches = spans.address[left] + spans.size[left] == spans.address[right]
            touches &= spans.is_expandable[left] & spans.is_expandable[right]
            for same in (spans.stream, spans.pool, spans.is_large):
                touches &= same[left] == same[right]
            goes_on[1:] = touches
        first = np.flatnonzero(~goes_on)
        head = rows[first]
        total = (
            np.add.reduceat(spans.size[rows], first) if len(rows) else spans.size[:0]
        )
        return SegmentRows(
            spans.address[head],
            total,
            *(getattr(spans, column)[head] for column in _OF_SPANS),
            *(np.zeros(len(head), np.int64),) * _NUM_SUMS,
        )

    def _block_sizes(
        self,
        rows: Ints,
        segment: Ints,
        segments: SegmentRows,
        oddities: dict[str, int],
    ) -> Ints:
        """How long each live block is; `rows` are in order of address."""
        start = self._addr[rows]
        room = _next_start(start, segment, segments) - start
        size = self._size[rows]
        rest = room - size
        _note(oddities, "live blocks that overlap", rest < 0)
        _note(
            oddities,
            "remainders of unknown blocks from before the recording",
            self._is_unsure[rows] & (rest > 0),
        )
        sizes_in_room: Ints = np.minimum(size, room)
        return sizes_in_room

    def _blocks(
        self,
        rows: Ints,
        segment: Ints,
        size: Ints,
        segments: SegmentRows,
        moment: int,
    ) -> BlockRows:
        """The live blocks, and the free ones between them."""
        start = self._addr[rows]
        behind = start + size
        rest = _next_start(start, segment, segments) - behind
        in_front = segments.total_size.copy()
        is_first = np.diff(segment, prepend=NOTHING) != 0
        in_front[segment[is_first]] = (
            start[is_first] - segments.address[segment[is_first]]
        )
        led, followed = np.flatnonzero(in_front > 0), np.flatnonzero(rest > 0)
        num_free = len(led) + len(followed)
        pending = self._freed[rows] <= moment
        free = np.zeros(num_free, np.int64)
        columns = {
            "segment": [segment, led, segment[followed]],
            "address": [start, segments.address[led], behind[followed]],
            "size": [size, in_front[led], rest[followed]],
            "requested_size": [np.minimum(self._requested[rows], size), free],
            "state": [np.where(pending, PENDING_FREE, ALLOCATED), free + INACTIVE],
            "life": [self._life[rows], free + NOTHING],
        }
        order = np.argsort(np.concatenate(columns["address"]), kind="stable")
        return BlockRows(
            **{name: np.concatenate(parts)[order] for name, parts in columns.items()}
        )


def _placed(address: Ints, segments: SegmentRows) -> tuple[Ints, Flags]:
    """The segment that each address is in, and whether there is one."""
    row = np.searchsorted(segments.address, address, "right") - 1
    if not len(segments):
        return row, np.zeros(len(address), np.bool_)
    end = segments.address[row] + segments.total_size[row]
    return row, (row >= 0) & (address < end)


def _next_start(start: Ints, segment: Ints, segments: SegmentRows) -> Ints:
    """Where the next live block, or the end of the segment, is."""
    end = segments.address[segment] + segments.total_size[segment]
    if not len(start):
        return end
    after = np.append(start[1:], 0)
    same = np.append(segment[1:] == segment[:-1], False)
    return np.where(same, after, end)


def _summed(segments: SegmentRows, blocks: BlockRows) -> SegmentRows:
    """The segments with what their blocks add up to."""
    num, of = len(segments), blocks.segment

    def total(values: Ints, rows: Flags) -> Ints:
        return sums(of[rows], values[rows], num)

    is_free = blocks.state == INACTIVE
    return replace(
        segments,
        allocated_size=total(blocks.size, blocks.state == ALLOCATED),
        pending_size=total(blocks.size, blocks.state == PENDING_FREE),
        free_size=total(blocks.size, is_free),
        requested_size=total(blocks.requested_size, ~is_free),
        largest_free=highest(of[is_free], blocks.size[is_free], num),
        num_active=np.bincount(of[~is_free], minlength=num),
        first_block=np.searchsorted(of, np.arange(num)),
    )


def _note(oddities: dict[str, int], oddity: str, wrong: Flags) -> None:
    count = int(np.count_nonzero(wrong))
    if count:
        oddities[oddity] = count
