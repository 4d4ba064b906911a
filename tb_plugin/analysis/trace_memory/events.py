"""Memory events of a trace: their devices, and which event freed which allocation.

An address may be used again and again, on each device by itself: an allocation belongs
to the next event of its device and address, if that one frees. What was allocated
before the trace began has a release only; what outlives it has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, Table, numbered

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.trace.details import MemoryEvents


@dataclass(frozen=True, slots=True, eq=False)
class MemoryPairs:
    """By event of the trace."""

    release: Ints
    """(events,): of an allocation the event that frees it, or NOTHING."""
    allocation: Ints
    """(events,): of a release the allocation that it frees, or NOTHING."""
    reuse: Ints
    """(events,): of an allocation the next one at its address where no release lies
    between, for that was not seen; or NOTHING."""
    are_known: bool
    """Whether the trace has addresses at all; without them nothing is paired."""

    @property
    def is_reused(self) -> Flags:
        """(events,): of an allocation, whether its release was not seen."""
        is_reused: Flags = self.reuse != NOTHING
        return is_reused


def memory_pairs(memory: MemoryEvents) -> MemoryPairs:
    """The pairs of a trace's events, which are in order of time."""
    num = len(memory)
    release = np.full(num, NOTHING, dtype=np.int64)
    allocation = np.full(num, NOTHING, dtype=np.int64)
    addressed = memory.address != 0
    rows = np.flatnonzero(addressed & (memory.num_bytes != 0))
    # Stable: of one device and address the events stay in order of time.
    order = rows[
        np.lexsort(
            (
                memory.address[rows],
                memory.device[rows],
                memory.device_type[rows],
            )
        )
    ]
    first, second = order[:-1], order[1:]
    same = (
        (memory.address[first] == memory.address[second])
        & (memory.device[first] == memory.device[second])
        & (memory.device_type[first] == memory.device_type[second])
        & (memory.num_bytes[first] > 0)
    )
    freed = same & (memory.num_bytes[second] < 0)
    release[first[freed]] = second[freed]
    allocation[second[freed]] = first[freed]
    reuse = np.full(num, NOTHING, dtype=np.int64)
    reuse[first[same & ~freed]] = second[same & ~freed]
    return MemoryPairs(release, allocation, reuse, bool(addressed.any()) or not num)


@dataclass(frozen=True, slots=True, eq=False)
class MemoryDevices(Table):
    """Devices of any type, by (type, index)."""

    device_type: Ints  # (devices,): see `MemoryEvents`
    device: Ints
    of_event: Ints
    """(events,): index in the columns above."""

    def events_of(self, index: int) -> Ints:
        """Rows of a device's events, ascending."""
        return np.flatnonzero(self.of_event == index)

    def events_on(self, device: tuple[int, int] | None) -> Ints:
        """The same by the device's type and index; none of a device without events."""
        if device is None:
            return np.empty(0, np.int64)
        kind, index = device
        is_device = (self.device_type == kind) & (self.device == index)
        return np.flatnonzero(is_device[self.of_event])


def memory_devices(memory: MemoryEvents) -> MemoryDevices:
    """The devices of a trace's events."""
    first, of_event = numbered(memory.device_type, memory.device)
    return MemoryDevices(memory.device_type[first], memory.device[first], of_event)
