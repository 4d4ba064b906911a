"""Responses about files of traces, and what recordings say of those that they saved."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from tb_plugin.api.base import Columns, F64Column, Problem, RunSummary
from tb_plugin.api.modules import ModuleCategory
from tb_plugin.api.overview import Recorded

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
