"""The devices that have memory events, and which events are whose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.trace.details import MemoryEvents

    Ints: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class MemoryDevices:
    """Devices of any type, by (type, index)."""

    device_type: Ints
    """(devices,): see `MemoryEvents`."""
    device: Ints
    of_event: Ints
    """(events,): index in the columns above."""

    def __len__(self) -> int:
        return len(self.device)

    def events_of(self, index: int) -> Ints:
        """Rows of a device's events, ascending."""
        return np.flatnonzero(self.of_event == index)


def memory_devices(memory: MemoryEvents) -> MemoryDevices:
    """The devices of a trace's events."""
    kinds, kind = np.unique(memory.device_type, return_inverse=True)
    indices, index = np.unique(memory.device, return_inverse=True)
    # Sorting one column of numbers is many times faster than sorting rows.
    both, of_event = np.unique(kind * len(indices) + index, return_inverse=True)
    return MemoryDevices(
        kinds[both // max(len(indices), 1)],
        indices[both % max(len(indices), 1)],
        of_event,
    )
