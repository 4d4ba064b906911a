"""The profiled trace that a query names: which it is, and how far it is opened."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from msgspec import Meta
from msgspec.structs import replace

from memboard.tb_plugin.api.base import Problem
from memboard.tb_plugin.api.time.profile import ProfileChoice, ProfiledTrace
from memboard.tb_plugin.contract.parameters import Count, Query, SourceId, Text
from memboard.tb_plugin.jobs.trace_sources import problems_of_trace
from memboard.tb_plugin.storage import is_remote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.jobs.trace_sources import FoundSource, TraceJob


OPEN_SECONDS: Final = 2.0
"""Longest wait of an answer for a trace that is being opened."""

MAX_TRIED: Final = 8
"""Traces that are opened to find one that can be."""

MAX_AHEAD: Final = 256 << 20
"""Bytes of a file that is opened before anybody asks: some seconds of a processor."""

MS: Final = 1e6

US: Final = 1e3
"""Nanoseconds of the units in which profiles are sent."""

MAX_LISTED: Final = 1_000

SortColumn = Annotated[
    str, Meta(pattern=r"^-?[a-z_]{1,40}\Z", description="the name of a column")
]
"""A column to sort by, the largest first; with a minus the smallest."""


class SourceQuery(Query, frozen=True):
    """One trace; where none is named, the newest of a rank and cycle, or of any."""

    source: SourceId | None = None
    rank: Count | None = None
    cycle: Count | None = None


class TableQuery(SourceQuery, frozen=True):
    """Rows of a table: those that hold a text, the first ones by a column."""

    sort: SortColumn | None = None
    text: Text | None = None
    top: Annotated[int, Meta(ge=1, le=2_000)] = 500


class ChosenTrace(NamedTuple):
    """The trace that is shown."""

    run: RunSummary
    traces: Sequence[FoundSource]
    """Those that may be chosen."""
    opening: TraceJob | None
    passed_over: Sequence[TraceJob]
    """What would have been shown, had it opened."""

    @property
    def stamp(self) -> tuple[object, ...]:
        """What decides it, and how far it is."""
        opening = self.opening
        tried = [
            job.found.id for job in (*self.passed_over, opening) if job is not None
        ]
        state = opening and (opening.state, opening.progress, opening.doing)
        return [(trace.id, *trace.key) for trace in self.traces], tried, state

    @property
    def profile(self) -> TraceProfile | None:
        """The analyses of the trace that is shown; None while it is being opened."""
        source = None if self.opening is None else self.opening.result
        return None if source is None else source.profile

    def choice(self, query: SourceQuery) -> ProfileChoice:
        """What may be chosen, and what was."""
        opening = self.opening
        of_trace: dict[str, Any] = {}
        if opening is not None:
            source = opening.result
            left_out = (
                ()
                if source is None
                else problems_of_trace(
                    source.trace,
                    opening.found.name,
                    opening.found.rank,
                    opening.found.id,
                )
            )
            of_trace = {
                "source": opening.found.id,
                "state": opening.state,
                "progress": opening.progress,
                "doing": opening.doing,
                "problem": opening.problem,
                "problems": (
                    *_passed_over(self.passed_over, opening.found),
                    *left_out,
                ),
            }
        elif query.source is not None:
            of_trace["problem"] = Problem(
                severity="error",
                path="",
                what="This trace is not in the run (any more).",
                remedy="Choose another one.",
            )
        return ProfileChoice(
            traces=tuple(
                ProfiledTrace(
                    id=trace.id,
                    name=trace.name,
                    rank=trace.rank,
                    cycle=trace.cycle,
                    title=_title(trace),
                )
                for trace in self.traces[-MAX_LISTED:]
            ),
            num_traces=len(self.traces),
            **of_trace,
        )


def _title(trace: FoundSource) -> str:
    numbers = {"rank": trace.rank, "cycle": trace.cycle}
    numbered = [
        f"{noun} {number}" for noun, number in numbers.items() if number is not None
    ]
    return f"{', '.join(numbered)}: {trace.name}" if numbered else trace.name


def shown(readers: RunReaders, query: SourceQuery) -> ChosenTrace:
    """The trace to show, and what failed before it; where all fail, the first.

    A newest trace is torn while it is written, and for ever after a crash.

    Raises:
        NotFoundError: there is no such run.
    """
    listed = readers.traces.listed(query.run)
    traces = profiler_traces(listed.sources)
    passed_over: list[TraceJob] = []
    deadline = time.monotonic() + OPEN_SECONDS
    wanted = (query.source, query.rank, query.cycle)
    candidates = candidates_of(traces, *wanted)[:MAX_TRIED]
    readers.traces.sources.show(1)
    for candidate in candidates:
        opening = readers.traces.sources.open(query.run, candidate)
        if opening.failed_before is None or len(candidates) == 1:
            opening.wait(max(0.0, deadline - time.monotonic()))
        if opening.failure is None:
            return ChosenTrace(listed.summary, traces, opening, passed_over)
        passed_over.append(opening)
    first = passed_over[0] if passed_over else None
    return ChosenTrace(listed.summary, traces, first, ())


def begin(readers: RunReaders, run_id: str) -> None:
    """Begin to open the trace that a run's Overview shows first."""
    traces = profiler_traces(readers.traces.listed(run_id).sources)
    for candidate in candidates_of(traces, None)[:1]:
        if candidate.num_bytes <= MAX_AHEAD and not is_remote(candidate.path or ""):
            readers.traces.sources.open(run_id, candidate)


def profiler_traces(sources: Sequence[FoundSource]) -> list[FoundSource]:
    """Those that a profiler wrote, by cycle and rank, those that we recorded last."""
    return sorted(
        (source for source in sources if source.kind == "trace"),
        key=lambda trace: (
            trace.is_recorded,
            trace.cycle or 0,
            trace.rank is None,
            trace.rank or 0,
            trace.time_ns,
            trace.name,
        ),
    )


def candidates_of(
    traces: Sequence[FoundSource],
    source: str | None,
    rank: int | None = None,
    cycle: int | None = None,
) -> list[FoundSource]:
    """The query's; else any, the newest cycle's first, or that rank's alone.

    Those of the query's cycle come before all others.

    An id that is not there chooses nothing: the page says so.
    """
    if source is not None:
        return [trace for trace in traces if trace.id == source]
    own = [trace for trace in traces if rank is None or trace.rank == rank] or traces
    return sorted(
        own,
        key=lambda trace: (
            trace.cycle != cycle,
            not trace.is_recorded,
            -(trace.cycle or 0),
        ),
    )


def _passed_over(openings: Sequence[TraceJob], shown: FoundSource) -> Iterator[Problem]:
    for opening in openings:
        if opening.failure is not None:
            # Without its name the page's line would be about the trace that is shown.
            yield replace(
                opening.failure,
                severity="warning",
                what=f"Another trace, {opening.found.name}, cannot be opened: "
                f"{opening.failure.what}",
                salvaged=f"{shown.name} is shown.",
            )
