"""The table of the memory of a trace's operators, and the devices whose memory it is."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, TypeAlias

from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.analysis.trace.devices import torch_device_type
from memboard.tb_plugin.api.time.operators import TraceDevice
from memboard.tb_plugin.contract.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.analysis.trace_memory.operators import Charge
    from memboard.tb_plugin.api.tables import TableRows
    from memboard.tb_plugin.contract.table import RowsQuery

DeviceId: TypeAlias = tuple[int, int]
"""Type and index, as torch numbers them."""

_MAX_DEVICES: Final = 256

OPERATORS: Final = Table(
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
_USUAL: Final = "self_increase_bytes"


def devices_of(profile: TraceProfile) -> tuple[TraceDevice, ...]:
    """Every device of any kind that has events."""
    memory = profile.trace.memory
    capacity = {
        device.get("id"): device.get("totalGlobalMem")
        for device in profile.trace.facts.devices
    }
    recorded_devices = profile.memory_devices
    places = zip(
        recorded_devices.device_type.tolist(),
        recorded_devices.device.tolist(),
        strict=True,
    )
    devices = []
    for place, (kind, index) in enumerate(itertools.islice(places, _MAX_DEVICES)):
        title = torch_device_type(profile.trace, kind)
        title = title if index < 0 else f"{title} {index}"
        events = recorded_devices.events_of(place)
        peak = int(memory.allocated_bytes[events].max(initial=-1))
        total = capacity.get(index) if kind in (1, 6) else None
        devices.append(
            TraceDevice(
                key=device_key((kind, index)),
                name=title,
                num_events=len(events),
                title=title if peak < 0 else f"{title}, peak {size_text(peak)}",
                capacity_bytes=float(total) if type(total) is int else None,
            )
        )
    return tuple(devices)


def device_key(device: DeviceId) -> str:
    kind, index = device
    return f"{kind}:{index}"


def usual_device(devices: Sequence[TraceDevice]) -> DeviceId | None:
    """The accelerator, or where there is none the device, with most events."""
    if not devices:
        return None
    best = max(
        devices,
        key=lambda device: (not device.name.startswith("CPU"), device.num_events),
    )
    kind, _, index = best.key.partition(":")
    return int(kind), int(index)


def memory_rows(
    profile: TraceProfile,
    query: RowsQuery,
    device: DeviceId | None,
    charge: Charge = "allocating",
    range_ns: tuple[int, int] | None = None,
) -> TableRows:
    """Operators with what they allocated of a device; no row without a device."""
    table = profile.operator_memory(charge, range_ns)
    strings = profile.trace.strings
    rows = OPERATORS.rows(table, strings, query, _USUAL, table.rows_on(device))
    return OPERATORS.sent(table, strings, rows, _USUAL)
