"""From an allocator's events to what lived from when to when, and how much at each.

An event's index is the moment just after it. Memory is *active* until free_completed
and *allocated* until free_requested, as torch counts them; releases that know only one
of the two, or the older `free`, end both at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, Table, begins, picked, places_in

if TYPE_CHECKING:
    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Flags, Ints


ACTIONS: Final = (
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
)
"""An event's action is its index here; -1: one that is not known."""

ALLOC: Final = ACTIONS.index("alloc")
FREE_REQUESTED: Final = ACTIONS.index("free_requested")
FREE_COMPLETED: Final = ACTIONS.index("free_completed")
FREE: Final = ACTIONS.index("free")
SEGMENT_ALLOC: Final = ACTIONS.index("segment_alloc")
SEGMENT_FREE: Final = ACTIONS.index("segment_free")
SEGMENT_MAP: Final = ACTIONS.index("segment_map")
SEGMENT_UNMAP: Final = ACTIONS.index("segment_unmap")
SNAPSHOT: Final = ACTIONS.index("snapshot")
OOM: Final = ACTIONS.index("oom")
ANNOTATE: Final = ACTIONS.index("annotate")

BEFORE: Final = -1
"""Born before the first event."""

_KEY_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class History(Table):
    """The events of one device, as columns of equal length."""

    action: Ints
    """Of any width, as is `stack`."""
    addr: Ints
    size: Ints
    stack: Ints  # -1: no stack


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks that were active when the snapshot was taken."""

    addr: Ints
    size: Ints
    """Bytes, rounded as the allocator does."""
    is_allocated: Flags
    """False: free was requested, and waits for another stream."""
    stack: Ints

    def rows_at(self, addr: Ints) -> Ints:
        """By address: the block that begins there; NOTHING where none does."""
        order = np.argsort(self.addr, kind="stable")
        return picked(order, places_in(self.addr[order], addr))


@dataclass(frozen=True, slots=True)
class Lifetimes(Table):
    """One row per allocation: those from before the first event first, then by birth."""

    addr: Ints
    size: Ints
    stack: Ints
    born: Ints
    """Index of its alloc, or `BEFORE`."""
    freed: Ints
    """Index of its free_requested; the number of events where there is none."""
    gone: Ints
    """Index of its free_completed, likewise."""
    num_lost: int
    """Frees of what is already free: events in between were lost, or are wrong."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Bytes after each event; `first` is the state before all of them."""

    first: int
    after: Ints

    @property
    def peak(self) -> tuple[int, int]:
        """The highest level and the event that first reached it; -1: it was so before."""
        event = int(np.argmax(self.after)) if len(self.after) else -1
        if event < 0 or int(self.after[event]) <= self.first:
            return self.first, BEFORE
        return int(self.after[event]), event

    def at(self, moments: Ints) -> Ints:
        """Bytes at some moments, of which any may be `BEFORE`."""
        if not len(self.after):
            return np.full(len(moments), self.first)
        return np.where(moments < 0, self.first, self.after[np.maximum(moments, 0)])


def lifetimes(
    history: History, blocks: Blocks, *, believes_end: bool = False
) -> Lifetimes:
    """Pair each allocation with the events that freed it.

    At one address allocations follow one another, so an alloc's end is the next free
    there. A free without an alloc is of memory from before; so is a block that is
    active at the end and was not allocated by any event.

    The events may not lead to the recorded end: it was taken later, or one of both was
    edited. What they leave allocated lives to the end of the history all the same, and
    no block is smaller than its request. A block at an address that they leave free came
    after them, or, where one `believes_end`, was there before them as well.
    """
    num_events = len(history)
    order, use, is_last_use = _uses(history)
    num_uses = int(use[-1]) + 1 if len(use) else 0
    action = history.action[order]
    teller = order[np.flatnonzero(np.diff(use, prepend=-1))]
    born = np.full(num_uses, BEFORE)
    freed = np.full(num_uses, num_events)
    gone = np.full(num_uses, num_events)
    is_requested, is_completed = action == FREE_REQUESTED, action == FREE_COMPLETED
    is_both = action == FREE
    # Backwards, so that of several the first counts.
    for ends, frees in ((freed, is_requested), (gone, is_completed)):
        rows = np.flatnonzero(frees | is_both)[::-1]
        ends[use[rows]] = order[rows]
    rows = np.flatnonzero(action == ALLOC)
    born[use[rows]] = order[rows]
    # What goes without a request was requested before the first event. But releases that
    # write only one of the two show it on what they allocate: there it stands for both.
    alone = freed > gone
    writes_both = bool(np.any(is_requested)) or not np.any(alone & (born != BEFORE))
    asked_before = alone & (born == BEFORE) & writes_both
    freed = np.where(asked_before, BEFORE, np.minimum(freed, gone))
    addr = history.addr[teller]
    waits = is_last_use & np.isin(addr, blocks.addr)
    gone = np.where(waits, gone, np.where(gone == num_events, freed, gone))
    kinds = (is_requested, is_completed, is_both)
    num_lost = sum(_num_repeated(use[frees]) for frees in kinds)
    # An address holds one allocation at a time: the next one ends what no event ended.
    next_use = np.append(teller[1:], num_events)
    gone = np.where(~is_last_use & (gone == num_events), next_use, gone)
    lives = Lifetimes(
        addr=addr,
        size=history.size[teller],
        stack=np.where(born == BEFORE, -1, history.stack[teller]),
        born=born,
        freed=np.minimum(freed, gone),
        gone=gone,
        num_lost=num_lost,
    )
    if not believes_end:
        row = blocks.rows_at(lives.addr)
        is_shown = (gone == num_events) & (row != NOTHING)
        size = lives.size.copy()
        size[is_shown] = np.minimum(size[is_shown], blocks.size[row[is_shown]])
        lives = replace(lives, size=size)
    of_block = gone == num_events if believes_end else np.ones(num_uses, np.bool_)
    return _sorted(_with_blocks(lives, blocks, num_events, addr[of_block]))


def levels(
    lives: Lifetimes, num_bytes: Ints, num_events: int, *, active: bool
) -> Levels:
    """Active, or allocated, bytes before all events and after each.

    Args:
        lives: the allocations.
        num_bytes: what each counts for: its block's bytes, as torch counts.
        num_events: how many events there are.
        active: whether what was freed counts until it is gone.
    """
    delta = np.zeros(num_events, np.int64)
    is_born = lives.born != BEFORE
    np.add.at(delta, lives.born[is_born], num_bytes[is_born])
    ends = lives.gone if active else lives.freed
    ended = (ends < num_events) & (ends != BEFORE)
    np.subtract.at(delta, ends[ended], num_bytes[ended])
    first = int(num_bytes[~is_born & (ends != BEFORE)].sum())
    return Levels(first, first + np.cumsum(delta))


def _uses(history: History) -> tuple[Ints, npt.NDArray[np.int32], Flags]:
    """Events of blocks by address and time, and which use of its address each is of.

    And of each use whether it is the last of its address.
    """
    is_of_block = np.zeros(256, np.bool_)  # by action; -1, not known, is the last
    is_of_block[[ALLOC, FREE_REQUESTED, FREE_COMPLETED, FREE]] = True
    relevant = np.flatnonzero(is_of_block[history.action])
    place, is_other = by_address(history.addr[relevant])
    order = relevant[place]
    begins = (history.action[order] == ALLOC) | is_other
    ends_with = np.append(is_other[begins], True)[1:]  # the next one's; none is behind
    use = np.cumsum(begins, dtype=np.int32) - np.int32(1)
    return order, use, ends_with


def by_address(addr: Ints) -> tuple[Ints, Flags]:
    """The stable order of addresses, and in it where another address than before comes.

    Addresses are multiples of something, and fewer than 2**63 apart: with the place
    behind it, one fits into a number, and numbers sort several times faster than places.
    """
    if not len(addr):
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    least = int(addr.min())
    above = addr - least  # may go round, and is then right as unsigned
    bits = int(np.bitwise_or.reduce(above.view(np.uint64)))
    shift = (bits & -bits).bit_length() - 1 if bits else 0
    place_bits = len(addr).bit_length()
    if (bits >> shift).bit_length() + place_bits > _KEY_BITS:
        order = np.argsort(addr, kind="stable")
        return order, begins(addr[order])
    keys = (above.view(np.uint64) >> np.uint64(shift)) << np.uint64(place_bits)
    keys |= np.arange(len(addr), dtype=np.uint64)
    keys.sort()
    places: Ints = (keys & np.uint64((1 << place_bits) - 1)).view(np.int64)
    keys >>= np.uint64(place_bits)
    return places, begins(keys)


def _num_repeated(use: npt.NDArray[np.int32]) -> int:
    """How many of a kind of free came after the first of their use; `use` ascends."""
    return int(np.count_nonzero(use[1:] == use[:-1]))


def _with_blocks(
    lifetimes: Lifetimes, blocks: Blocks, num_events: int, addr: Ints
) -> Lifetimes:
    """Add the active blocks at none of the addresses `addr`."""
    row = blocks.rows_at(addr)
    missing = np.ones(len(blocks.addr), np.bool_)
    missing[row[row != NOTHING]] = False
    num = int(np.count_nonzero(missing))
    more = Lifetimes(
        addr=blocks.addr[missing],
        size=blocks.size[missing],
        stack=blocks.stack[missing],
        born=np.full(num, BEFORE),
        freed=np.where(~blocks.is_allocated[missing], BEFORE, num_events),
        gone=np.full(num, num_events),
        num_lost=0,
    )
    return Lifetimes.joined((lifetimes, more))


def _sorted(lifetimes: Lifetimes) -> Lifetimes:
    """By birth; those from before by when they went, the last one first.

    That is the order memory_viz stacks them in: what lives longest lies lowest, and of
    what is still there, the highest address.
    """
    before = np.flatnonzero(lifetimes.born == BEFORE)
    before = before[np.lexsort((-lifetimes.addr[before], -lifetimes.gone[before]))]
    born = np.flatnonzero(lifetimes.born != BEFORE)
    # An event bears one allocation at most: they sort by being put where it is.
    num_events = int(lifetimes.born.max()) + 1 if len(born) else 0
    of_event = np.full(num_events, -1, np.int32)
    of_event[lifetimes.born[born]] = born
    return lifetimes.take(np.concatenate([before, of_event[of_event >= 0]]))
