"""The route `/operator_memory`: memory of operators, over time, by allocation and holder."""

from __future__ import annotations

import itertools
import re
from typing import (
    TYPE_CHECKING,
    Annotated,
    ClassVar,
    Final,
)

import numpy as np
from msgspec import Meta

from memboard.collector.format.memory import CATEGORIES, FOLDS_INTO
from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.analysis.trace_memory.pictures import memory_curve
from memboard.tb_plugin.api.operators import (
    OperatorCharge,
    OperatorMemoryResponse,
    TraceDevice,
    TraceMemoryCategory,
    TraceMemoryCurve,
)
from memboard.tb_plugin.contract.parameters import Pixels
from memboard.tb_plugin.contract.table import Column, Table, titled
from memboard.tb_plugin.facts.traces.profiled import MS, TableQuery, of_profile
from memboard.tb_plugin.pages.operators.allocations import (
    HoldersBy,
    allocations_of,
    peak_of,
)

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.analysis.trace_memory.events import MemoryDevices
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.profile import ProfileChoice

Milliseconds = Annotated[
    float, Meta(ge=-1e12, le=1e12, description="a number of milliseconds")
]

_DEVICE: Final = re.compile(r"(-?\d{1,19}):(-?\d{1,19})", re.ASCII)
_MAX_DEVICES: Final = 256

_KINDS: Final = {
    0: "CPU",
    1: "CUDA",
    6: "HIP",
    9: "XLA",
    12: "XPU",
    13: "MPS",
    15: "HPU",
    19: "MTIA",
    20: "PrivateUse1",
}  # torch's `DeviceType`

_OPERATORS: Final = Table(
    (
        Column(
            "name", "Operator", unit="name", help="The operator as PyTorch names it"
        ),
        Column("num_calls", "Calls", unit="count", help="How often it was called"),
        Column(
            "self_increase_bytes",
            "Self increase",
            unit="bytes",
            help="Allocated minus freed memory of the operator, without the operators it calls",
            bar="forward",
        ),
        Column(
            "increase_bytes",
            "Increase",
            unit="bytes",
            help="Allocated minus freed memory of the operator and the operators it calls",
            bar="forward",
        ),
        Column(
            "self_num_allocations",
            "Self allocs",
            unit="count",
            help="Allocations, without those of the operators it calls",
        ),
        Column(
            "num_allocations",
            "Allocs",
            unit="count",
            help="Allocations, with those of the operators it calls",
        ),
        Column(
            "self_allocated_bytes",
            "Self allocated",
            unit="bytes",
            help="Sum of its allocations, whatever was freed later",
            bar="forward",
        ),
        Column(
            "allocated_bytes",
            "Allocated",
            unit="bytes",
            help="Sum of its allocations and those of the operators it calls",
            bar="forward",
        ),
    ),
    max_text=500,
)
CATEGORIES_SENT: Final = tuple(
    TraceMemoryCategory(name=name, group=FOLDS_INTO[name])  # type: ignore[arg-type]
    for name in CATEGORIES
)


class Device(tuple[int, int]):
    """Type and index of a device, as traces number them, which is any way at all."""

    __slots__ = ()

    EXPECTED: ClassVar = "a device as `type:index`"

    @classmethod
    def parse(cls, text: str) -> Device:
        """Two whole numbers with a colon between them.

        Raises:
            ValueError: it is no such text.
        """
        found = _DEVICE.fullmatch(text)
        if found is None:
            raise ValueError(f"not {cls.EXPECTED}")
        return cls((int(found[1]), int(found[2])))


class OperatorMemoryQuery(TableQuery, frozen=True):
    """Memory of one device, in a window of milliseconds since the trace's start."""

    by: HoldersBy = "category"
    """What rows of the peak's holders are one of."""

    device: Device | None = None
    charge: OperatorCharge = "allocating"
    t0: Milliseconds | None = None
    t1: Milliseconds | None = None
    px: Pixels = 1200


@of_profile("operator_memory", OperatorMemoryQuery)
def operator_memory_of(
    run: RunSummary,
    choice: ProfileChoice,
    profile: TraceProfile,
    query: OperatorMemoryQuery,
) -> OperatorMemoryResponse:
    """Memory of one device of a trace; nothing where it has no such device."""
    trace = profile.trace
    devices = _devices(profile)
    chosen = _chosen(devices, query)
    start = trace.start_ns
    window = _window((start, trace.end_ns), query)
    table = profile.operator_memory(
        query.charge, None if query.t0 is query.t1 is None else window
    )
    events = own = np.empty(0, np.int64)
    if chosen is not None:
        events = _on(profile.memory_devices, chosen)
        same = (table.device_type == chosen[0]) & (table.device == chosen[1])
        own = np.flatnonzero(same)
    usual = "self_increase_bytes"
    asked = _OPERATORS.rows(table, trace.strings, query, usual, own)
    return OperatorMemoryResponse(
        run=run,
        choice=choice,
        devices=devices,
        device=None if chosen is None else _key(*chosen),
        charge=query.charge,
        duration_ms=0.0 if chosen is None else (trace.end_ns - start) / MS,
        curve=_curve(profile, events, window, query.px),
        operators=titled(
            _OPERATORS.sent(table, trace.strings, asked, usual),
            "Memory by operator",
            f"{counted(asked[1], 'operator')} with memory",
            "No operator allocated in this part.",
        ),
        categories=CATEGORIES_SENT,
        peak=peak_of(profile, events, window, query.by),
        allocations=allocations_of(profile, events, window),
        has_addresses=chosen is not None and profile.memory_pairs.are_known,
    )


def _curve(
    profile: TraceProfile, events: Ints, window: tuple[int, int], px: int
) -> TraceMemoryCurve:
    """What each event left holds until the next one, and the last to the end."""
    found = memory_curve(profile.trace.memory, events, window, px)
    times = np.repeat(found.time_ns, 2)
    if len(times):
        times = np.append(times[1:], max(window[1], times[-1]))
    return TraceMemoryCurve(
        time_ms=(times - profile.trace.start_ns) / MS,
        allocated_bytes=np.repeat(found.allocated_bytes, 2),
        reserved_bytes=np.repeat(found.reserved_bytes, 2),
    )


def _key(kind: int, index: int) -> str:
    return f"{kind}:{index}"


def _on(devices: MemoryDevices, device: tuple[int, int]) -> Ints:
    """Rows of a device's events."""
    kind, index = device
    same = (devices.device_type == kind) & (devices.device == index)
    return devices.events_of(int(np.flatnonzero(same)[0]))


def _devices(profile: TraceProfile) -> tuple[TraceDevice, ...]:
    """Every device of any kind that has events."""
    memory = profile.trace.memory
    capacity = {
        one.get("id"): one.get("totalGlobalMem") for one in profile.trace.facts.devices
    }
    known = profile.memory_devices
    places = zip(known.device_type.tolist(), known.device.tolist(), strict=True)
    found = []
    for place, (kind, index) in enumerate(itertools.islice(places, _MAX_DEVICES)):
        name = _KINDS.get(kind, f"device type {kind}")
        name = name if index < 0 else f"{name} {index}"
        events = known.events_of(place)
        peak = int(memory.allocated_bytes[events].max(initial=-1))
        total = capacity.get(index) if kind in (1, 6) else None
        found.append(
            TraceDevice(
                key=_key(kind, index),
                name=name,
                num_events=len(events),
                title=name if peak < 0 else f"{name}, peak {size_text(peak)}",
                capacity_bytes=float(total) if type(total) is int else None,
            )
        )
    return tuple(found)


def _chosen(
    devices: tuple[TraceDevice, ...], query: OperatorMemoryQuery
) -> tuple[int, int] | None:
    """The device asked for; else the accelerator, or what there is, with most events."""
    if not devices:
        return None
    keys = {one.key for one in devices}
    if query.device is not None:
        return query.device if _key(*query.device) in keys else None
    best = max(
        devices, key=lambda one: (not one.name.startswith("CPU"), one.num_events)
    )
    kind, _, index = best.key.partition(":")
    return int(kind), int(index)


def _window(span: tuple[int, int], query: OperatorMemoryQuery) -> tuple[int, int]:
    start = span[0] if query.t0 is None else span[0] + int(query.t0 * MS)
    end = span[1] if query.t1 is None else span[0] + int(query.t1 * MS)
    return max(start, span[0]), min(end, span[1])
