"""The traces of torch's profiler in a report: which steps, where, and what took the time."""

# ruff: noqa: PTH118, PTH120
# os.path: pathlib would change the URLs that paths at a store are.

from __future__ import annotations

import os
import stat
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from collector.cli.text import counted
from collector.format.errors import FormatError
from collector.format.names import rank_file_stem
from tb_plugin import storage
from tb_plugin.formats.recording.captures import read_capture, traces_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collector.format.records import CaptureEntry
    from tb_plugin.formats.recording.rank_file import RankFile
    from tb_plugin.index.run import Run

_MAX_TEXT: Final = 100_000
_MAX_LISTED: Final = 10
"""Traces that are listed as text."""

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


def traces_section(run: Run, rank: int | None) -> list[dict[str, Any]]:
    """Every trace of all ranks, or of one: those that were recorded, then other files."""
    from tb_plugin.cli.recordings import unhurried
    from tb_plugin.cli.report.trace_files import trace_files_section

    found = (
        _trace(attempt.index, file, entry)
        for number in (run.ranks if rank is None else (rank,))
        for attempt, file in run.rank_files(number)
        for _, entry in traces_of(file, unhurried())
    )
    captured = [trace for trace in found if trace is not None]
    return [*captured, *trace_files_section(run, rank)]


def traces_text(traces: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A line for each of the newest; none where there are none."""
    if not traces:
        return
    kept = sum(trace["exists"] for trace in traces)
    yield f"torch profiler: {counted(len(traces), 'trace')}, {kept} of them here"
    for trace in traces[-_MAX_LISTED:]:
        steps = f"steps {trace.get('first_step')} to {trace.get('last_step')}"
        if "events" in trace:
            steps = f"{trace['events']:,} events"
        where = trace["path"] if trace["exists"] else trace["remote"] or "not here"
        of = "" if trace["rank"] is None else f"rank {trace['rank']}, "
        problem = f" ({trace['problem']})" if trace["problem"] else ""
        yield f"  {of}{steps}: {where}{problem}"


def _trace(attempt: int, file: RankFile, entry: CaptureEntry) -> dict[str, Any] | None:
    """What a capture says, of whatever types its meta may be."""
    try:
        meta = read_capture(file, entry, ()).meta
    except (FormatError, OSError):
        return None
    path = _path(file, meta.get("path"))
    trace: dict[str, Any] = {
        "rank": file.rank,
        "attempt": attempt,
        "time_ms": entry.time_ns / 1e6,
        "path": path,
        "exists": path is not None and _exists(path),
    }
    for name in _NUMBERS:
        value = meta.get(name)
        sane = isinstance(value, (int, float)) and not isinstance(value, bool)
        trace[name] = value if sane else None
    for name in _TEXTS:
        value = meta.get(name)
        trace[name] = value[:_MAX_TEXT] if isinstance(value, str) else None
    trace["complete"] = meta.get("complete") is not False
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
