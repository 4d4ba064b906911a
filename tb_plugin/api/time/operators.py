"""Responses about the operators of a trace: time and memory."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from memboard.tb_plugin.api.base import Columns, F64Column, RunSummary
from memboard.tb_plugin.api.memory.modules import CategoryGroup
from memboard.tb_plugin.api.tables import TableRows
from memboard.tb_plugin.api.time.profile import ProfileChoice, ProfileTable

OperatorsBy: TypeAlias = Literal["name", "shapes", "category"]

OperatorCharge: TypeAlias = Literal["allocating", "freeing"]


class OperatorsResponse(ProfileTable, frozen=True):
    """Route `/operators` (run, source, by, columns, sort, text, top): the table of operators."""

    by: OperatorsBy
    has_devices: bool
    has_stacks: bool


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
    places: TableRows
    """What tells those stacks apart, a row of each."""
    num_calls: float
    callees: tuple[OperatorStack, ...]
    """What those calls call, the outermost first and with no place; times are self times,
    so that they add up to the calls'. Without frames: the calls themselves."""


class TraceDevice(Struct, frozen=True):
    """A device with memory events."""

    key: str
    """`device type:index`, as torch numbers them."""
    name: str
    title: str
    """The same, and the highest allocated."""
    num_events: int
    capacity_bytes: float | None


class TraceMemoryCurve(Columns, frozen=True):
    """The allocator's totals over time, as a line of steps; no peak of either is lost."""

    time_ms: F64Column
    """Since the trace's start; twice where one of the totals changes."""
    allocated_bytes: F64Column
    reserved_bytes: F64Column
    """NaN where the trace does not say it."""


class TraceMemoryCategory(Struct, frozen=True):
    name: str
    """Fine name, e.g. `unsharded_param`; `other`: not known."""
    group: CategoryGroup


class TraceMemoryPart(Struct, frozen=True):
    """What one category holds of a peak."""

    name: str
    """Empty: no event explains it; it was allocated before the trace began, and kept."""
    num_bytes: float


class TraceMemoryPeak(Struct, frozen=True):
    """The moment at which most of a device was allocated, in the range shown."""

    time_ms: float
    whole_bytes: float
    """The allocator's total, or what the trace shows events of where that is more."""
    unknown_bytes: float
    """No event explains it, or its category is not known."""
    parts: tuple[TraceMemoryPart, ...]
    """Categories that add up to all of it, the largest first."""
    holders: TableRows
    """What is alive then, most bytes first."""


class OperatorMemoryResponse(Struct, frozen=True):
    """Route `/operator_memory` (run, source, device, charge, t0, t1, px, sort, text, top)."""

    run: RunSummary
    choice: ProfileChoice
    devices: tuple[TraceDevice, ...]
    device: str | None
    """The one shown; None: the trace has no memory events."""
    charge: OperatorCharge
    duration_ms: float
    curve: TraceMemoryCurve
    operators: TableRows
    categories: tuple[TraceMemoryCategory, ...]
    peak: TraceMemoryPeak | None
    """None: no event, or without addresses, so that nothing is known of lives."""
    allocations: TableRows
    """In the range, the largest first."""
    has_addresses: bool
    """False: releases are not known."""
