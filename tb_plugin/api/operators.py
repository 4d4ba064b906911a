"""Responses about operators of traces and their memory, and about files of traces."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from tb_plugin.api.base import (
    Columns,
    F64Column,
    I32Column,
    Problem,
    RunSummary,
    U8Column,
)
from tb_plugin.api.modules import CategoryGroup, ModuleCategory
from tb_plugin.api.overview import Recorded
from tb_plugin.api.profile import ProfileChoice

OperatorsBy: TypeAlias = Literal["name", "shapes"]

OperatorCharge: TypeAlias = Literal["allocating", "freeing"]


class OperatorTotals(Struct, frozen=True):
    """Sums over all operators, those not in the table included."""

    host_self_ms: float
    device_self_ms: float
    num_calls: float


class OperatorsResponse(Columns, frozen=True):
    """Route `/operators` (run, source, by, sort, text, top): the table of operators."""

    run: RunSummary
    choice: ProfileChoice
    by: OperatorsBy
    name: tuple[str, ...]
    shapes: tuple[str, ...]
    """Input shapes as the profiler wrote them; empty texts where `by` is name."""
    num_calls: F64Column
    host_self_ms: F64Column
    host_total_ms: F64Column
    device_self_ms: F64Column
    device_total_ms: F64Column
    is_eligible: U8Column
    """1: its kernels could use tensor cores."""
    tensor_core_self_share: F64Column
    """Of the time of its own kernels; NaN without kernels."""
    tensor_core_total_share: F64Column
    num_rows: int
    """All rows that hold `text`; those sent are the first by `sort`."""
    totals: OperatorTotals
    has_devices: bool
    has_stacks: bool
    has_shapes: bool


class OperatorStack(Struct, frozen=True):
    """Calls of an operator from one place."""

    frames: tuple[str, ...]
    """`file(line): function`, the innermost first."""
    num_calls: float
    host_ms: float
    device_ms: float


class OperatorResponse(Struct, frozen=True):
    """Route `/operator` (run, source, by, name, shapes): where one is called from.

    By shapes, empty `shapes` mean the calls whose shapes are not known.
    """

    run: RunSummary
    choice: ProfileChoice
    name: str
    stacks: tuple[OperatorStack, ...]
    """The longest first."""
    num_calls: float
    num_looked_at: float
    """Calls whose stacks were looked at: the longest."""
    callees: tuple[OperatorStack, ...]
    """What those calls call, the outermost first and with no place; times are self times,
    so that they add up to the calls'. Without frames: the calls themselves."""


class TraceDevice(Struct, frozen=True):
    """A device with memory events."""

    key: str
    """`device type:index`, as torch numbers them."""
    kind: str
    """CPU, CUDA, HIP, XPU, ..."""
    index: int
    """-1 for the CPU."""
    num_events: int
    peak_allocated_bytes: float | None
    peak_reserved_bytes: float | None
    capacity_bytes: float | None


class OperatorMemoryRows(Columns, frozen=True):
    """Memory by operator; columns of equal length."""

    name: tuple[str, ...]
    num_calls: F64Column
    increase_bytes: F64Column
    """Allocated less freed, with the operators in it."""
    self_increase_bytes: F64Column
    num_allocations: F64Column
    self_num_allocations: F64Column
    allocated_bytes: F64Column
    self_allocated_bytes: F64Column


class TraceMemoryCurve(Columns, frozen=True):
    """The allocator's totals over time; no peak of either is lost."""

    time_ms: F64Column
    """Since the trace's start."""
    allocated_bytes: F64Column
    reserved_bytes: F64Column
    """NaN where the trace does not say it."""


class TraceAllocations(Columns, frozen=True):
    """Allocations of a trace, the largest first; columns of equal length."""

    operator: I32Column
    """Row of `OperatorMemoryResponse.operators`; -1: none is known.

    Where no operator is around it, what is: an annotation, or a frame of Python.
    """
    num_bytes: F64Column
    allocated_ms: F64Column
    """NaN: before the trace began."""
    released_ms: F64Column
    """NaN: not before it ended."""
    category: U8Column
    """Row of `OperatorMemoryResponse.categories`; likewise evidence."""
    evidence: U8Column
    module: I32Column
    """Row of `OperatorMemoryResponse.modules`, -1: none is known; likewise the phase."""
    phase: I32Column


class TraceMemoryCategory(Struct, frozen=True):
    """What memory is for."""

    name: str
    """Fine name, e.g. `unsharded_param`; `other`: not known."""
    group: CategoryGroup


class TraceMemoryHolders(Columns, frozen=True):
    """What is alive at a moment, most bytes first; columns of equal length."""

    category: U8Column
    """Row of `OperatorMemoryResponse.categories`."""
    module: I32Column
    """Row of `OperatorMemoryResponse.modules`; -1: none is known."""
    phase: I32Column
    """Row of `OperatorMemoryResponse.phases`, in which it was made; -1: in none."""
    num_bytes: F64Column
    num_allocations: F64Column


class TraceMemoryPeak(Struct, frozen=True):
    """The moment at which most of a device was allocated, in the range shown."""

    time_ms: float
    """Since the trace's start."""
    allocated_bytes: float | None
    """The allocator's total; null: the trace does not say it."""
    seen_bytes: float
    """Of what the trace shows events of: `holders` add up to it."""
    unseen_bytes: float
    """Of the total, what no event explains: made before the trace began, and kept."""
    unknown_bytes: float
    """Unseen, or of no known category."""
    holders: TraceMemoryHolders
    num_holders: int


class OperatorMemoryResponse(Struct, frozen=True):
    """Route `/operator_memory` (run, source, device, charge, t0, t1, px, sort, text, top)."""

    run: RunSummary
    choice: ProfileChoice
    devices: tuple[TraceDevice, ...]
    device: str | None
    """The one shown; None: the trace has no memory events."""
    charge: OperatorCharge
    duration_ms: float
    """Of the trace."""
    curve: TraceMemoryCurve
    rows: OperatorMemoryRows
    num_rows: int
    operators: tuple[str, ...]
    categories: tuple[TraceMemoryCategory, ...]
    evidence: tuple[str, ...]
    """How categories are known."""
    modules: tuple[str, ...]
    phases: tuple[str, ...]
    """forward, backward, optimizer, zero_grad, dataloader, or FSDP2's annotations."""
    peak: TraceMemoryPeak | None
    """None: no event, or without addresses, so that nothing is known of lives."""
    allocations: TraceAllocations
    num_allocations: int
    """In the range; those sent are the largest."""
    has_addresses: bool
    """False: releases are not known."""


TraceFileState: TypeAlias = Literal["found", "opening", "ready", "failed"]
"""found: nobody asked for it yet."""


class TraceFile(Struct, frozen=True):
    """One file, whoever wrote it."""

    id: str
    """What `/trace_file?source=` takes."""
    name: str
    """May hold any text; likewise the next two."""
    path: str
    """Relative to the logdir."""
    worker: str
    rank: int | None
    cycle: int | None
    """1-based number among the worker's files; None where nothing says an order."""
    num_bytes: float
    timeline: bool
    """Whether it is what `export_memory_timeline` wrote."""
    recorded: bool
    """Whether our own recording points to it."""
    state: TraceFileState
    problem: Problem | None
    """Why it failed; the others are shown."""


class TracesResponse(Struct, frozen=True):
    """Route `/traces` (run): the files of traces of a run, by rank, worker and cycle."""

    run: RunSummary
    files: tuple[TraceFile, ...]
    """At most 10,000."""
    num_files: int
    problems: tuple[Problem, ...]
    """Of files that are not opened."""
    still_reading: bool
    """The run is still being read: there may be more."""


class TraceReport(Struct, frozen=True):
    """One trace, as the recorder saw it."""

    id: str
    """What `/trace_report?report=` takes."""
    rank: int
    cycle: int | None
    first_step: int | None
    last_step: int | None
    num_steps: int | None
    path: str
    """Of the trace, in the rank's folder; empty: it was not saved. May hold any text."""
    num_bytes: float
    seconds: float | None
    """How long it was recorded."""
    activities: tuple[str, ...]
    options: tuple[str, ...]
    """Of torch's profiler, that were on."""
    flops: float | None
    kept: bool
    """Whether the file was to stay on the disk of the recording."""
    remote: str
    """Where it was uploaded to; empty: nowhere."""
    problem: str
    """What was wrong with it; empty: nothing."""


class TraceReportsResponse(Struct, frozen=True):
    """Route `/trace_reports` (run, rank, ranks): by rank and time."""

    run: RunSummary
    reports: tuple[TraceReport, ...]
    """At most 5,000, the newest."""
    absent: tuple[Recorded, ...]
    """What the recorder says of torch's profiler where it could not record all of it."""
    still_reading: bool
    """The run is still being read: there may be more."""


class TraceReportOperators(Columns, frozen=True):
    """Sums by operator; columns of equal length, most time of its own first."""

    name: tuple[str, ...]
    """May hold any text."""
    calls: F64Column
    cpu_ns: F64Column
    self_cpu_ns: F64Column
    device_ns: F64Column
    self_device_ns: F64Column
    cpu_memory_bytes: F64Column
    self_cpu_memory_bytes: F64Column
    device_memory_bytes: F64Column
    self_device_memory_bytes: F64Column
    flops: F64Column


class TraceReportMemory(Columns, frozen=True):
    """Memory by category of one device; x in microseconds since the trace began.

    Column c covers x0 + c * x_per_column and the following; its values are those at the
    moment of the highest total inside it. Levels are what the trace saw: of what was
    there before, those tensors that it touched.
    """

    device: str
    devices: tuple[str, ...]
    x_low: float
    x_high: float
    """Full extent."""
    x0: float
    x_per_column: float
    total_bytes: F64Column
    peak_x: F64Column
    categories: tuple[ModuleCategory, ...]
    """Each category's column over time."""


class TraceReportResponse(Struct, frozen=True):
    """Route `/trace_report` (run, report, device, x0, x1, px): one report in full."""

    report: TraceReport
    summary: str
    """Tables as text, of equal letters' width; empty: operators were not summed up."""
    operators: TraceReportOperators
    memory: TraceReportMemory | None
    """None where it was not recorded."""
    missing: tuple[str, ...]
    """Options that memory by category needs and this trace was recorded without."""
