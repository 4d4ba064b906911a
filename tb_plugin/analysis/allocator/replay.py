"""One device of a snapshot, replayed: what lived and what was reserved, at any event.

Made once per device; what takes long and is seldom shown is made when it first is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.allocator.annotations import annotations_of
from memboard.tb_plugin.analysis.allocator.lifetimes import ALLOC, levels, lifetimes
from memboard.tb_plugin.analysis.allocator.live import held_rows, live_rows
from memboard.tb_plugin.analysis.allocator.rounding import (
    block_sizes,
    rests,
    rounding_of,
)
from memboard.tb_plugin.analysis.allocator.segment_spans import (
    Changes,
    SpanIndex,
    reserved,
    reserved_by,
    segment_spans,
)
from memboard.tb_plugin.analysis.allocator.segments import SegmentReplay
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.categories.phases import phases_of
from memboard.tb_plugin.analysis.categories.workspaces import workspaces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from memboard.tb_plugin.analysis.allocator.annotations import AllocationAnnotations
    from memboard.tb_plugin.analysis.allocator.lifetimes import Levels, Lifetimes
    from memboard.tb_plugin.analysis.allocator.rounding import (
        BlockSizes,
        Rests,
        Rounding,
    )
    from memboard.tb_plugin.analysis.allocator.segment_spans import (
        ReservedLevels,
        Spans,
    )
    from memboard.tb_plugin.analysis.allocator.segments import SegmentState
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.categories.phases import Phases
    from memboard.tb_plugin.analysis.snapshots.snapshot import DeviceSnapshot, Snapshot


class Replay:
    """All that follows from the events and the end of one device."""

    def __init__(
        self,
        snapshot: Snapshot,
        device: DeviceSnapshot,
        earlier: ReplayTables | None = None,
    ) -> None:
        """`earlier`: what it came to before; nothing of that is made again."""
        self.snapshot = snapshot
        self.stacks = snapshot.stacks
        self.device = device
        self.num_events = len(device.events)
        self.known = earlier
        self.lives: Lifetimes = (
            lifetimes(device.history(), device.active_blocks())
            if earlier is None
            else earlier.lives
        )

    @cached_property
    def rounding(self) -> Rounding:
        """How the allocator rounds requests."""
        return rounding_of(self.snapshot.settings)

    def block_sizes(self, rows: Ints | None = None) -> BlockSizes:
        """The blocks of some lives, or of all: levels are sums of their sizes."""
        rest = self.rests.of(np.arange(len(self.lives)) if rows is None else rows)
        lives = self.lives if rows is None else self.lives.take(rows)
        return block_sizes(self.device, lives, self.rounding, rest)

    @cached_property
    def rests(self) -> Rests:
        """What was not split off behind blocks."""
        if self.known is not None:
            return self.known.rests
        return rests(self.device, self.lives, self.spans, self.rounding)

    @property
    def active(self) -> Levels:
        """Active bytes after each event, as torch counts them: of blocks."""
        return self._levels[0] if self.known is None else self.known.active

    @property
    def allocated(self) -> Levels:
        """The same of what was not freed yet."""
        return self._levels[1] if self.known is None else self.known.allocated

    @cached_property
    def _levels(self) -> tuple[Levels, Levels]:
        lives, num_bytes = self.lives, self.block_sizes().size
        return (
            levels(lives, num_bytes, self.num_events, active=True),
            levels(lives, num_bytes, self.num_events, active=False),
        )

    def rounding_bytes(self, moment: int, *, with_pending: bool = True) -> int:
        """What live blocks have beyond their requests just after an event.

        Lines, categories and pictures are sums of requests: with this they come to
        `active`, or without pending blocks to `allocated`.
        """
        at_moment = live_rows if with_pending else held_rows
        rows = at_moment(self.lives, moment)
        return int((self.block_sizes(rows).size - self.lives.size[rows]).sum())

    @cached_property
    def reserved(self) -> ReservedLevels:
        """Reserved bytes after each event."""
        return reserved(self.device) if self.known is None else self.known.reserved

    @cached_property
    def spans(self) -> Spans:
        """What memory it held from when to when."""
        return segment_spans(self.device)

    @cached_property
    def segments(self) -> SegmentReplay:
        """Gives segments and blocks at any moment."""
        return SegmentReplay(self.lives, self.spans, self.block_sizes())

    def at(self, moment: int) -> SegmentState:
        """Segments and blocks just after an event."""
        return self.segments.at(moment)

    @cached_property
    def span(self) -> Ints:
        """By life: the row of `spans` it was born in; NOTHING: of none."""
        index = SpanIndex(self.spans, self.num_events)
        return index.rows(self.lives.addr, self.lives.born)

    @cached_property
    def stream(self) -> Ints:
        """By life: row of `Snapshot.streams`; NOTHING where nothing says it."""
        return self._told(self.device.events.stream, self.spans.stream)

    @cached_property
    def pool(self) -> Ints:
        """By life: row of `Snapshot.pools`; NOTHING where nothing says it."""
        return self._told(self.device.events.pool, self.spans.pool)

    @cached_property
    def annotations(self) -> AllocationAnnotations:
        """What `annotate` events say of allocations."""
        return annotations_of(self.device.events, self.lives)

    @cached_property
    def phases(self) -> Phases:
        return phases_of(self.device.events, self.lives, self.stacks.marks)

    @cached_property
    def workspaces(self) -> Flags:
        """By life: whether it is a library's workspace."""
        if self.device.is_host:
            return np.zeros(len(self.lives), np.bool_)
        return workspaces(self.lives, self.stacks, self.stream, self.num_events)

    def reserved_by_pool(self) -> Changes:
        """Reserved bytes by row of `Snapshot.pools`."""
        return self._reserved_by(self.spans.pool, len(self.snapshot.pools))

    def reserved_by_stream(self) -> Changes:
        """Reserved bytes by row of `Snapshot.streams`."""
        return self._reserved_by(self.spans.stream, len(self.snapshot.streams))

    def _reserved_by(self, group: Ints, num_groups: int) -> Changes:
        return reserved_by(self.spans, group, num_groups, self.num_events)

    def _told(self, of_event: Ints, of_span: Ints) -> Ints:
        """By life: what its alloc says, else what the span it was born in does."""
        told = np.full(len(self.lives), NOTHING, np.int64)
        born = self.lives.born
        by_event = born >= 0
        told[by_event] = of_event[born[by_event]]
        missing = np.flatnonzero(told == NOTHING)
        if len(missing) and len(of_span):
            span = self.span[missing]
            told[missing] = np.where(span >= 0, of_span[span], NOTHING)
        return told


VERSION: Final = 9
"""To be raised when the same snapshot would come to anything else than before."""


@dataclass(frozen=True, slots=True)
class ReplayTables:
    """What replaying one device came to, as far as it is not made again."""

    lives: Lifetimes
    rests: Rests
    active: Levels
    allocated: Levels
    reserved: ReservedLevels


def oddities_of(replay: Replay) -> Mapping[str, int]:
    """What of a history contradicts itself: what, and how often; only what there is.

    The words go on "The file contradicts itself: ...". It is drawn as it comes out all the
    same. What could not even be a number of its kind is counted in `Snapshot.oddities`.
    """
    oddities = {**dict(_of_end(replay.device)), **dict(_of_lives(replay))}
    oddities["frees of segments, or parts of them, that were not there"] = (
        replay.spans.num_lost
    )
    oddities[
        "moments at which more memory was released to the device than was reserved"
    ] = replay.reserved.num_below_zero
    return {sentence: count for sentence, count in oddities.items() if count}


def _of_end(device: DeviceSnapshot) -> Iterator[tuple[str, int]]:
    """Of the segments and blocks at the end; none overlaps another."""
    segments, blocks = device.segments, device.blocks
    ends = segments.address + segments.total_size
    outside = blocks.address < segments.address[blocks.segment]
    outside |= blocks.address + blocks.size > ends[blocks.segment]
    yield "blocks that reach out of their segment", _num(outside)


def _of_lives(replay: Replay) -> Iterator[tuple[str, int]]:
    """Of allocations and the blocks that are recorded at the end."""
    lives, events = replay.lives, replay.device.events
    blocks = replay.device.active_blocks()
    is_open = lives.gone == replay.num_events
    ended = lives.gone[~is_open & (lives.gone >= 0)]
    sentence = "allocations at an address that was still in use"
    yield sentence, _num(events.action[ended] == ALLOC)
    yield "frees of what was free already", lives.num_lost
    rows = np.flatnonzero((lives.born >= 0) & (lives.freed < replay.num_events))
    rows = rows[events.action[lives.freed[rows]] != ALLOC]
    # Old releases write a block's size where others write the request.
    less = events.size[lives.freed[rows]] < events.size[lives.born[rows]]
    yield "frees smaller than their allocation", _num(less)
    block = blocks.rows_at(lives.addr)
    is_shown = block != NOTHING
    knows_end = replay.snapshot.has_segments and not replay.device.is_host
    if knows_end or len(replay.device.blocks):
        sentence = "allocations that were never freed and are missing at the end"
        yield sentence, _num(is_open & ~is_shown)
    is_late = np.zeros(len(blocks.addr), np.bool_)
    is_late[block[is_shown]] = True
    is_late[block[is_shown & is_open]] = False
    yield "blocks that are active at the end and were freed before", _num(is_late)
    by_event = np.flatnonzero(is_open & is_shown & (lives.born >= 0))
    smaller = lives.size[by_event] < events.size[lives.born[by_event]]
    yield "allocations larger than their block at the end", _num(smaller)


def _num(wrong: Ints) -> int:
    return int(np.count_nonzero(wrong))
