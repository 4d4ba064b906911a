"""Sums of live memory at a moment, over a range of events or in pixel columns.

Sizes are as requested (of blocks from before the recording: as rounded), so sums here
and the heights of the picture (`stacking`) are the same numbers. What is freed but not
yet gone, because another stream uses it, still lives. An address is used again and again:
its allocations are told apart by how often it had been used before (`versions`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.allocator.stacking import seen
from memboard.tb_plugin.analysis.arrays import (
    NOTHING,
    changes,
    largest_groups,
    nth,
    picked,
    places_in,
    sums,
)

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.lifetimes import Lifetimes
    from memboard.tb_plugin.analysis.arrays import Ints


@dataclass(frozen=True, slots=True)
class LiveTotals:
    """What lives at a moment."""

    num: int
    active_bytes: int
    allocated_bytes: int
    """Without what was freed and is not yet gone."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Bytes and number by group."""

    num_bytes: Ints
    num: Ints


@dataclass(frozen=True, slots=True)
class StackSums:
    """Bytes and number by stack, of those that occur; most bytes first."""

    stack: Ints  # NOTHING: without a stack
    num_bytes: Ints
    num: Ints

    def cut(self, most: int, others: int) -> StackSums:
        """The first ones, and one more of that number for all others, if there are any."""
        if len(self.stack) <= most:
            return self
        return StackSums(
            np.append(self.stack[:most], others),
            np.append(self.num_bytes[:most], self.num_bytes[most:].sum()),
            np.append(self.num[:most], self.num[most:].sum()),
        )


@dataclass(frozen=True, slots=True)
class RangeSums:
    """What became, by group, of what was allocated in a range of events."""

    allocated: Sums
    freed: Sums
    """Gone again by the end of the range."""
    live: Sums
    """Still there at its end."""


@dataclass(frozen=True, slots=True)
class RangeStacks:
    """Sums of a range by stack; most live bytes first, of equal ones most allocated."""

    stack: Ints  # NOTHING: without a stack
    sums: RangeSums


@dataclass(frozen=True, slots=True)
class Siblings:
    num: int
    """That live at a moment."""
    num_bytes: int
    num_ever: int


def live_rows(lives: Lifetimes, moment: int) -> Ints:
    """Rows of what lives just after an event, in order of birth."""
    # Of those born by then, which come first, the ones that are not gone.
    born = int(np.searchsorted(lives.born, moment, "right"))
    return np.flatnonzero(lives.gone[:born] > moment)


def held_rows(lives: Lifetimes, moment: int) -> Ints:
    """The same without what was freed, and another stream may still use."""
    rows = live_rows(lives, moment)
    return rows[lives.freed[rows] > moment]


def live_totals(lives: Lifetimes, rows: Ints, moment: int) -> LiveTotals:
    """Totals of `live_rows`, or of some of them."""
    size = lives.size[rows]
    allocated = size[lives.freed[rows] > moment]
    return LiveTotals(len(rows), int(size.sum()), int(allocated.sum()))


def summed(lives: Lifetimes, rows: Ints, group: Ints, num_groups: int) -> Sums:
    """Bytes and number by group; `group` is a column over all lives."""
    own = group[rows]
    num_bytes = sums(own, lives.size[rows], num_groups)
    return Sums(num_bytes, np.bincount(own, minlength=num_groups))


def by_stack(lives: Lifetimes, rows: Ints) -> StackSums:
    """Bytes and number by stack."""
    stack, num_bytes, place = largest_groups(lives.stack[rows], lives.size[rows])
    return StackSums(stack, num_bytes, np.bincount(place, minlength=len(stack)))


def heaviest_groups(
    lives: Lifetimes,
    rows: Ints | None,
    stacks: Ints,
    group: Ints,
    num_groups: int,
) -> Ints:
    """By stack of `stacks`: the group that most of its bytes are of, among some rows.

    `rows`: of lives; None: all. `group`: a column over all lives.
    """
    rows = np.arange(len(lives)) if rows is None else rows
    order = np.argsort(stacks, kind="stable")
    place = picked(order, places_in(stacks[order], lives.stack[rows]))
    rows, place = rows[place >= 0], place[place >= 0]
    key = place * num_groups + group[rows].astype(np.int64)
    bytes_by_group = sums(key, lives.size[rows], len(stacks) * num_groups)
    heaviest: Ints = np.argmax(bytes_by_group.reshape(len(stacks), num_groups), axis=1)
    return heaviest


def born_in(lives: Lifetimes, first: int, last: int) -> Ints:
    """Rows of what the events `first` to `last`, inclusive, allocated."""
    start = int(np.searchsorted(lives.born, max(first, 0), "left"))
    return np.arange(start, int(np.searchsorted(lives.born, last, "right")))


def range_sums(
    lives: Lifetimes, first: int, last: int, group: Ints, num_groups: int
) -> RangeSums:
    """What was allocated from the event `first` to `last`, inclusive, by group."""
    rows = born_in(lives, first, last)
    is_live = lives.gone[rows] > last
    return RangeSums(
        allocated=summed(lives, rows, group, num_groups),
        freed=summed(lives, rows[~is_live], group, num_groups),
        live=summed(lives, rows[is_live], group, num_groups),
    )


def range_by_stack(lives: Lifetimes, rows: Ints, first: int, last: int) -> RangeStacks:
    """What became of some `rows` of those that the events `first` to `last` allocated."""
    # Numbers of stacks among those that occur, so that few are summed however many exist.
    stack, place = np.unique(lives.stack[rows], return_inverse=True)
    group = np.full(len(lives), len(stack), np.int64)
    group[rows] = place.reshape(-1)
    by_group = range_sums(lives, first, last, group, len(stack) + 1)
    allocated, live = by_group.allocated.num_bytes[:-1], by_group.live.num_bytes[:-1]
    order = np.lexsort((-allocated, -live))

    def ordered(sums: Sums) -> Sums:
        return Sums(sums.num_bytes[:-1][order], sums.num[:-1][order])

    return RangeStacks(
        stack[order],
        RangeSums(
            ordered(by_group.allocated), ordered(by_group.freed), ordered(by_group.live)
        ),
    )


def gone_in(lives: Lifetimes, first: int, last: int) -> Ints:
    """Rows of what went from the event `first` to `last`, and was born before them."""
    born = int(np.searchsorted(lives.born, first, "left"))
    gone = lives.gone[:born]
    return np.flatnonzero((gone >= first) & (gone <= last))


def siblings(lives: Lifetimes, life: int, moment: int) -> Siblings:
    """Allocations of the stack of one, itself included."""
    rows = np.flatnonzero(lives.stack == lives.stack[life])
    alive = rows[(lives.born[rows] <= moment) & (lives.gone[rows] > moment)]
    return Siblings(len(alive), int(lives.size[alive].sum()), len(rows))


def version_of(lives: Lifetimes, life: int) -> int:
    """The number of earlier allocations at the address of one."""
    return int(versions(lives, np.array([life]))[0])


def block_name(address: float, version: int) -> str:
    """`b7f3a40000000_2` of a block, `s7f…` of a segment, as in memory_viz."""
    digits = f"{int(address) & (2**64 - 1):x}"
    return f"s{digits}" if version < 0 else f"b{digits}_{version}"


def versions(lives: Lifetimes, rows: Ints) -> Ints:
    """By row: the number of earlier allocations at its address, as memory_viz counts."""
    if not len(rows):
        return np.empty(0, np.int64)
    addr = lives.addr[: int(rows.max()) + 1]
    # The page shows few: searching among them is faster than sorting all addresses.
    place = places_in(np.unique(addr[rows]), addr)
    same = np.flatnonzero(place != NOTHING)
    numbers: Ints = nth(place[same])[np.searchsorted(same, rows)]
    return numbers


MAX_CELLS: Final = 1 << 23
"""Groups times columns that are looked at for the largest; the least of more groups,
by bytes times columns, are among the others from the start."""


@dataclass(frozen=True, slots=True)
class Holders:
    """Live bytes by group at columns of events."""

    group: Ints
    """Of each slot, the group; the slot behind the last is that of all others."""
    column: Ints  # Of each change, ascending
    slot: Ints
    delta: Ints
    """Bytes; of column 0 all that lives there."""
    total: Ints
    """(columns,): bytes of all slots."""


def holders(
    lives: Lifetimes, group: Ints, num_groups: int, events: Ints, most: int
) -> Holders:
    """The `most` groups that hold most in any column, and all others in one slot.

    Sparse changes: adding up those of all columns up to one gives what each group holds
    there. The columns are those of the picture, so both add up to the same totals.

    Args:
        lives: the allocations, in order of birth.
        group: by life, from 0; a negative one counts among the others.
        num_groups: how many groups there are.
        events: those of the columns, ascending.
        most: slots at most, beside that of the others.
    """
    width = len(events)
    visible = seen(lives, events)
    rows, first, end = visible.rows, visible.first, visible.end
    size = lives.size[rows]
    chosen = _candidates(group[rows], num_groups, size * (end - first), width)
    slot_of = np.full(num_groups + 1, len(chosen), np.int64)  # the last one: negative
    slot_of[chosen] = np.arange(len(chosen))
    slot = slot_of[group[rows]]
    came = changes(first, end, size, width, slot, len(chosen) + 1)
    live_bytes = np.cumsum(came, axis=1)
    total = live_bytes.sum(axis=0)
    peak = live_bytes[:-1].max(axis=1, initial=0)
    kept = np.argsort(-peak, kind="stable")[:most]
    kept = kept[peak[kept] > 0]
    others = np.ones(len(chosen) + 1, np.bool_)
    others[kept] = False
    came = np.concatenate([came[kept], came[others].sum(axis=0)[None]])
    column, slot = np.nonzero(came.T)
    return Holders(chosen[kept], column, slot, came[slot, column], total)


def stack_holders(
    lives: Lifetimes, num_stacks: int, events: Ints, most: int
) -> Holders:
    """`holders` by stack; what has none is of the group NOTHING."""
    # Group 0 is for what has no stack, so that it has a slot like any other.
    by_group = holders(lives, lives.stack + 1, num_stacks + 1, events, most)
    return replace(by_group, group=by_group.group - 1)


def _candidates(group: Ints, num_groups: int, weight: Ints, width: int) -> Ints:
    """Groups that may be among the largest: all, if they are not too many."""
    weights = np.zeros(num_groups, np.float64)
    has_group = group >= 0
    np.add.at(weights, group[has_group], weight[has_group].astype(np.float64))
    room = MAX_CELLS // max(1, width)
    candidates = np.flatnonzero(weights)
    if len(candidates) > room:
        candidates = np.sort(
            candidates[np.argsort(-weights[candidates], kind="stable")[:room]]
        )
    return candidates
