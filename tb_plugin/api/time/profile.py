"""Responses about where the time of profiled steps went: one trace of a run."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from memboard.tb_plugin.api.base import (
    NO_F64,
    NO_I32,
    Columns,
    F64Column,
    I32Column,
    Problem,
    RunSummary,
)
from memboard.tb_plugin.api.findings import Finding
from memboard.tb_plugin.api.tables import TableRows
from memboard.tb_plugin.api.time.trace import TraceState

ProfileRole: TypeAlias = Literal[
    "kernel",
    "memcpy",
    "memset",
    "communication",
    "runtime",
    "dataloader",
    "cpu_exec",
    "other",
]
"""In the order in which they claim time: each moment counts for the first one."""

ColumnSet: TypeAlias = Literal["times", "efficiency"]
"""Columns of a table of operators or kernels: all together fit on no screen."""


class ProfiledTrace(Struct, frozen=True):
    """A profiler's trace that may be chosen."""

    id: str
    name: str
    rank: int | None
    cycle: int | None
    """Number of the profiling window; None: the only one, or not known."""
    title: str
    """Its rank, cycle and name."""


class ProfileChoice(Struct, frozen=True, kw_only=True):
    """Which trace an answer is about, and how far opening it is."""

    traces: tuple[ProfiledTrace, ...]
    """Of the run, by cycle and rank; the newest where there are very many."""
    num_traces: int
    source: str | None = None
    """The one chosen; None: the run has none."""
    state: TraceState = "ready"
    progress: float = 1.0  # 0 to 1
    doing: str = ""
    problem: Problem | None = None
    """Why it cannot be opened."""
    problems: tuple[Problem, ...] = ()
    """What was left out of the one that is open, or set right."""


class ProfileTable(Struct, frozen=True):
    """The rows of a profiled trace by something that they have in common."""

    run: RunSummary
    choice: ProfileChoice
    by: str
    table: TableRows
    """Also how many rows there are, and what they took in all."""


class ProfilePart(Columns, frozen=True):
    """Time of one role; a column of steps."""

    role: ProfileRole
    label: str
    help: str
    colour: str  # As `TableColumn.bar`
    ms: F64Column


class ProfileFact(Struct, frozen=True):
    """Something the trace says of where and how it was recorded."""

    name: str
    value: str


class ProfileResponse(Columns, frozen=True, kw_only=True):
    """Route `/profile` (run, source, step): step time by role, devices, findings."""

    run: RunSummary
    choice: ProfileChoice
    step: I32Column = NO_I32
    """Numbers of the profiled steps; 0 where the trace marks none and counts as one."""
    are_marked: bool = False
    duration_ms: F64Column = NO_F64
    mean_ms: float = 0.0
    """Of all profiled steps, also of those that are not sent."""
    parts: tuple[ProfilePart, ...] = ()
    roles: TableRows | None = None
    """`parts` as a table: of `step` alone, else the mean of all."""
    devices: TableRows | None = None
    """How each was used: of `step` alone, else from the first profiled step's start to
    the last one's end; None: the trace has none."""
    findings: tuple[Finding, ...] = ()
    facts: tuple[ProfileFact, ...] = ()


class ModuleTimesResponse(Columns, frozen=True):
    """Route `/module_times` (run, source): modules of a trace, parents first."""

    run: RunSummary
    choice: ProfileChoice
    name: tuple[str, ...]
    path: tuple[str, ...]
    """With the names of the modules around it."""
    parent: I32Column
    """Row of the module around it; -1: none."""
    table: TableRows
    """By module; none where the trace was recorded without stacks or modules. Of what it
    does not know there are no columns."""
    backward: str
    """Why the part of backward is not known, or by what it is, in a sentence; empty: by
    the trace's own links."""
