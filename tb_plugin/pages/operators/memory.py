"""The route `/operator_memory`: memory of operators, over time, and by allocation."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeAlias

import numpy as np
from msgspec import Meta

from tb_plugin import api
from tb_plugin.analysis.allocator.curve import memory_curve
from tb_plugin.analysis.trace_memory.attribution import EVIDENCE
from tb_plugin.contract.wire import f64
from tb_plugin.pages.operators.allocations import (
    CATEGORIES_SENT,
    NO_ALLOCATIONS,
    allocations_of,
)
from tb_plugin.pages.operators.table_rows import rows_sent
from tb_plugin.pages.profile.asked import TableQuery, of_profile
from tb_plugin.server.parameters import Pixels

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.trace.profile import TraceProfile
    from tb_plugin.analysis.trace_memory.devices import MemoryDevices
    from tb_plugin.analysis.trace_memory.operators import OperatorMemory

    Ints: TypeAlias = npt.NDArray[Any]

Milliseconds = Annotated[
    float, Meta(ge=-1e12, le=1e12, description="a number of milliseconds")
]

_DEVICE: Final = re.compile(r"(-?\d{1,19}):(-?\d{1,19})", re.ASCII)
_MS: Final = 1e6
_MAX_DEVICES: Final = 256
_MAX_TEXT: Final = 500

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
}
"""torch's `DeviceType`."""

_COLUMNS: Final = (
    *("num_calls", "increase_bytes", "self_increase_bytes", "num_allocations"),
    *("self_num_allocations", "allocated_bytes", "self_allocated_bytes"),
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

    device: Device | None = None
    charge: api.OperatorCharge = "allocating"
    t0: Milliseconds | None = None
    t1: Milliseconds | None = None
    px: Pixels = 1200


@of_profile("operator_memory", OperatorMemoryQuery)
def operator_memory_of(
    run: api.RunSummary,
    choice: api.ProfileChoice,
    profile: TraceProfile | None,
    query: OperatorMemoryQuery,
) -> api.OperatorMemoryResponse:
    """Memory of one device of a trace; empty while it is being opened."""
    devices = () if profile is None else _devices(profile)
    chosen = _chosen(profile, devices, query)
    if profile is None or chosen is None:
        return _nothing(run, choice, devices, query)
    trace = profile.trace
    span = trace.start_ns, trace.end_ns
    window = _window(span, query)
    events = _on(profile.memory_devices, chosen)
    curve = memory_curve(trace.memory, events, window, query.px)
    table = profile.operator_memory(
        query.charge, None if query.t0 is query.t1 is None else window
    )
    rows, num_rows = _rows(profile, table, chosen, query)
    sent = allocations_of(profile, events, window)
    return api.OperatorMemoryResponse(
        run=run,
        choice=choice,
        devices=devices,
        device=_key(*chosen),
        charge=query.charge,
        duration_ms=(span[1] - span[0]) / _MS,
        curve=api.TraceMemoryCurve(
            time_ms=f64((curve.time_ns - span[0]) / _MS),
            allocated_bytes=f64(curve.allocated_bytes),
            reserved_bytes=f64(curve.reserved_bytes),
        ),
        rows=_sent(profile, table, rows),
        num_rows=num_rows,
        operators=sent.operators,
        categories=CATEGORIES_SENT,
        evidence=EVIDENCE,
        modules=sent.modules,
        phases=sent.phases,
        peak=sent.peak,
        allocations=sent.allocations,
        num_allocations=sent.num_allocations,
        has_addresses=profile.memory_pairs.are_known,
    )


def _nothing(
    run: api.RunSummary,
    choice: api.ProfileChoice,
    devices: tuple[api.TraceDevice, ...],
    query: OperatorMemoryQuery,
) -> api.OperatorMemoryResponse:
    none = np.empty(0)
    return api.OperatorMemoryResponse(
        run=run,
        choice=choice,
        devices=devices,
        device=None,
        charge=query.charge,
        duration_ms=0.0,
        curve=api.TraceMemoryCurve(f64(none), f64(none), f64(none)),
        rows=api.OperatorMemoryRows((), *(f64(none) for _ in _COLUMNS)),
        num_rows=0,
        operators=(),
        categories=CATEGORIES_SENT,
        evidence=EVIDENCE,
        modules=(),
        phases=(),
        peak=None,
        allocations=NO_ALLOCATIONS,
        num_allocations=0,
        has_addresses=False,
    )


def _key(kind: int, index: int) -> str:
    return f"{kind}:{index}"


def _on(devices: MemoryDevices, device: tuple[int, int]) -> Ints:
    """Rows of a device's events."""
    kind, index = device
    same = (devices.device_type == kind) & (devices.device == index)
    return devices.events_of(int(np.flatnonzero(same)[0]))


def _devices(profile: TraceProfile) -> tuple[api.TraceDevice, ...]:
    """Every device of any kind that has events."""
    memory = profile.trace.memory
    capacity = {
        one.get("id"): one.get("totalGlobalMem") for one in profile.trace.facts.devices
    }
    known = profile.memory_devices
    places = zip(known.device_type.tolist(), known.device.tolist(), strict=True)
    found = []
    for place, (kind, index) in enumerate(itertools.islice(places, _MAX_DEVICES)):
        events = known.events_of(place)
        total = capacity.get(index) if kind in (1, 6) else None
        found.append(
            api.TraceDevice(
                key=_key(kind, index),
                kind=_KINDS.get(kind, f"device type {kind}"),
                index=index,
                num_events=len(events),
                peak_allocated_bytes=_peak(memory.allocated_bytes[events]),
                peak_reserved_bytes=_peak(memory.reserved_bytes[events]),
                capacity_bytes=float(total) if type(total) is int else None,
            )
        )
    return tuple(found)


def _peak(totals: Ints) -> float | None:
    most = int(totals.max(initial=-1))
    return float(most) if most >= 0 else None


def _chosen(
    profile: TraceProfile | None,
    devices: tuple[api.TraceDevice, ...],
    query: OperatorMemoryQuery,
) -> tuple[int, int] | None:
    """The device asked for; else the accelerator, or what there is, with most events."""
    if profile is None or not devices:
        return None
    keys = {one.key for one in devices}
    if query.device is not None:
        return query.device if _key(*query.device) in keys else None
    best = max(devices, key=lambda one: (one.kind != "CPU", one.num_events))
    kind, _, index = best.key.partition(":")
    return int(kind), int(index)


def _window(span: tuple[int, int], query: OperatorMemoryQuery) -> tuple[int, int]:
    start = span[0] if query.t0 is None else span[0] + int(query.t0 * _MS)
    end = span[1] if query.t1 is None else span[0] + int(query.t1 * _MS)
    return max(start, span[0]), min(end, span[1])


def _rows(
    profile: TraceProfile,
    table: OperatorMemory,
    device: tuple[int, int],
    query: OperatorMemoryQuery,
) -> tuple[Ints, int]:
    own = np.flatnonzero((table.device_type == device[0]) & (table.device == device[1]))
    strings, text = profile.trace.strings, (query.text or "").lower()
    rows, num = rows_sent(
        len(own),
        {name: getattr(table, name)[own] for name in _COLUMNS},
        query.sort,
        "self_increase_bytes",
        query.top,
        (lambda row: text in strings[int(table.name[own[row]])].lower())
        if text
        else None,
        texts={"name": lambda row: strings[int(table.name[own[row]])]},
    )
    return own[rows], num


def _sent(
    profile: TraceProfile, table: OperatorMemory, rows: Ints
) -> api.OperatorMemoryRows:
    strings = profile.trace.strings
    return api.OperatorMemoryRows(
        tuple(strings[int(name)][:_MAX_TEXT] for name in table.name[rows]),
        *(f64(getattr(table, column)[rows]) for column in _COLUMNS),
    )
