"""The route `/operator_memory`: memory of operators, over time, by allocation and holder."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import numpy as np
from msgspec import Meta

from collector.format.memory import CATEGORIES, FOLDS_INTO
from tb_plugin.analysis.arrays import NOTHING
from tb_plugin.analysis.trace_memory.attribution import EVIDENCE, OTHER, memory_holders
from tb_plugin.analysis.trace_memory.pictures import memory_curve
from tb_plugin.api.operators import (
    OperatorCharge,
    OperatorMemoryResponse,
    OperatorMemoryRows,
    TraceAllocations,
    TraceDevice,
    TraceMemoryCategory,
    TraceMemoryCurve,
    TraceMemoryHolders,
    TraceMemoryPeak,
)
from tb_plugin.contract.parameters import Pixels
from tb_plugin.contract.wire import f64, i32, u8
from tb_plugin.pages.operators.table import Number, Table
from tb_plugin.pages.profile.asked import MS, TableQuery, of_profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tb_plugin.analysis.arrays import Ints
    from tb_plugin.analysis.trace.profile import TraceProfile
    from tb_plugin.analysis.trace_memory.attribution import TraceLives
    from tb_plugin.analysis.trace_memory.events import MemoryDevices
    from tb_plugin.api.base import I32Column, RunSummary
    from tb_plugin.api.profile import ProfileChoice

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
}
"""torch's `DeviceType`."""

_TABLE: Final = Table(
    texts=("name",),
    max_text=500,
    numbers=tuple(map(Number, OperatorMemoryRows.__struct_fields__[1:])),
)

MAX_ALLOCATIONS: Final = 1_000
MAX_HOLDERS: Final = 500
_MAX_TEXT: Final = 200
_STEP: Final = "ProfilerStep#"
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
    rows, num_rows = _TABLE.rows(
        table, trace.strings, query, "self_increase_bytes", own
    )
    curve = memory_curve(trace.memory, events, window, query.px)
    return OperatorMemoryResponse(
        run=run,
        choice=choice,
        devices=devices,
        device=None if chosen is None else _key(*chosen),
        charge=query.charge,
        duration_ms=0.0 if chosen is None else (trace.end_ns - start) / MS,
        curve=TraceMemoryCurve(
            time_ms=f64((curve.time_ns - start) / MS),
            allocated_bytes=f64(curve.allocated_bytes),
            reserved_bytes=f64(curve.reserved_bytes),
        ),
        rows=OperatorMemoryRows(**_TABLE.sent(table, trace.strings, rows)),
        num_rows=num_rows,
        categories=CATEGORIES_SENT,
        evidence=EVIDENCE,
        has_addresses=chosen is not None and profile.memory_pairs.are_known,
        **allocations_of(profile, events, window),
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
        events = known.events_of(place)
        total = capacity.get(index) if kind in (1, 6) else None
        found.append(
            TraceDevice(
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
    devices: tuple[TraceDevice, ...], query: OperatorMemoryQuery
) -> tuple[int, int] | None:
    """The device asked for; else the accelerator, or what there is, with most events."""
    if not devices:
        return None
    keys = {one.key for one in devices}
    if query.device is not None:
        return query.device if _key(*query.device) in keys else None
    best = max(devices, key=lambda one: (one.kind != "CPU", one.num_events))
    kind, _, index = best.key.partition(":")
    return int(kind), int(index)


def _window(span: tuple[int, int], query: OperatorMemoryQuery) -> tuple[int, int]:
    start = span[0] if query.t0 is None else span[0] + int(query.t0 * MS)
    end = span[1] if query.t1 is None else span[0] + int(query.t1 * MS)
    return max(start, span[0]), min(end, span[1])


class _Names:
    """Names that are sent, each once, by their rows in a table of more."""

    def __init__(self, table: Sequence[str]) -> None:
        self._table = table
        self._rows: dict[int, int] = {}

    def rows(self, of: Ints) -> I32Column:
        """Where names of the table are sent; NOTHING stays so."""
        return i32(
            [
                -1 if row < 0 else self._rows.setdefault(row, len(self._rows))
                for row in of.tolist()
            ]
        )

    @property
    def sent(self) -> tuple[str, ...]:
        """All that were asked for, in order."""
        return tuple(self._table[row][:_MAX_TEXT] for row in self._rows)


def allocations_of(
    profile: TraceProfile, events: Ints, window: tuple[int, int]
) -> dict[str, Any]:
    """Of one device, whose `events` these are, in a range of time: by field.

    With the names that the allocations and the peak speak of.
    """
    trace, lives = profile.trace, profile.lives
    rows, start, end = _touching(profile, events, window)
    size = np.abs(trace.memory.num_bytes[rows].astype(np.int64))
    order = np.argsort(-size, kind="stable")[:MAX_ALLOCATIONS]
    life = _lives_of(lives, rows[order])
    operators, modules = _Names(trace.strings), _Names(lives.modules)
    phases = _Names(lives.phases)
    peak = _peak_of(profile, events, window, modules, phases)
    allocations = TraceAllocations(
        operator=operators.rows(_owners(profile, rows[order])),
        num_bytes=f64(size[order]),
        allocated_ms=f64((start[order] - trace.start_ns) / MS),
        released_ms=f64((end[order] - trace.start_ns) / MS),
        category=u8(_of(lives.category, life, OTHER)),
        evidence=u8(_of(lives.evidence, life, 0)),
        module=modules.rows(_of(lives.module, life, NOTHING)),
        phase=phases.rows(_of(lives.phase, life, NOTHING)),
    )
    return {
        "allocations": allocations,
        "num_allocations": len(rows),
        "operators": operators.sent,
        "modules": modules.sent,
        "phases": phases.sent,
        "peak": peak,
    }


def _touching(
    profile: TraceProfile, events: Ints, window: tuple[int, int]
) -> tuple[Ints, Ints, Ints]:
    """Events that stand for allocations that touch a range, their starts and ends."""
    memory, pairs = profile.trace.memory, profile.memory_pairs
    made = memory.num_bytes[events] > 0
    # A release whose allocation was before the trace stands for it.
    lost = ~made & (pairs.allocation[events] == NOTHING) & pairs.are_known
    rows = events[made | lost]
    start = np.where(memory.num_bytes[rows] > 0, memory.time_ns[rows], np.nan)
    release = pairs.release[rows]
    end = np.where(release == NOTHING, np.nan, memory.time_ns[np.maximum(release, 0)])
    end = np.where(np.isnan(start), memory.time_ns[rows], end)
    touches = (np.nan_to_num(start, nan=-np.inf) <= window[1]) & (
        np.nan_to_num(end, nan=np.inf) >= window[0]
    )
    return rows[touches], start[touches], end[touches]


def _owners(profile: TraceProfile, events: Ints) -> Ints:
    """The name, as row of texts, of what made each; NOTHING where that is the step alone.

    It is the operator, else the annotation or the frame of Python around it.
    """
    slices, strings = profile.trace.slices, profile.trace.strings
    owners = profile.times.memory_operators[events]
    owners = np.where(owners == NOTHING, profile.times.memory_slices[events], owners)
    if not len(slices):
        return np.full(len(events), NOTHING)
    names = np.where(owners == NOTHING, NOTHING, slices.name[np.maximum(owners, 0)])
    is_step = [row >= 0 and strings[row].startswith(_STEP) for row in names.tolist()]
    return np.where(is_step, NOTHING, names)


def _lives_of(lives: TraceLives, events: Ints) -> Ints:
    """The life of each event, or NOTHING: without addresses nothing is known of any."""
    if not len(lives):
        return np.full(len(events), NOTHING)
    at = np.minimum(np.searchsorted(lives.event, events), len(lives) - 1)
    return np.where(lives.event[at] == events, at, NOTHING)


def _of(column: Ints, life: Ints, otherwise: int) -> Ints:
    if not len(column):
        return np.full(len(life), otherwise)
    return np.where(life == NOTHING, otherwise, column[np.maximum(life, 0)])


def _peak_of(
    profile: TraceProfile,
    events: Ints,
    window: tuple[int, int],
    modules: _Names,
    phases: _Names,
) -> TraceMemoryPeak | None:
    """Who holds most of a device, where it holds most."""
    if not profile.memory_pairs.are_known:
        return None
    trace = profile.trace
    found = memory_holders(trace.memory, profile.lives, events, window)
    if found is None:
        return None
    shown = slice(MAX_HOLDERS)
    total = found.allocated_bytes
    return TraceMemoryPeak(
        time_ms=(found.time_ns - trace.start_ns) / MS,
        allocated_bytes=None if total is None else float(total),
        seen_bytes=float(found.seen_bytes),
        unseen_bytes=float(found.unseen_bytes),
        unknown_bytes=float(found.unknown_bytes),
        holders=TraceMemoryHolders(
            category=u8(found.category[shown]),
            module=modules.rows(found.module[shown]),
            phase=phases.rows(found.phase[shown]),
            num_bytes=f64(found.num_bytes[shown]),
            num_allocations=f64(found.num_allocations[shown]),
        ),
        num_holders=len(found),
    )
