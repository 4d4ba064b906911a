"""The trace files of a run as sources of its Trace view."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tb_plugin.analysis.ranks.share import share_of
from tb_plugin.formats.traces import open_trace
from tb_plugin.formats.traces.files.captured import CapturedTraces
from tb_plugin.jobs.trace_sources import FoundSource
from tb_plugin.jobs.worker.kinds import TRACE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tb_plugin.analysis.trace.trace import Trace
    from tb_plugin.budget import Budget
    from tb_plugin.formats.traces.files.found import FoundTrace
    from tb_plugin.index.run import Run
    from tb_plugin.jobs.trace_sources import Note
    from tb_plugin.jobs.worker.importer import Importer


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
        load = _Load(found, self._importer)
        return FoundSource(
            id=found.id,
            kind="trace",
            name=found.name,
            rank=found.rank,
            cycle=found.cycle,
            num_bytes=found.num_bytes,
            key=tuple(found.key),
            load=load,
            read=load.read,
            path=found.path,
            shown_path=found.shown_path,
            time_ns=found.key.mtime_ns,
            is_recorded=found.origin == "recording",
        )


@dataclass(frozen=True, slots=True)
class _Load:
    """Opens one file; see `trace_sources.Load`."""

    found: FoundTrace
    importer: Callable[[], Importer]

    def read(self, note: Note) -> object:
        """See `FoundSource.read`."""
        started = self.importer().start(self.found.path, self.found.key, kind=TRACE)
        return started.followed(lambda share: note(share, "reading the file"))

    def __call__(self, note: Note) -> Trace:
        trace = open_trace(
            self.found.path,
            self.importer(),
            listed=self.found.key,
            note=lambda share: note(share, "reading the file"),
        )
        return share_of(trace, self.found.rank) if self.found.is_share else trace
