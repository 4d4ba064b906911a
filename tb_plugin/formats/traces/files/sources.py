"""Trace files of a run, by whichever way they were found, as sources of its timeline."""

# ruff: noqa: PTH118, PTH120
# os.path: pathlib would change the URLs that paths at a store are.

from __future__ import annotations

import os
import stat
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from collector.format.errors import FormatError
from collector.format.names import rank_file_stem
from tb_plugin import storage
from tb_plugin.analysis.ranks.share import share_of
from tb_plugin.formats.found_files import file_id
from tb_plugin.formats.recording.captures import capture_of, traces_of
from tb_plugin.formats.traces import read_trace
from tb_plugin.formats.traces.files.listing import FoundTrace
from tb_plugin.jobs.trace_sources import FoundSource
from tb_plugin.jobs.worker.cache import FileKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.format.records import CaptureEntry
    from tb_plugin.analysis.trace.trace import Trace
    from tb_plugin.budget import Budget
    from tb_plugin.formats.recording.rank_file import RankFile
    from tb_plugin.index.run import Run
    from tb_plugin.jobs.trace_sources import TraceJob
    from tb_plugin.jobs.worker.importer import Importer


_MAX_PATH: Final = 1024
_MAX_CYCLE: Final = 2**31 - 1


class CapturedTraces:
    """What captures point to; each is decoded once. Not safe for threads."""

    def __init__(self) -> None:
        self._said: dict[tuple[object, ...], dict[str, Any] | None] = {}
        """`meta` by file and offset; None where it cannot be read."""

    def of(self, file: RankFile, budget: Budget) -> Iterator[FoundTrace]:
        """The traces of one rank's file, oldest first."""
        for _, entry in traces_of(file, budget):
            key = (*file.identity, entry.offset)
            if key not in self._said:
                if not budget.allows():
                    return
                self._said[key] = _meta(file, entry)
            meta = self._said[key]
            found = None if meta is None else _found(file, meta)
            if found is not None:
                yield found


def _meta(file: RankFile, entry: CaptureEntry) -> dict[str, Any] | None:
    try:
        meta = capture_of(file, entry, ()).meta
    except (FormatError, OSError, ValueError):
        return None
    return dict(meta) if isinstance(meta, dict) else None


def _found(file: RankFile, meta: dict[str, Any]) -> FoundTrace | None:
    """The file as it lies there now; None where it was deleted, or lies elsewhere."""
    said = meta.get("path")
    if not isinstance(said, str) or not 0 < len(said) <= _MAX_PATH or "\0" in said:
        return None
    beside = file.parts[0].path
    files = storage.at(beside)
    name = rank_file_stem(file.rank, file.attempt)
    folder = os.path.join(os.path.dirname(beside), name)
    inside = files.realpath(folder)
    path = files.realpath(os.path.join(folder, said))
    if not path.startswith(inside + os.sep):
        return None
    try:
        status = files.lstat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    shown = f"{file.shown_path.rpartition('/')[0]}/{name}/{said}".lstrip("/")
    cycle = meta.get("cycle")
    known = isinstance(cycle, int) and 0 < cycle <= _MAX_CYCLE
    return FoundTrace(
        id=file_id("t", shown),
        path=path,
        shown_path=shown,
        key=FileKey.of(status),
        worker=f"rank{file.rank}",
        rank=file.rank,
        cycle=cycle if known else None,
        origin="recording",
    )


class TraceFiles:
    """All trace files of runs, by whichever way they were found."""

    def __init__(self, importer: Callable[[], Importer]) -> None:
        """`importer` is called when the first file is opened."""
        self._importer = importer
        self._captured = CapturedTraces()

    def __call__(self, run: Run, budget: Budget) -> list[FoundSource]:
        """The sources of a run, whose lock is held."""
        return [self._source(found) for found in self.of(run, budget)]

    def of(self, run: Run, budget: Budget) -> Iterator[FoundTrace]:
        """The files of a run, whose lock is held: each once.

        What a recording says of a file goes before what its name says. Cycles of files
        that no recording knows are numbered behind the recordings' own: another tool's
        first cycle is not ours.
        """
        known: set[str] = set()
        last_cycle = 0
        for key in sorted(run.files):
            for found in self._captured.of(run.files[key], budget):
                if found.path not in known:
                    known.add(found.path)
                    last_cycle = max(last_cycle, found.cycle or 0)
                    yield found
        for found in run.traces.files:
            if found.is_share or found.path not in known:
                known.add(found.path)
                cycle = None if found.cycle is None else found.cycle + last_cycle
                yield found if cycle == found.cycle else replace(found, cycle=cycle)

    def _source(self, found: FoundTrace) -> FoundSource:
        def load(job: TraceJob) -> Callable[[], Trace]:
            made = read_trace(
                found.path,
                self._importer(),
                listed=found.key,
                note=lambda share: job.note(share, "reading the file"),
            )
            return lambda: share_of(made(), found.rank) if found.is_share else made()

        return FoundSource(
            id=found.id,
            kind="trace",
            name=found.name,
            rank=found.rank,
            cycle=found.cycle,
            num_bytes=found.num_bytes,
            key=tuple(found.key),
            load=load,
            path=found.path,
            shown_path=found.shown_path,
            time_ns=found.key.mtime_ns,
            is_recorded=found.origin == "recording",
        )
