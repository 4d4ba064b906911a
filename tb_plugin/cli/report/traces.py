"""Traces of a run in a report: those that were recorded, and other files."""

# ruff: noqa: PTH118, PTH120
# os.path: pathlib would change the URLs that paths at a store are.

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePath
from threading import Semaphore
from typing import TYPE_CHECKING, Any, Final

from collector.format.errors import FormatError
from collector.format.names import rank_file_stem
from tb_plugin import storage
from tb_plugin.analysis.arrays import NOTHING
from tb_plugin.analysis.ranks.share import share_of
from tb_plugin.analysis.trace.figures import trace_figures
from tb_plugin.analysis.trace.profile import TraceProfile
from tb_plugin.cli.opening import no_deadline
from tb_plugin.formats.recording.captures import read_capture, traces_of
from tb_plugin.formats.traces import read_trace
from tb_plugin.jobs.job import problem_of
from tb_plugin.jobs.trace_files import note_trace
from tb_plugin.jobs.trace_sources import problems_of_trace
from tb_plugin.worker.importer import MAX_WORKERS, Importer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.format.records import CaptureEntry
    from tb_plugin.analysis.trace.trace import Trace
    from tb_plugin.formats.recording.rank_file import RankFile
    from tb_plugin.formats.traces.files.listing import FoundTrace
    from tb_plugin.index.run import Run

_BEGUN: Final = 4
"""Times as many as are read at once: the rest wait for their turn."""
_MAX_TEXT: Final = 100_000
_NUMBERS: Final = (
    *("cycle", "first_step", "last_step", "num_steps"),
    *("num_bytes", "num_events", "flops"),
)
_TEXTS: Final = ("problem", "remote", "summary")


def recorded_traces(run: Run, rank: int | None) -> Iterator[dict[str, Any]]:
    """Traces that the recording names: rank, attempt, steps, path, summary."""
    for number in run.ranks if rank is None else (rank,):
        for attempt, file in run.rank_files(number):
            for _, entry in traces_of(file, no_deadline()):
                try:
                    yield _recorded(attempt.index, file, entry)
                except (FormatError, OSError):  # noqa: PERF203
                    continue  # it is among the run's problems


def trace_files(run: Run, rank: int | None) -> Iterator[dict[str, Any]]:
    """Every other trace file of all ranks, or of one, in their order, with its figures.

    What is wrong with one is noted as a problem of the run. Small ones are read first, and
    more are begun than are read at a time: none waits for one that takes long.
    """
    found = [one for one in run.traces.files if rank in (None, one.rank)]
    if not found:
        return
    importer = Importer()
    try:
        with ThreadPoolExecutor(_BEGUN * MAX_WORKERS) as pool:
            by_size = sorted(found, key=lambda one: one.num_bytes)
            turn = Semaphore(MAX_WORKERS)
            figures = {
                one.id: pool.submit(_file, run, one, importer, turn) for one in by_size
            }
            for one in found:
                yield figures.pop(one.id).result()
    finally:
        importer.close()


def _recorded(attempt: int, file: RankFile, entry: CaptureEntry) -> dict[str, Any]:
    """A capture's meta, of whatever types its values may be."""
    meta = read_capture(file, entry, ()).meta
    path = _path(file, meta.get("path"))
    trace: dict[str, Any] = {
        "rank": file.rank,
        "attempt": attempt,
        "time_ms": entry.time_ns / 1e6,
        "path": path,
        "exists": path is not None and _exists(path),
        "complete": meta.get("complete") is not False,
    }
    for name in _NUMBERS:
        value = meta.get(name)
        trace[name] = value if type(value) in (int, float) else None
    for name in _TEXTS:
        value = meta.get(name)
        trace[name] = value[:_MAX_TEXT] if isinstance(value, str) else None
    return trace


def _path(file: RankFile, said: object) -> str | None:
    """Where the trace lies or lay: below the rank's own folder, nowhere else."""
    if not isinstance(said, str) or not said or "\0" in said:
        return None
    beside = os.path.dirname(file.parts[0].path)
    folder = os.path.join(beside, rank_file_stem(file.rank, file.attempt))
    if ".." in PurePath(said).parts or os.path.normpath(said) == ".":
        return None
    path = os.path.join(folder, os.path.normpath(said))
    return path if path.startswith(folder + os.sep) else None


def _exists(path: str) -> bool:
    try:
        return stat.S_ISREG(storage.at(path).stat(path).st_mode)
    except OSError:
        return False


def _file(
    run: Run, found: FoundTrace, importer: Importer, turn: Semaphore
) -> dict[str, Any]:
    """One file's figures; `turn` is held while they are made of its tables."""
    listed: dict[str, Any] = {
        "rank": found.rank,
        "worker": found.worker,
        "cycle": found.cycle,
        "name": found.name,
        "path": found.path,
        "exists": True,
        "num_bytes": found.num_bytes,
        "problem": None,
        "problems": [],
    }
    try:
        make = read_trace(found.path, importer, listed=found.key)
        with turn:
            trace = make()
            if found.is_share:
                trace = share_of(trace, found.rank)
            listed |= _figures(trace, found)
    except Exception as error:  # noqa: BLE001  # a file's failure is its own row's
        problem = problem_of(found, error)
        note_trace(run, found, (problem,))
        return {**listed, "problem": f"{problem.what} {problem.remedy}".strip()}
    note_trace(run, found, problems_of_trace(trace, found.shown_path, listed["rank"]))
    return listed


def _figures(trace: Trace, found: FoundTrace) -> dict[str, Any]:
    facts = trace.facts
    return {
        "rank": found.rank if facts.rank == NOTHING else facts.rank,
        "events": sum(trace.num_events.values()),
        "by_ph_cat": dict(trace.num_events),
        "baseTimeNanoseconds": facts.base_time_ns or None,
        "displayTimeUnit": facts.metadata.get("displayTimeUnit"),
        "distributedInfo": dict(facts.distributed) or None,
        "n_device_properties": len(facts.devices),
        **trace_figures(TraceProfile(trace), facts.base_time_ns),
        "problems": [
            {
                "what": one.what,
                "count": one.count,
                "where": one.where,
                "is_usual": one.is_usual,
            }
            for one in trace.problems
        ],
    }
