"""From an allocator's events to what lived from when to when, and how much at each.

An event's index is the moment just after it. Memory is *active* until free_completed
and *allocated* until free_requested, as torch counts them; releases that know only one
of the two, or the older `free`, end both at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints: TypeAlias = npt.NDArray[np.int64]
    Flags: TypeAlias = npt.NDArray[np.bool_]

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

BEFORE: Final = -1
"""Born before the first event."""


@dataclass(frozen=True, slots=True)
class History:
    """The events of one device, as columns of equal length."""

    action: Ints
    addr: Ints
    size: Ints
    """Bytes, as asked for."""
    stack: Ints
    """-1: no stack."""

    def __len__(self) -> int:
        return len(self.action)


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks that were active when the snapshot was taken."""

    addr: Ints
    size: Ints
    """Bytes, rounded as the allocator does."""
    is_allocated: Flags
    """False: free was requested, and waits for another stream."""
    stack: Ints


@dataclass(frozen=True, slots=True)
class Lifetimes:
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

    def __len__(self) -> int:
        return len(self.addr)


@dataclass(frozen=True, slots=True)
class Levels:
    """Bytes after each event; `first` is the state before all of them."""

    first: int
    after: Ints

    @property
    def peak(self) -> tuple[int, int]:
        """The highest level and the event that first reached it; -1: it was so before."""
        at = int(np.argmax(self.after)) if len(self.after) else -1
        if at < 0 or int(self.after[at]) <= self.first:
            return self.first, BEFORE
        return int(self.after[at]), at


def lifetimes(history: History, blocks: Blocks) -> Lifetimes:
    """Pair each allocation with the events that freed it.

    At one address allocations follow one another, so an alloc's end is the next free
    there. A free without an alloc is of memory from before; so is a block that is
    active at the end and was not allocated by any event.
    """
    num_events = len(history)
    order, use = _uses(history)
    num_uses = int(use[-1]) + 1 if len(use) else 0
    action = history.action[order]
    teller = order[np.flatnonzero(np.diff(use, prepend=-1))]
    born = np.full(num_uses, BEFORE)
    freed = np.full(num_uses, num_events)
    gone = np.full(num_uses, num_events)
    # Backwards, so that of several the first counts.
    for ends, actions in (
        (freed, (FREE_REQUESTED, FREE)),
        (gone, (FREE_COMPLETED, FREE)),
    ):
        rows = np.flatnonzero(np.isin(action, actions))[::-1]
        ends[use[rows]] = order[rows]
    rows = np.flatnonzero(action == ALLOC)
    born[use[rows]] = order[rows]
    # Of releases that write only one of the two, the one stands for both.
    freed = np.minimum(freed, gone)
    addr = history.addr[teller]
    is_last = np.diff(addr, append=addr[-1:] + 1) != 0
    waits = is_last & np.isin(addr, blocks.addr)
    gone = np.where(waits, gone, np.where(gone == num_events, freed, gone))
    frees = np.isin(action, (FREE_REQUESTED, FREE_COMPLETED, FREE))
    num_lost = int(np.count_nonzero(_repeated(action, use, frees)))
    found = Lifetimes(
        addr=addr,
        size=history.size[teller],
        stack=np.where(born == BEFORE, -1, history.stack[teller]),
        born=born,
        freed=freed,
        gone=gone,
        num_lost=num_lost,
    )
    return _sorted(_with_blocks(found, blocks, num_events))


def levels(
    lives: Lifetimes, num_events: int, end_bytes: int, *, active: bool
) -> Levels:
    """Active, or allocated, bytes after each event, so that they end at `end_bytes`.

    Sizes are as asked for, those of the end rounded: their difference is the first's.
    """
    delta = np.zeros(num_events, np.int64)
    born = lives.born != BEFORE
    np.add.at(delta, lives.born[born], lives.size[born])
    ends = lives.gone if active else lives.freed
    ended = (ends < num_events) & (ends != BEFORE)
    np.subtract.at(delta, ends[ended], lives.size[ended])
    after = np.cumsum(delta)
    first = end_bytes - (int(after[-1]) if num_events else 0)
    return Levels(first, after + first)


def _uses(history: History) -> tuple[Ints, Ints]:
    """Events of blocks by address and time, and which use of its address each is of."""
    relevant = np.flatnonzero(
        np.isin(history.action, (ALLOC, FREE_REQUESTED, FREE_COMPLETED, FREE))
    )
    order = relevant[np.argsort(history.addr[relevant], kind="stable")]
    addr = history.addr[order]
    begins = (history.action[order] == ALLOC) | (
        np.diff(addr, prepend=addr[:1] - 1) != 0
    )
    return order, np.cumsum(begins) - 1


def _repeated(action: Ints, use: Ints, frees: Flags) -> Flags:
    """Frees of one kind after the first of a use."""
    rows = np.flatnonzero(frees)
    keys = use[rows] * len(ACTIONS) + action[rows]
    _, first = np.unique(keys, return_index=True)
    repeated: Flags = np.ones(len(rows), np.bool_)
    repeated[first] = False
    return repeated


def _with_blocks(found: Lifetimes, blocks: Blocks, num_events: int) -> Lifetimes:
    """Add the active blocks that no event allocated."""
    is_open = found.gone == num_events
    missing = ~np.isin(blocks.addr, found.addr[is_open])
    num = int(np.count_nonzero(missing))
    pending = ~blocks.is_allocated[missing]
    return Lifetimes(
        addr=np.concatenate([found.addr, blocks.addr[missing]]),
        size=np.concatenate([found.size, blocks.size[missing]]),
        stack=np.concatenate([found.stack, blocks.stack[missing]]),
        born=np.concatenate([found.born, np.full(num, BEFORE)]),
        freed=np.concatenate([found.freed, np.where(pending, BEFORE, num_events)]),
        gone=np.concatenate([found.gone, np.full(num, num_events)]),
        num_lost=found.num_lost,
    )


def _sorted(found: Lifetimes) -> Lifetimes:
    """By birth; those from before by when they were freed, the last one first.

    That is the order memory_viz stacks them in: what lives longest lies lowest.
    """
    order = np.lexsort((-found.freed, found.born))
    return Lifetimes(
        addr=found.addr[order],
        size=found.size[order],
        stack=found.stack[order],
        born=found.born[order],
        freed=found.freed[order],
        gone=found.gone[order],
        num_lost=found.num_lost,
    )
