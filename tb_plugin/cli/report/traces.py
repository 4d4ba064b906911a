"""Traces of a run in a report: those that were recorded, and other files."""

# ruff: noqa: PTH118, PTH120
# os.path: pathlib would change the URLs that paths at a store are.

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePath
from threading import Semaphore
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.format.errors import FormatError
from memboard.collector.format.names import rank_file_stem
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.trace.figures import trace_figures
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.cli.opening import no_deadline
from memboard.tb_plugin.formats.recording.captures.reading import (
    read_capture,
    traces_of,
)
from memboard.tb_plugin.jobs.problems import problem_of
from memboard.tb_plugin.jobs.trace_captures import read_listed_trace
from memboard.tb_plugin.jobs.trace_files import note_trace, recorded_trace
from memboard.tb_plugin.jobs.trace_sources import problems_of_trace
from memboard.tb_plugin.worker.importer import MAX_WORKERS, Importer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from memboard.collector.format.records import CaptureEntry
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.formats.traces.files.listing import FoundTrace
    from memboard.tb_plugin.index.run import Run

_BEGUN: Final = 4
"""Times as many as are read at once: the rest wait for their turn."""
_MAX_TEXT: Final = 100_000
_NUMBERS: Final = (
    "cycle",
    "first_step",
    "last_step",
    "num_steps",
    "num_bytes",
    "num_events",
    "flops",
)
_TEXTS: Final = ("problem", "remote", "summary")


def trace_rows(
    run: Run, rank: int | None, note: Callable[[FoundTrace, TraceProfile], None]
) -> Iterator[dict[str, Any]]:
    """Every trace of all ranks, or of one: those that the recording names, then others.

    Each that is here has its figures, and is one row: a file that the recording names and
    that also lies among the others is the recording's. What is wrong with a file is noted
    as a problem of the run. Small ones are read first, and more are begun than are read at
    a time: none waits for one that takes long. `note` takes what each holds, on threads.
    """
    rows = [*_recorded_rows(run, rank)]
    recorded = {trace.path for _, trace in rows if trace is not None}
    rows += [
        ({}, file)
        for file in run.traces.files
        if rank in (None, file.rank) and (file.is_share or file.path not in recorded)
    ]
    here = {trace.id: trace for _, trace in rows if trace is not None}
    importer = Importer()
    try:
        with ThreadPoolExecutor(_BEGUN * MAX_WORKERS) as pool:
            by_size = sorted(here.values(), key=lambda trace: trace.num_bytes)
            turn = Semaphore(MAX_WORKERS)
            figures = {
                trace.id: pool.submit(_of_file, run, trace, importer, turn, note)
                for trace in by_size
            }
            for row, trace in rows:
                if trace is None:
                    yield row
                else:
                    yield _joined(row, figures[trace.id].result())
    finally:
        importer.close()


def _joined(recorded: dict[str, Any], of_file: dict[str, Any]) -> dict[str, Any]:
    """What the recording says of a trace goes before what its file says."""
    recorded_values = {
        key: value for key, value in recorded.items() if value is not None
    }
    problem = of_file["problem"] or recorded_values.get("problem")
    return {**recorded, **of_file, **recorded_values, "problem": problem}


def _recorded_rows(
    run: Run, rank: int | None
) -> Iterator[tuple[dict[str, Any], FoundTrace | None]]:
    """Traces that the recording names, with the file where it lies there."""
    for number in run.ranks if rank is None else (rank,):
        for attempt, file in run.rank_files(number):
            for _, entry in traces_of(file, no_deadline()):
                try:
                    meta = read_capture(file, entry, ()).meta
                except (FormatError, OSError):
                    continue  # it is among the run's problems
                trace = recorded_trace(file, meta)
                yield _recorded(attempt.index, file, entry, meta, trace), trace


def _recorded(
    attempt: int,
    file: RankFile,
    entry: CaptureEntry,
    meta: Mapping[str, Any],
    trace: FoundTrace | None,
) -> dict[str, Any]:
    """A capture's meta, of whatever types its values may be."""
    row: dict[str, Any] = {
        "rank": file.rank,
        "attempt": attempt,
        "time_ms": entry.time_ns / 1e6,
        "path": _path(file, meta.get("path")) if trace is None else trace.path,
        "exists": trace is not None,
        "complete": meta.get("complete") is not False,
    }
    for key in _NUMBERS:
        value = meta.get(key)
        row[key] = value if type(value) in (int, float) else None
    for key in _TEXTS:
        value = meta.get(key)
        row[key] = value[:_MAX_TEXT] if isinstance(value, str) else None
    return row


def _path(file: RankFile, path_text: object) -> str | None:
    """Where the trace lay: below the rank's own folder, nowhere else."""
    if not isinstance(path_text, str) or not path_text or "\0" in path_text:
        return None
    beside = os.path.dirname(file.parts[0].path)
    folder = os.path.join(beside, rank_file_stem(file.rank, file.attempt))
    if ".." in PurePath(path_text).parts or os.path.normpath(path_text) == ".":
        return None
    path = os.path.join(folder, os.path.normpath(path_text))
    return path if path.startswith(folder + os.sep) else None


def _of_file(
    run: Run,
    found_trace: FoundTrace,
    importer: Importer,
    turn: Semaphore,
    note: Callable[[FoundTrace, TraceProfile], None],
) -> dict[str, Any]:
    """One file's figures; `turn` is held while they are made of its tables."""
    listed: dict[str, Any] = {
        "rank": found_trace.rank,
        "worker": found_trace.worker,
        "cycle": found_trace.cycle,
        "name": found_trace.name,
        "path": found_trace.path,
        "exists": True,
        "num_bytes": found_trace.num_bytes,
        "problem": None,
        "problems": [],
    }
    try:
        make = read_listed_trace(found_trace, importer)
        with turn:
            trace = make()
            profile = TraceProfile(trace)
            listed |= _figures(profile, found_trace)
            note(found_trace, profile)
    except Exception as error:  # noqa: BLE001  # a file's failure is its own row's
        problem = problem_of(found_trace, error)
        note_trace(run, found_trace, (problem,))
        return {**listed, "problem": f"{problem.what} {problem.remedy}".strip()}
    note_trace(
        run,
        found_trace,
        problems_of_trace(trace, found_trace.path_text, listed["rank"]),
    )
    return listed


def _figures(profile: TraceProfile, found_trace: FoundTrace) -> dict[str, Any]:
    trace, facts = profile.trace, profile.trace.facts
    return {
        "rank": found_trace.rank if facts.rank == NOTHING else facts.rank,
        "events": sum(trace.num_events.values()),
        "by_ph_cat": dict(trace.num_events),
        "baseTimeNanoseconds": facts.base_time_ns or None,
        "displayTimeUnit": facts.metadata.get("displayTimeUnit"),
        "distributedInfo": dict(facts.distributed) or None,
        "n_device_properties": len(facts.devices),
        **trace_figures(profile, facts.base_time_ns),
        "problems": [
            {
                "what": problem.what,
                "count": problem.count,
                "where": problem.where,
                "is_usual": problem.is_usual,
            }
            for problem in trace.problems
        ],
    }
