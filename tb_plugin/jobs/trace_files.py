"""Trace files of a run, by whichever way they were found, as sources of its timeline."""

# ruff: noqa: PTH118, PTH120
# os.path: pathlib would change the URLs that paths at a store are.

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.format.names import rank_file_stem
from memboard.tb_plugin import storage
from memboard.tb_plugin.formats.file_listing import file_id
from memboard.tb_plugin.formats.plain_files import PlainFile, plain_file
from memboard.tb_plugin.formats.recording.captures.reading import (
    CaptureMetas,
    traces_of,
)
from memboard.tb_plugin.formats.traces.files.listing import FoundTrace
from memboard.tb_plugin.formats.traces.files.names import is_trace
from memboard.tb_plugin.jobs.trace_captures import read_listed_trace
from memboard.tb_plugin.jobs.trace_sources import FoundSource
from memboard.tb_plugin.worker.cache import FileKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from memboard.tb_plugin.analysis.trace.trace import Trace
    from memboard.tb_plugin.api.base import Problem
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.index.run import Run
    from memboard.tb_plugin.jobs.trace_sources import TraceJob
    from memboard.tb_plugin.worker.importer import Importer


_MAX_PATH: Final = 1024
_MAX_CYCLE: Final = 2**31 - 1


def artifact(file: RankFile, path_text: object) -> PlainFile | None:
    """A trace that a recording names, as it lies there now.

    None where it was deleted, or lies elsewhere: no link leads out of the folder beside
    the recording, nor does the folder, or whoever wrote the recording could have any file
    of this machine shown.
    """
    if (
        not isinstance(path_text, str)
        or not 0 < len(path_text) <= _MAX_PATH
        or "\0" in path_text
    ):
        return None
    beside = file.parts[0].path
    files = storage.at(beside)
    folder = files.realpath(os.path.dirname(beside))
    root = os.path.join(folder, rank_file_stem(file.rank, file.attempt))
    path = files.realpath(os.path.join(root, path_text))
    if not storage.is_inside(path, root):
        return None
    try:
        file_or_refusal = plain_file(path, None, is_trace)
    except OSError:
        return None
    return file_or_refusal if isinstance(file_or_refusal, PlainFile) else None


def recorded_trace(file: RankFile, meta: Mapping[str, Any]) -> FoundTrace | None:
    """The trace that a capture's meta names, if it lies there; see `artifact`."""
    trace_file = artifact(file, meta.get("path"))
    if trace_file is None:
        return None
    folder_name = rank_file_stem(file.rank, file.attempt)
    beside = file.parts[0]
    shown = (
        f"{beside.shown_path.rpartition('/')[0]}/{folder_name}/{meta['path']}".lstrip(
            "/"
        )
    )
    cycle = meta.get("cycle")
    is_number = isinstance(cycle, int) and 0 < cycle <= _MAX_CYCLE
    return FoundTrace(
        id=file_id("t", shown),
        path=trace_file.path,
        shown_path=shown,
        key=FileKey.of(trace_file.status),
        worker=f"rank{file.rank}",
        rank=file.rank,
        cycle=cycle if is_number else None,
        origin="recording",
        target=trace_file.path if beside.target else "",
    )


class TraceFiles:
    """All trace files of runs, by whichever way they were found."""

    def __init__(
        self, importer: Callable[[], Importer], capture_metas: CaptureMetas
    ) -> None:
        """`importer` is called when the first file is opened."""
        self._importer = importer
        self._metas = capture_metas

    def __call__(self, run: Run, budget: Budget) -> list[FoundSource]:
        """The sources of a run, whose lock is held."""
        return [self._source(run, trace) for trace in self.of(run, budget)]

    def of(self, run: Run, budget: Budget) -> Iterator[FoundTrace]:
        """The files of a run, whose lock is held: each once.

        What a recording says of a file goes before what its name says. Cycles of files
        that no recording knows are numbered behind the recordings' own: another tool's
        first cycle is not ours.
        """
        paths: set[str] = set()
        last_cycle = 0
        for key in sorted(run.files):
            for trace in self._captured(run.files[key], budget):
                if trace.path not in paths:
                    paths.add(trace.path)
                    last_cycle = max(last_cycle, trace.cycle or 0)
                    yield trace
        for trace in run.traces.files:
            if trace.is_share or trace.path not in paths:
                paths.add(trace.path)
                cycle = None if trace.cycle is None else trace.cycle + last_cycle
                yield trace if cycle == trace.cycle else replace(trace, cycle=cycle)

    def _captured(self, file: RankFile, budget: Budget) -> Iterator[FoundTrace]:
        """The traces that a rank's recording names, oldest first."""
        for _, entry in traces_of(file, budget):
            meta = self._metas.of(file, entry, budget)
            trace = None if meta is None else recorded_trace(file, meta)
            if trace is not None:
                yield trace

    def _source(self, run: Run, trace: FoundTrace) -> FoundSource:
        def load(job: TraceJob) -> Callable[[], Trace]:
            return read_listed_trace(trace, self._importer(), job.note)

        return FoundSource(
            id=trace.id,
            kind="trace",
            name=trace.name,
            rank=trace.rank,
            cycle=trace.cycle,
            num_bytes=trace.num_bytes,
            key=tuple(trace.key),
            load=load,
            path=trace.path,
            path_text=trace.path_text,
            time_ns=trace.key.mtime_ns,
            is_recorded=trace.origin == "recording",
            note_problems=partial(note_trace, run, trace),
        )


def note_trace(run: Run, trace: FoundTrace, problems: Sequence[Problem]) -> None:
    """Have the run show what is wrong with a trace."""
    with run.lock:
        is_listed = trace.origin == "file"
        run.note_read(trace.path, problems, listed=trace.key if is_listed else None)
