"""Memory by operator: what each allocated, and what was left of it.

An event belongs to the innermost operator around it on its thread; where an annotation
is closer (old traces list steps and optimizers among operators), or nothing is around it,
to none. What an operator allocated is charged to it
again when it is freed, whoever frees it: so a backward pass that frees activations does
not look as if it made memory. `charge="freeing"` is torch-tb-profiler's way instead: what
is freed counts for the operator that is under way then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, Table, grouped, picked, sums

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.operators.operator_times import OperatorTimes
    from memboard.tb_plugin.analysis.trace_memory.events import (
        MemoryDevices,
        MemoryPairs,
    )


Charge: TypeAlias = Literal["allocating", "freeing"]


@dataclass(frozen=True, slots=True, eq=False)
class OperatorMemory(Table):
    """One row per device and operator that has events there; in no order."""

    device_type: Ints
    device: Ints
    name: Ints  # Row of `Trace.strings`
    num_calls: Ints
    """Of the operator, in the query's range."""
    increase_bytes: Ints
    """Allocated less freed, with the operators in it."""
    self_increase_bytes: Ints
    num_allocations: Ints
    self_num_allocations: Ints
    allocated_bytes: Ints
    """Allocated, whether it was freed or not."""
    self_allocated_bytes: Ints

    def rows_on(self, device: tuple[int, int] | None) -> Ints:
        """Rows of a device by its type and index; None: of no device."""
        if device is None:
            return np.empty(0, np.int64)
        kind, index = device
        return np.flatnonzero((self.device_type == kind) & (self.device == index))


def operator_memory(
    times: OperatorTimes,
    pairs: MemoryPairs,
    devices: MemoryDevices,
    *,
    range_ns: tuple[int, int] | None = None,
    charge: Charge = "allocating",
) -> OperatorMemory:
    """The table of a trace, of events and calls within a range of time."""
    trace, memory = times.trace, times.trace.memory
    owner = times.memory_operators.copy()
    if charge == "allocating":
        paired = pairs.allocation != NOTHING
        owner[paired] = times.memory_operators[pairs.allocation[paired]]
    counted = picked(times.is_listed, owner, False)
    called = times.is_listed.copy()
    if range_ns is not None:
        start, end = range_ns
        counted &= (memory.time_ns >= start) & (memory.time_ns <= end)
        begins = trace.slices.start_ns
        called &= (begins <= end) & (begins + trace.slices.duration_ns >= start)
    events = np.flatnonzero(counted)
    charged = _charged_rows(times, owner[events])
    num_bytes = memory.num_bytes[events].astype(np.int64)
    return _table(times, called, devices, events, charged, num_bytes)


def _charged_rows(times: OperatorTimes, rows: Ints) -> list[tuple[Ints, Ints]]:
    """Events and names that each is charged to: its operator's, then those around it.

    An event counts once for a name, however often that is around it.
    """
    names, parent = times.trace.slices.name, times.operators.parent
    active = np.arange(len(rows))
    charged: list[tuple[Ints, Ints]] = []
    seen: list[Ints] = []
    while len(active):
        row = rows
        name = names[row].astype(np.int64)
        new = times.is_listed[row]
        for earlier in seen:
            new &= earlier[active] != name
        charged.append((active[new], name[new]))
        latest = np.full(len(seen[0]) if seen else len(active), NOTHING, dtype=np.int64)
        latest[active] = name
        seen.append(latest)
        around = parent[row]
        inner = around != NOTHING
        active, rows = active[inner], around[inner]
    return charged


def _table(
    times: OperatorTimes,
    called: Flags,
    devices: MemoryDevices,
    events: Ints,
    charged: list[tuple[Ints, Ints]],
    num_bytes: Ints,
) -> OperatorMemory:
    trace = times.trace
    event = np.concatenate(
        [charged_events for charged_events, _ in charged] or [np.empty(0, np.int64)]
    )
    name = np.concatenate([names for _, names in charged] or [np.empty(0, np.int64)])
    # The first are those of the operators themselves.
    own = np.arange(len(event)) < (len(charged[0][0]) if charged else 0)
    num_names = max(len(trace.strings), 1)
    keys = devices.of_event[events][event].astype(np.int64) * num_names + name
    distinct_keys, group = grouped(keys)
    device, names = np.divmod(distinct_keys, num_names)
    changed = num_bytes[event]
    allocated = np.maximum(changed, 0)

    def added(values: Ints, chosen: Flags | slice = slice(None)) -> Ints:
        return sums(group[chosen], values[chosen], len(distinct_keys))

    calls = np.bincount(trace.slices.name[called], minlength=len(trace.strings))
    ones = (changed > 0).astype(np.int64)
    return OperatorMemory(
        device_type=devices.device_type[device],
        device=devices.device[device],
        name=names,
        num_calls=calls[names],
        increase_bytes=added(changed),
        self_increase_bytes=added(changed, own),
        num_allocations=added(ones),
        self_num_allocations=added(ones, own),
        allocated_bytes=added(allocated),
        self_allocated_bytes=added(allocated, own),
    )
