"""Route `/operator_memory`: memory of operators, over time, by allocation and holder."""

from __future__ import annotations

import re
from typing import (
    TYPE_CHECKING,
    Annotated,
    ClassVar,
    Final,
)

from msgspec import Meta

from memboard.collector.format.memory import CATEGORIES, FOLDS_INTO
from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.trace_memory.pictures import memory_curve
from memboard.tb_plugin.api.time.operators import (
    OperatorCharge,
    OperatorMemoryResponse,
    TraceMemoryCategory,
    TraceMemoryCurve,
)
from memboard.tb_plugin.contract.parameters import Pixels
from memboard.tb_plugin.contract.table import titled
from memboard.tb_plugin.facts.traces.memory_table import (
    device_key,
    devices_of,
    memory_rows,
    usual_device,
)
from memboard.tb_plugin.facts.traces.profiled import MS, TableQuery
from memboard.tb_plugin.pages.operators.allocations import (
    HoldersBy,
    allocation_table,
    peak_of,
)
from memboard.tb_plugin.server.views.trace import of_profile

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.time.profile import ProfileChoice
    from memboard.tb_plugin.facts.traces.memory_table import DeviceId

Milliseconds = Annotated[
    float, Meta(ge=-1e12, le=1e12, description="a number of milliseconds")
]

_DEVICE: Final = re.compile(r"(-?\d{1,19}):(-?\d{1,19})", re.ASCII)
CATEGORIES_SENT: Final = tuple(
    TraceMemoryCategory(name=category, group=FOLDS_INTO[category])  # type: ignore[arg-type]
    for category in CATEGORIES
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
        match = _DEVICE.fullmatch(text)
        if match is None:
            raise ValueError(f"not {cls.EXPECTED}")
        return cls((int(match[1]), int(match[2])))


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
def operator_memory(
    run: RunSummary,
    choice: ProfileChoice,
    profile: TraceProfile,
    query: OperatorMemoryQuery,
) -> OperatorMemoryResponse:
    """Memory of one device of a trace; nothing where it has no such device."""
    trace = profile.trace
    devices = devices_of(profile)
    device: DeviceId | None = query.device or usual_device(devices)
    key = None if device is None else device_key(device)
    if key not in {device.key for device in devices}:
        device = key = None
    range_ns = _range_ns((trace.start_ns, trace.end_ns), query)
    is_whole = query.t0 is None and query.t1 is None
    rows = memory_rows(
        profile, query, device, query.charge, None if is_whole else range_ns
    )
    events = profile.memory_devices.events_on(device)
    duration_ns = 0 if device is None else trace.end_ns - trace.start_ns
    return OperatorMemoryResponse(
        run=run,
        choice=choice,
        devices=devices,
        device=key,
        charge=query.charge,
        duration_ms=duration_ns / MS,
        curve=_curve(profile, events, range_ns, query.px),
        operators=titled(
            rows,
            "Memory by operator",
            f"{counted(rows.num_all, 'operator')} with memory",
            "No operator allocated in this part.",
        ),
        categories=CATEGORIES_SENT,
        peak=peak_of(profile, events, range_ns, query.by),
        allocations=allocation_table(profile, events, range_ns),
        has_addresses=device is not None and profile.memory_pairs.are_known,
    )


def _curve(
    profile: TraceProfile, events: Ints, range_ns: tuple[int, int], px: int
) -> TraceMemoryCurve:
    curve = memory_curve(profile.trace.memory, events, range_ns, px)
    line = curve.as_steps(range_ns[1])
    return TraceMemoryCurve(
        time_ms=(line.time_ns - profile.trace.start_ns) / MS,
        allocated_bytes=line.allocated_bytes,
        reserved_bytes=line.reserved_bytes,
    )


def _range_ns(span: tuple[int, int], query: OperatorMemoryQuery) -> tuple[int, int]:
    start = span[0] if query.t0 is None else span[0] + int(query.t0 * MS)
    end = span[1] if query.t1 is None else span[0] + int(query.t1 * MS)
    return max(start, span[0]), min(end, span[1])
