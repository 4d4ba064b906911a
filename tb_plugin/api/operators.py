"""Responses about the operators of a trace: time and memory."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from tb_plugin.api.base import Columns, F64Column, I32Column, RunSummary, U8Column
from tb_plugin.api.modules import CategoryGroup
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
