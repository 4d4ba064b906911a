"""Sources of a run's timeline: files of profilers, and the spans of each rank."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from memboard.collector.format.sizes import capitalized, counted
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.spans.events import events_of
from memboard.tb_plugin.analysis.spans.tracks import STEP, SpanFile, span_trace
from memboard.tb_plugin.analysis.time.intervals import union
from memboard.tb_plugin.analysis.time.profiled_steps import Steps, steps_of
from memboard.tb_plugin.analysis.time.slice_roles import Role, slice_roles
from memboard.tb_plugin.analysis.trace.texts import are
from memboard.tb_plugin.analysis.trace.timeline.counters import with_counters
from memboard.tb_plugin.api.base import Problem
from memboard.tb_plugin.cache import held_bytes
from memboard.tb_plugin.contract.errors import NotReadyError
from memboard.tb_plugin.formats.recording.captures.reading import (
    capture_of,
    captures_of,
)
from memboard.tb_plugin.jobs.job import Job, Jobs, Note
from memboard.tb_plugin.jobs.lazy import LazyCache, lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from memboard.collector.format.records import Capture, CaptureEntry
    from memboard.tb_plugin.analysis.spans.events import SpanEvent
    from memboard.tb_plugin.analysis.time.intervals import Ranges
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.analysis.trace.timeline.tiles import TraceTiles
    from memboard.tb_plugin.analysis.trace.trace import Trace
    from memboard.tb_plugin.api.time.trace import TraceSourceKind
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.index.run import Run

_logger = logging.getLogger("memboard")

MAX_SPANS: Final = 2_000_000
"""Of one rank that are shown: the newest."""

_SPANS_PER_CAPTURE: Final = 4_096
_MAX_PROBLEMS: Final = 20
_TRACE_REMEDY: Final = (
    "Figures lack what is named here: copy the file again where it was written whole, or"
    " profile again."
)


@dataclass(frozen=True, slots=True)
class FoundSource:
    """A source that can be opened."""

    id: str
    kind: TraceSourceKind
    name: str
    rank: int | None
    cycle: int | None
    num_bytes: int
    key: tuple[object, ...]
    load: Callable[[TraceJob], Callable[[], Trace]]
    """Waits until another process has read it; then its trace can be made here."""
    path: str | None = None
    """Of the file, where it is one by itself."""
    path_text: str = ""
    time_ns: int = 0
    """About when it was recorded; 0: not known."""
    is_recorded: bool = False
    """Whether one of our recordings knows the file; then it is shown before others."""
    note_problems: Note | None = None
    """Has the run show what is wrong with it; None: its own files do so."""


class OpenSource:
    """A source that is open, with what is derived from it when it is first needed."""

    def __init__(self, source: FoundSource, trace: Trace) -> None:
        self.found = source
        self.trace = trace
        self.lazy = LazyCache()
        self._searched: tuple[str, npt.NDArray[Any]] | None = None

    @cached_property
    def tiles(self) -> TraceTiles:
        """What is drawn of it."""
        from memboard.tb_plugin.analysis.trace.timeline.tiles import TraceTiles

        return TraceTiles(self.trace)

    @cached_property
    def steps(self) -> Steps:
        """Training steps that it names."""
        return steps_of(self.trace)

    @cached_property
    def work(self) -> Ranges:
        """When anything but steps and what only lies around work was under way."""
        trace = self.trace
        if self.found.kind == "spans":
            is_work = ~are(trace.strings, trace.slices.category, STEP.__eq__)
        else:
            is_work = slice_roles(trace) != Role.OTHER
        return union(trace.slices.ranges(is_work))

    @lazy
    def profile(self) -> TraceProfile:
        """Its analyses, as far as pages needed them."""
        from memboard.tb_plugin.analysis.trace.profile import TraceProfile

        return TraceProfile(self.trace)

    def matching(self, text: str) -> npt.NDArray[Any]:
        """By string: whether it holds a text; the last text is remembered."""
        from memboard.tb_plugin.analysis.trace.timeline.totals import matching

        searched = self._searched
        if searched is None or searched[0] != text:
            searched = self._searched = (text, matching(self.trace.strings, text))
        return searched[1]


TraceJob: TypeAlias = Job[FoundSource, OpenSource]


class TraceSources(Jobs[FoundSource, OpenSource]):
    """All sources that are open, or being opened; those used last stay."""

    max_retained = 64

    def __init__(self) -> None:
        super().__init__(held_bytes)

    def open(self, run_id: str, source: FoundSource) -> TraceJob:
        """A source, or how far it is; does not wait.

        Raises:
            NotReadyError: too many are being opened.
        """
        key = (run_id, source.id, *source.key)
        return self.begin(
            key, (run_id, source.id), source, self._opened, note=source.note_problems
        )

    def problems_of(self, source: FoundSource, result: OpenSource) -> list[Problem]:
        """What of the file is not shown, or not whole."""
        if source.kind != "trace":
            return []
        return problems_of_trace(result.trace, source.path_text, source.rank, source.id)

    def ready(self, run_id: str, source_id: str) -> OpenSource | None:
        """The newest of that id that is open."""
        job = self.latest((run_id, source_id))
        return None if job is None else job.result

    def _opened(self, job: TraceJob) -> OpenSource:
        make = job.found.load(job)
        with self.turn:
            return OpenSource(job.found, with_counters(make()))


def problems_of_trace(
    trace: Trace, path_text: str, rank: int | None, source: str = ""
) -> list[Problem]:
    """What the reader of a trace knows to be wrong with its file."""
    return [
        Problem(
            severity="warning",
            path=path_text,
            what=capitalized(problem.what).rstrip(".")
            + (f" ({problem.count:,})." if problem.count > 1 else "."),
            where=problem.where,
            salvaged=""
            if trace.is_empty
            else counted(sum(trace.num_events.values()), "event"),
            remedy=_TRACE_REMEDY,
            rank=rank,
            slice=_slice_of(trace, problem.event, source),
        )
        for problem in trace.problems[:_MAX_PROBLEMS]
        if not problem.is_usual
    ]


def _slice_of(trace: Trace, event: int, source: str) -> str | None:
    """The slice of an event, as pages name it; None where it is none."""
    if event == NOTHING or not source:
        return None
    rows = np.flatnonzero(trace.slices.args == event)
    return f"{source}:{rows[0]}" if len(rows) else None


def span_sources(run: Run, budget: Budget) -> Iterator[FoundSource]:
    """The spans of each rank; hold the run's lock."""
    for rank in run.ranks:
        files = [file for _, file in run.rank_files(rank)]
        captures = [
            (file, entry)
            for file in files
            for entry in captures_of(file, budget)
            if entry.kind == "spans"
        ]
        if not captures:
            continue
        captures = captures[-(MAX_SPANS // _SPANS_PER_CAPTURE) :]
        file, last = captures[-1]
        events = tuple(event for file in files for event in events_of(file.notes()))
        yield FoundSource(
            id=f"spans-{rank}",
            kind="spans",
            name="spans",
            rank=rank,
            cycle=None,
            num_bytes=sum(entry.num_bytes for _, entry in captures),
            key=(*file.identity, last.offset, len(captures), len(events)),
            load=_span_load(file, captures, events),
            path_text=file.shown_path,
            time_ns=last.time_ns,
        )


def _span_load(
    file: RankFile,
    captures: Sequence[tuple[RankFile, CaptureEntry]],
    events: Sequence[SpanEvent],
) -> Callable[[TraceJob], Callable[[], Trace]]:
    """Decodes captures of spans and puts them together."""

    def decoded(job: TraceJob) -> Iterator[Capture]:
        for index, (own_file, entry) in enumerate(captures):
            job.note(index / len(captures), "reading spans")
            try:
                yield capture_of(own_file, entry)
            except (OSError, ValueError):
                _logger.info("spans at byte %d cannot be read", entry.offset)

    def made(job: TraceJob) -> Trace:
        pid = getattr(file.header, "pid", 0) or 0
        of = SpanFile(file.rank, pid, f"spans of rank {file.rank}")
        trace = span_trace(decoded(job), of, events)
        if trace is None:
            raise NotReadyError(
                "The recording's spans hold nothing that can be read.",
                f"rank {file.rank}",
                "Look at the problems of the run.",
            )
        return trace

    return lambda job: lambda: made(job)
