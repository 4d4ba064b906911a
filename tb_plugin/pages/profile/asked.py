"""Routes about profiles: where time and memory of profiled steps went.

They are made of a trace that is open alone. One that is still being opened is answered
too: the answer says how far it is, and the page asks again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeVar

from msgspec import Meta

from tb_plugin.formats.recording.profiles import Profiles
from tb_plugin.pages.profile.choice import candidates_of, choice_of, profiler_traces
from tb_plugin.server.parameters import Count, Query, SourceId, Text
from tb_plugin.server.routes import Asked, route
from tb_plugin.storage import is_remote

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tb_plugin import api
    from tb_plugin.analysis.trace.profile import TraceProfile
    from tb_plugin.jobs.trace_sources import FoundSource, Opening
    from tb_plugin.server.state import State

OPEN_SECONDS: Final = 2.0
"""How long an answer waits for a trace that is being opened."""

MAX_TRIED: Final = 8
"""Traces that are opened to find one that can be."""

MAX_AHEAD: Final = 256 << 20
"""Bytes of a file that is opened before anybody asks: some seconds of a processor."""

SortColumn = Annotated[
    str, Meta(pattern=r"^-?[a-z_]{1,40}\Z", description="the name of a column")
]
"""A column to sort by, the largest first; with a minus the smallest."""


class SourceQuery(Query, frozen=True):
    """One trace; where none is named, the newest of a rank, or of any."""

    source: SourceId | None = None
    rank: Count | None = None


class TableQuery(SourceQuery, frozen=True):
    """Rows of a table: those that hold a text, the first ones by a column."""

    sort: SortColumn | None = None
    text: Text | None = None
    top: Annotated[int, Meta(ge=1, le=2_000)] = 500


S = TypeVar("S", bound=SourceQuery)


class Shown(NamedTuple):
    """The trace that is shown."""

    run: api.RunSummary
    traces: Sequence[FoundSource]
    """Those that may be chosen."""
    opening: Opening | None
    passed_over: Sequence[Opening]
    """What would have been shown, had it opened."""

    @property
    def stamp(self) -> tuple[object, ...]:
        """What decides it, and how far it is."""
        found = self.opening
        tried = [one.found.id for one in (*self.passed_over, found) if one is not None]
        state = found and (found.state, found.progress, found.doing)
        return [(one.id, *one.key) for one in self.traces], tried, state

    def choice(self, query: SourceQuery) -> api.ProfileChoice:
        """What may be chosen, and what was."""
        return choice_of(self.traces, self.opening, query.source, self.passed_over)


def of_profile(
    name: str, query: type[S]
) -> Callable[
    [Callable[[api.RunSummary, api.ProfileChoice, TraceProfile | None, S], object]],
    Callable[[api.RunSummary, api.ProfileChoice, TraceProfile | None, S], object],
]:
    """Declare a view of a profiled trace, None while it is opened, as the route `name`."""

    def declare(
        view: Callable[
            [api.RunSummary, api.ProfileChoice, TraceProfile | None, S], object
        ],
    ) -> Callable[[api.RunSummary, api.ProfileChoice, TraceProfile | None, S], object]:
        @route(name, query)
        def answer(asked: Asked[S]) -> object:
            found = shown(asked.state, asked.query)
            asked.decided_by(*found.stamp)
            profile = profile_of(asked.state, found)
            return view(found.run, found.choice(asked.query), profile, asked.query)

        return view

    return declare


def profiles(state: State) -> Profiles:
    """What is kept of all profiles."""
    return state.kept.get("profiles", lambda: Profiles(state.traces.sources))


def profile_of(state: State, found: Shown) -> TraceProfile | None:
    """The profile of the trace that is shown; None while it is being opened."""
    return None if found.opening is None else profiles(state).profile_of(found.opening)


def shown(state: State, query: SourceQuery) -> Shown:
    """The trace to show, and what failed before it; where all fail, the first.

    A newest trace is torn while it is written, and for ever after a crash.

    Raises:
        NotFoundError: there is no such run.
    """
    listed = state.traces.listed(query.run)
    traces = profiler_traces(listed.sources)
    passed_over: list[Opening] = []
    deadline = time.monotonic() + OPEN_SECONDS
    candidates = candidates_of(traces, query.source, query.rank)[:MAX_TRIED]
    for found in candidates:
        opening = state.traces.sources.open(query.run, found)
        if opening.failed_before is None or len(candidates) == 1:
            opening.wait(max(0.0, deadline - time.monotonic()))
        if opening.failure is None:
            return Shown(listed.summary, traces, opening, passed_over)
        passed_over.append(opening)
    first = passed_over[0] if passed_over else None
    return Shown(listed.summary, traces, first, ())


def begin(state: State, run_id: str) -> None:
    """Begin to open the trace that a run's Overview shows first."""
    traces = profiler_traces(state.traces.listed(run_id).sources)
    for found in candidates_of(traces, None)[:1]:
        if found.num_bytes <= MAX_AHEAD and not is_remote(found.path or ""):
            state.traces.sources.open(run_id, found)
