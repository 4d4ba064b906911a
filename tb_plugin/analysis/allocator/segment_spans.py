"""The memory that an allocator held of its device: from when to when, and how much.

A *span* is a piece of the device that was the allocator's from one event to another: a
segment from its segment_alloc to its segment_free, or a part of an expandable segment
from a segment_map to the segment_unmap that took it back. An unmap need not cover what
one map covered, so the addresses of expandable segments are cut wherever any of their
events, or a segment at the end, begins or ends; each piece then has a history of its own.

Reserved bytes end at the sum of the snapshot's segments: what that leaves for the time
before the first event was reserved before the recording began.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.allocator.lifetimes import (
    ALLOC,
    BEFORE,
    FREE,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    Blocks,
    History,
    Levels,
    lifetimes,
)
from memboard.tb_plugin.analysis.arrays import (
    NOTHING,
    Table,
    distinct,
    grouped,
    places_in,
    sums,
    within,
)

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.lifetimes import Lifetimes
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.snapshots.snapshot import DeviceSnapshot


MAX_PIECES: Final = 4_000_000
"""Pieces of all maps and unmaps together; real traces have some thousands."""

SMALL_SEGMENT_BYTES: Final = 2 << 20
"""A segment of the small pool, or a page of an expandable one."""
LARGE_PAGE_BYTES: Final = 20 << 20
"""A page of an expandable segment of the large pool."""


@dataclass(frozen=True, slots=True)
class Spans(Table):
    """Columns of equal length, in order of address and then of time."""

    address: Ints
    size: Ints
    stream: Ints
    pool: Ints
    """NOTHING where neither an event nor the end says it."""
    is_large: Flags
    is_expandable: Flags
    opened: Ints
    """The event that brought it, or `BEFORE`."""
    closed: Ints
    """The event that took it; the number of events where none did."""
    stack: Ints
    num_lost: int
    """Events that free or unmap what was not there, and maps that could not be followed."""

    def at(self, moment: int) -> Ints:
        """The rows that are there just after an event, by address."""
        return np.flatnonzero((self.opened <= moment) & (self.closed > moment))


def segment_spans(device: DeviceSnapshot) -> Spans:
    """Pair the segment events of a device, anchored to its segments at the end.

    What is there at the end and was brought by no event was there before; so was what
    is taken by an event and was brought by none.
    """
    whole = _followed(
        device,
        (SEGMENT_ALLOC, SEGMENT_FREE),
        ~device.segments.is_expandable,
    )
    pieces = _followed(
        device,
        (SEGMENT_MAP, SEGMENT_UNMAP),
        device.segments.is_expandable,
    )
    spans = Spans.joined((whole, pieces), num_lost=whole.num_lost + pieces.num_lost)
    spans = spans.take(np.lexsort((spans.opened, spans.address)))
    return replace(spans, pool=_shared_pools(spans))


class SpanIndex:
    """Which span an address was in at a moment, for many at once."""

    def __init__(self, spans: Spans, num_events: int) -> None:
        self._spans = spans
        self._step = num_events + 2
        ends = spans.address + spans.size
        self._cuts = distinct(np.concatenate([spans.address, ends]))
        first = np.searchsorted(self._cuts, spans.address)
        counts = np.searchsorted(self._cuts, ends) - first
        self.is_complete = int(counts.sum()) <= MAX_PIECES
        """Whether every span could be cut up; else each is known by its start alone."""
        counts = counts if self.is_complete else np.minimum(counts, 1)
        row = np.repeat(np.arange(len(spans)), counts)
        cell = np.repeat(first, counts) + within(counts)
        keys = cell * self._step + spans.opened[row] + 1
        order = np.argsort(keys, kind="stable")
        self._keys, self._rows, self._cells = keys[order], row[order], cell[order]

    def rows(self, address: Ints, moment: Ints) -> Ints:
        """Rows of the spans; NOTHING where the address was not the allocator's."""
        if not len(self._keys):
            return np.full(len(address), NOTHING, np.int64)
        cell = np.searchsorted(self._cuts, address, "right") - 1
        wanted = cell * self._step + moment + 1
        place = np.searchsorted(self._keys, wanted, "right") - 1
        cell_index = np.maximum(place, 0)
        row = self._rows[cell_index]
        is_there = (place >= 0) & (self._cells[cell_index] == cell)
        is_there &= self._spans.closed[row] > moment
        return np.where(is_there, row, NOTHING)


def _followed(device: DeviceSnapshot, actions: tuple[int, int], ending: Flags) -> Spans:
    """Spans of one kind: `actions` are what brings it and what takes it."""
    events, segments = device.events, device.segments
    brings, takes = actions
    rows = np.flatnonzero((events.action == brings) | (events.action == takes))
    last = np.flatnonzero(ending)
    address = np.concatenate([events.addr[rows], segments.address[last]])
    size = np.concatenate([events.size[rows], segments.total_size[last]])
    num_lost = 0
    if brings == SEGMENT_MAP:
        owner, address, size = _cut(address.astype(np.int64), size.astype(np.int64))
        if owner is None:
            num_lost = len(rows)
            rows = rows[:0]
            owner = np.arange(len(last))
            address, size = segments.address[last], segments.total_size[last]
    else:
        owner = np.arange(len(address))
    is_event = owner < len(rows)
    row = rows[owner[is_event]]
    end = last[owner[~is_event] - len(rows)]
    history = History(
        action=np.where(events.action[row] == brings, ALLOC, FREE),
        addr=address[is_event],
        size=size[is_event],
        stack=events.stack[row].astype(np.int64),
    )
    blocks = Blocks(
        addr=address[~is_event],
        size=size[~is_event],
        is_allocated=np.ones(len(end), np.bool_),
        stack=segments.stack[end],
    )
    lives = lifetimes(history, blocks, believes_end=True)
    # Events of the device in place of those that were paired; the last one is for -1.
    at_event = np.concatenate([row, [len(events), BEFORE]])
    lives = replace(lives, born=at_event[lives.born], gone=at_event[lives.gone])
    told = _described(device, lives, blocks.addr, end)
    return replace(told, num_lost=told.num_lost + num_lost)


def _cut(address: Ints, size: Ints) -> tuple[Ints | None, Ints, Ints]:
    """Ranges cut at every place where one begins or ends.

    For each piece, range by range: which range it is of (None: there are too many
    pieces), its address and its size.
    """
    ends = address + size
    cuts = distinct(np.concatenate([address, ends]))
    first = np.searchsorted(cuts, address)
    counts = np.maximum(np.searchsorted(cuts, ends) - first, 0)
    if int(counts.sum()) > MAX_PIECES:
        return None, address, size
    owner = np.repeat(np.arange(len(address)), counts)
    cell = np.repeat(first, counts) + within(counts)
    return owner, cuts[cell], np.diff(cuts, append=0)[cell]


def _described(
    device: DeviceSnapshot, lifetimes: Lifetimes, end_address: Ints, end_row: Ints
) -> Spans:
    """What the segments at the end say of each span, else the events."""
    events, segments = device.events, device.segments
    # The event that brought it; of what was there before, the one that took it.
    event = np.where(lifetimes.born >= 0, lifetimes.born, lifetimes.gone)
    by_event = event < len(events)
    end, by_end = _end_rows(lifetimes, end_address, end_row, len(events))

    def told(nobody: Ints, of_event: Ints, of_end: Ints) -> Ints:
        nobody = _filled(nobody, by_event, of_event, event)
        return _filled(nobody, by_end, of_end, end)

    size = _filled(lifetimes.size, by_event, events.size, event)
    action = _filled(np.full(len(lifetimes), NOTHING), by_event, events.action, event)
    # The small pool maps page by page, so only what it unmaps is larger.
    is_large = np.where(
        action == SEGMENT_UNMAP,
        size % LARGE_PAGE_BYTES == 0,
        size > SMALL_SEGMENT_BYTES,
    )
    is_paged = np.isin(action, (SEGMENT_MAP, SEGMENT_UNMAP))
    nothing = np.full(len(lifetimes), NOTHING, np.int64)
    return Spans(
        address=lifetimes.addr,
        size=lifetimes.size,
        stream=told(np.zeros(len(lifetimes), np.int64), events.stream, segments.stream),
        pool=told(nothing, events.pool, segments.pool),
        is_large=_filled(is_large, by_end, segments.is_large, end),
        is_expandable=_filled(is_paged, by_end, segments.is_expandable, end),
        opened=lifetimes.born,
        closed=lifetimes.gone,
        stack=lifetimes.stack,
        num_lost=lifetimes.num_lost,
    )


def _shared_pools(spans: Spans) -> Ints:
    """Pools of all spans: one expandable segment, whose parts touch, is of one pool."""
    pool: Ints = spans.pool.copy()
    rows = np.flatnonzero(spans.is_expandable)
    if not len(rows):
        return pool
    address = spans.address[rows]
    end = np.maximum.accumulate(address + spans.size[rows])
    first = np.flatnonzero(np.append(True, address[1:] > end[:-1]))
    pool_of_segment = np.maximum.reduceat(pool[rows], first)
    shared = np.repeat(pool_of_segment, np.diff(np.append(first, len(rows))))
    pool[rows] = np.where(pool[rows] == NOTHING, shared, pool[rows])
    return pool


def _end_rows(
    lifetimes: Lifetimes, end_address: Ints, end_row: Ints, num_events: int
) -> tuple[Ints, Flags]:
    """Row of the segment at the end that each is a part of, and whether there is one."""
    order = np.argsort(end_address, kind="stable")
    place = places_in(end_address[order], lifetimes.addr)
    is_there = (lifetimes.gone == num_events) & (place != NOTHING)
    row = np.zeros(len(lifetimes), np.int64)
    row[is_there] = end_row[order[place[is_there]]]
    return row, is_there


def _filled(otherwise: Ints, where: Flags, column: Ints, rows: Ints) -> Ints:
    """`column[rows]` in some places, what was there before in the others."""
    filled: Ints = otherwise.copy()
    filled[where] = column[rows[where]]
    return filled


@dataclass(frozen=True, slots=True)
class ReservedLevels:
    """Reserved bytes of a device."""

    levels: Levels
    num_below_zero: int
    """Moments at which more was given back than there was: events were lost, or are
    wrong. The levels are as they come out."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed by group and event; an event may change several groups."""

    first: Ints
    """(groups,): bytes before the first event."""
    event: Ints
    group: Ints
    delta: Ints

    def levels(self, group: int) -> tuple[Ints, Ints]:
        """The events at which a group changed, and its bytes after each."""
        rows = self.group == group
        return self.event[rows], np.cumsum(self.delta[rows]) + int(self.first[group])


def reserved(device: DeviceSnapshot) -> ReservedLevels:
    """Reserved bytes after each event of a device."""
    action = device.events.action
    sign = np.zeros(128, np.int64)  # by action; also of -1, which stands for unknown
    sign[[SEGMENT_ALLOC, SEGMENT_MAP]] = 1
    sign[[SEGMENT_FREE, SEGMENT_UNMAP]] = -1
    rows = np.flatnonzero(sign[action])
    delta = np.zeros(len(action), np.int64)
    delta[rows] = sign[action[rows]] * device.events.size[rows]
    after = np.cumsum(delta)
    first = device.reserved_bytes - (int(after[-1]) if len(after) else 0)
    after += first
    num_below = int(np.count_nonzero(after[rows] < 0)) + (first < 0)
    return ReservedLevels(Levels(first, after), num_below)


def reserved_by(spans: Spans, group: Ints, num_groups: int, num_events: int) -> Changes:
    """Reserved bytes by any grouping of the spans, such as their pool or their stream.

    Rows whose group is negative count for none.
    """
    counts = group >= 0
    before = counts & (spans.opened < 0)
    first = sums(group[before], spans.size[before], num_groups)
    came = np.flatnonzero(counts & (spans.opened >= 0))
    went = np.flatnonzero(counts & (spans.closed < num_events))
    event = np.concatenate([spans.opened[came], spans.closed[went]])
    delta = np.concatenate([spans.size[came], -spans.size[went]])
    keys = event * num_groups + group[np.concatenate([came, went])]
    distinct_keys, place = grouped(keys)
    total = sums(place, delta, len(distinct_keys))
    return Changes(
        first, distinct_keys // num_groups, distinct_keys % num_groups, total
    )
