"""Response about the files of traces that a run has."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from tb_plugin.api.base import Problem, RunSummary

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
