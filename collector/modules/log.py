"""The log of a tracked window: rows of integers, appended while training runs.

An event is a number of bytes that came or went: (nanoseconds, signed bytes, code). A
boundary is a module entering a state: (nanoseconds, number of events so far, code, call
number). Both are kept flat in arrays of int64: a row is appended by one call into C, so
that a finalizer or another thread never cuts a row in two. Tables of "who holds what at
this boundary" are prefix sums, made by whoever reads the log.
"""

from __future__ import annotations

from array import array
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.memory import CATEGORIES, STATES

if TYPE_CHECKING:
    from memboard.collector.format.records import IntArray

CATEGORY: Final = {name: index for index, name in enumerate(CATEGORIES)}
STATE: Final = {name: index for index, name in enumerate(STATES)}

MAX_EVENTS: Final = 2**21
"""Events of one log: 50 MB of host memory, and three times that while its capture waits
to be written."""

MAX_DEVICES: Final = 2**6

# An event's code, from its low end: category, device, owner + 1, number of the storage.
DEVICE_SHIFT: Final = 6
OWNER_SHIFT: Final = 12
NUMBER_SHIFT: Final = 36
_OWNER_MASK: Final = (1 << (NUMBER_SHIFT - OWNER_SHIFT)) - 1
CATEGORY_MASK: Final = (1 << DEVICE_SHIFT) - 1
PLACE_MASK: Final = _OWNER_MASK << OWNER_SHIFT | CATEGORY_MASK

EVENT_WIDTH: Final = 3
BOUNDARY_WIDTH: Final = 4


def place(category: int, owner: int) -> int:
    """Category and owner module (-1: none) as they stand in a code."""
    return (owner + 1) << OWNER_SHIFT | category


def owner_of(code: int) -> int:
    """The owner module of a code; -1: none."""
    return (code >> OWNER_SHIFT & _OWNER_MASK) - 1


class EventLog:
    """Events and boundaries of everything between the first and the last open window."""

    def __init__(self, max_events: int = MAX_EVENTS) -> None:
        self.events = array("q")
        self.boundaries = array("q")
        self.max_length = max_events * EVENT_WIDTH
        """Of `events`: from there on no storage is added, only changed and freed."""
        self.num_dropped = 0
        """Storages that were not added."""

    @property
    def num_events(self) -> int:
        return len(self.events) // EVENT_WIDTH

    @property
    def num_boundaries(self) -> int:
        return len(self.boundaries) // BOUNDARY_WIDTH

    def mark(self, state: int, module: int, call: int, in_backward: bool) -> None:
        """Append a boundary; module -1 is the whole step."""
        events = len(self.events)
        if events >= self.max_length:
            return
        self.boundaries.extend(
            (
                perf_counter_ns(),
                events // EVENT_WIDTH,
                (module + 1) << 8 | state << 1 | in_backward,
                call,
            )
        )


def event_columns(
    alive: array[int], rows: array[int], start_ns: int
) -> dict[str, IntArray]:
    """The `events` table of a capture from flat rows.

    `alive`: what was there when the window began, at `start_ns`; these rows come first
    and have time 0, all others 1 us at least.
    """
    table = np.array(alive + rows, dtype=np.int64).reshape(-1, EVENT_WIDTH)
    codes = table[:, 2]
    return {
        "time_us": _microseconds(table[:, 0], start_ns, len(alive) // EVENT_WIDTH),
        "delta_bytes": table[:, 1].copy(),
        "category": codes & CATEGORY_MASK,
        "device": codes >> DEVICE_SHIFT & (MAX_DEVICES - 1),
        "module": (codes >> OWNER_SHIFT & _OWNER_MASK) - 1,
        "storage": codes >> NUMBER_SHIFT,
    }


def boundary_columns(
    rows: array[int], start_ns: int, event_offset: int
) -> dict[str, IntArray]:
    """The `boundaries` table; `event_offset` is added to each number of events."""
    table = np.array(rows, dtype=np.int64).reshape(-1, BOUNDARY_WIDTH)
    codes = table[:, 2]
    return {
        "time_us": _microseconds(table[:, 0], start_ns, 0),
        "event": table[:, 1] + event_offset,
        "module": (codes >> 8) - 1,
        "state": codes >> 1 & 0x7F,
        "in_backward": codes & 1,
        "call": table[:, 3].copy(),
    }


def _microseconds(times_ns: IntArray, start_ns: int, num_first: int) -> IntArray:
    """Microseconds since the start, never going back.

    Threads may meet between reading the clock and appending a row.
    """
    passed = np.maximum((times_ns - start_ns) // 1000, 1)
    passed[:num_first] = 0
    return np.maximum.accumulate(passed)
