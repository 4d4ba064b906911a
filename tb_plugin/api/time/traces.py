"""Responses about files of traces, and what recordings say of those that they saved."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from memboard.tb_plugin.api.base import Columns, F64Column, Problem, RunSummary
from memboard.tb_plugin.api.memory.modules import CategorySeries
from memboard.tb_plugin.api.overview import SourceStatus
from memboard.tb_plugin.api.tables import TableRows

TraceFileState: TypeAlias = Literal["found", "opening", "ready", "failed"]
"""found: nobody opened it yet."""


class TraceFile(Struct, frozen=True):
    """One file, whoever wrote it."""

    id: str  # What `/trace_file?source=` takes
    name: str
    """May hold any text; likewise the next two."""
    path: str
    """Relative to the logdir; where links lead out of it, with the file itself behind it."""
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
    files: tuple[TraceFile, ...]  # At most 10,000
    num_files: int
    problems: tuple[Problem, ...]
    """Of files that are not opened."""
    still_reading: bool
    """The run is still being read: there may be more."""


class TraceReport(Struct, frozen=True):
    """One trace, as the recorder saw it."""

    id: str  # What `/trace_report?report=` takes
    rank: int
    title: str
    facts: tuple[str, ...]
    """How long it was recorded, with what, and which file that is."""
    problem: str
    """What was wrong with it; empty: nothing."""


class TraceReportsResponse(Struct, frozen=True):
    """Route `/trace_reports` (run, rank, ranks): by rank and time."""

    run: RunSummary
    reports: tuple[TraceReport, ...]
    """At most 5,000, the newest."""
    absent: tuple[SourceStatus, ...]
    """What the recorder says of torch's profiler where it could not record all of it."""
    still_reading: bool
    """The run is still being read: there may be more."""


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
    x0: float
    x_per_column: float
    total_bytes: F64Column
    peak_x: F64Column
    categories: tuple[CategorySeries, ...]
    """Each category's column over time."""


class TraceReportResponse(Struct, frozen=True):
    """Route `/trace_report` (run, report, device, x0, x1, px): one report in full."""

    report: TraceReport
    summary: str
    """Tables as text, of equal letters' width; empty: operators were not summed up."""
    operators: TableRows
    memory: TraceReportMemory | None
    """None where it was not recorded."""
    missing: str
    """Why memory by category was not recorded, and what to set; empty: it was."""
