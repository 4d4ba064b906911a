"""The routes about traces: what a run's timeline is made of, and pictures of it.

Sources are opened by threads of their own: `/trace` says how far each is. Pictures are
made of open sources alone; only the recording's own numbers need the run's lock.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from tb_plugin.budget import Budget
from tb_plugin.readers.trace_sources import TraceSources, span_sources
from tb_plugin.server.errors import (
    BadRequestError,
    NotFoundError,
    NotReadyError,
    UnreadableError,
)
from tb_plugin.server.respond import data_answer, etag_of, not_modified
from tb_plugin.trace_query import parse_trace_query
from tb_plugin.views.trace import Chosen, choose, trace
from tb_plugin.views.trace_axis import (
    COUNTERS,
    Placed,
    RunClocks,
    placed,
    run_clocks,
    window_of,
)
from tb_plugin.views.trace_counters import RankCounters
from tb_plugin.views.trace_instants import trace_instant
from tb_plugin.views.trace_slice import trace_slice
from tb_plugin.views.trace_slices import trace_slices
from tb_plugin.views.trace_totals import trace_range, trace_search
from tb_plugin.wire import CONTENT_TYPE, envelope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from werkzeug.wrappers import Request, Response

    from tb_plugin import api
    from tb_plugin.readers.trace_sources import FoundSource, OpenSource
    from tb_plugin.run import Run
    from tb_plugin.store import Store
    from tb_plugin.trace_query import TraceQuery

ROUTES: Final = (
    "trace",
    "trace_slices",
    "trace_slice",
    "trace_instant",
    "trace_search",
    "trace_range",
)

FIND_SECONDS: Final = 2.0
OPEN_SECONDS: Final = 0.5
"""How long `/trace` waits for sources that are being opened."""
PICTURE_SECONDS: Final = 3.0
_LISTED_SECONDS: Final = 1.0
"""How long a list of sources holds for pictures."""


class TraceRoutes:
    """Answers by the route's name."""

    def __init__(
        self,
        store: Store,
        summary: Callable[[Run], api.RunSummary],
        *,
        files: Callable[[Run, Budget], Sequence[FoundSource]] | None = None,
    ) -> None:
        """`summary` of a run, whose lock is held; `files`: traces in files of a run."""
        self.sources: Final = TraceSources()
        self._store = store
        self._summary = summary
        self._files = files
        self.has_perfetto: Callable[[], bool] = lambda: False
        """Whether a build of Perfetto's page is served beside ours."""
        self._lists: dict[str, tuple[float, _Listed]] = {}
        self._lock = threading.Lock()

    def answer(self, name: str, request: Request) -> Response:
        """The answer of `/<name>`.

        Raises:
            RequestError: what was asked for means nothing, is not there, or is not
                open yet.
        """
        query = parse_trace_query(request.args)
        if name == "trace":
            return self._trace(request, query)
        return self._picture(name, request, query)

    def listed(self, run_id: str) -> tuple[api.RunSummary, Sequence[FoundSource]]:
        """A run, and all that its timeline is made of.

        Raises:
            NotFoundError: there is no such run.
        """
        found = self._listed(run_id)
        return found.summary, found.sources

    def file_of(self, query: TraceQuery) -> FoundSource:
        """The source whose file is wanted.

        Raises:
            NotFoundError: there is no such source, or it is no file.
        """
        listed = self._listed(query.run)
        for found in listed.sources:
            if found.id == query.source and found.path is not None:
                return found
        raise NotFoundError(
            "There is no such trace file.",
            "the trace in the address",
            "It may have been deleted: reload the page.",
        )

    def _trace(self, request: Request, query: TraceQuery) -> Response:
        listed = self._listed(query.run, fresh=True)
        chosen = choose(listed.sources, query)
        run = self._store.run(query.run)
        openings = [self.sources.open(query.run, one) for one in chosen.sources]
        until = time.monotonic() + OPEN_SECONDS
        for opening in openings:
            opening.wait(max(0.0, until - time.monotonic()))
        with run.lock:
            budget = Budget(FIND_SECONDS)
            summary, version = self._summary(run), run.version
            ranks = chosen.ranks or _ranks_shown(run, query)
            states = [(one.state, one.progress, one.doing) for one in openings]
            etag = etag_of(
                self._store.epoch,
                "trace",
                version,
                listed.keys,
                query,
                states,
                listed.still_reading,
            )
            unchanged = not_modified(request, etag, CONTENT_TYPE)
            if unchanged is not None:
                return unchanged
            clocks = run_clocks(run)
            counters = [
                (
                    rank,
                    clocks.offset_ns(rank),
                    RankCounters(self._store.series, run, rank),
                )
                for rank in ranks
                if rank >= 0
            ]
            response = trace(
                summary,
                listed.sources,
                chosen if chosen.ranks else _with_ranks(chosen, ranks, len(run.ranks)),
                openings,
                self._placed(query.run, chosen.sources, clocks, summary),
                counters,
                listed.problems,
                still_reading=listed.still_reading or budget.exhausted,
                local_perfetto=self.has_perfetto(),
            )
        return data_answer(request, envelope(response), etag)

    def _picture(self, name: str, request: Request, query: TraceQuery) -> Response:
        ids = [one for one, _ in query.tracks]
        if name in ("trace_slice", "trace_instant"):
            if query.source is None or query.row is None:
                raise BadRequestError(
                    "A source and a row must be given.",
                    "source, row",
                    "Reload the page.",
                )
            ids = [query.source]
        listed = self._listed(query.run)
        places = self._places(query, listed, ids)
        keys = [place.source.found.key for place in places.values()]
        clocks = [place.zero_ns for place in places.values()]
        numbers = any(one.startswith(COUNTERS) for one in ids)
        version = listed.version if numbers else 0
        etag = etag_of(self._store.epoch, name, keys, clocks, version, query)
        unchanged = not_modified(request, etag, CONTENT_TYPE)
        if unchanged is not None:
            return unchanged
        response: object
        if name == "trace_slices":
            response = trace_slices(places, query, self._lines(query))
        elif name == "trace_search":
            response = trace_search(places, query)
        elif name == "trace_range":
            response = trace_range(places, query)
        else:
            (place,) = places.values()
            of = trace_slice if name == "trace_slice" else trace_instant
            response = of(place, query.row or 0)
        return data_answer(request, envelope(response), etag)

    def _places(
        self, query: TraceQuery, listed: _Listed, ids: Iterable[str]
    ) -> dict[str, Placed]:
        """The sources of ids, open and on the clock that `/trace` put them on.

        Raises:
            NotFoundError: one of them is not in the run.
            NotReadyError: one is still being opened.
            UnreadableError: one cannot be opened.
        """
        wanted = {one for one in ids if not one.startswith(COUNTERS)}
        by_id = {one.id: one for one in listed.sources}
        missing = sorted(wanted - by_id.keys())
        if missing:
            raise NotFoundError(
                "There is no such trace in the run.",
                "the trace in the address",
                "It may have been deleted: reload the page.",
            )
        for one in sorted(wanted):
            self._wait_for(query.run, by_id[one])
        # All that are shown together decide where one without a wall clock lies.
        shown = [one for one in listed.sources if self._is_open(query.run, one)]
        found = self._placed(query.run, shown, listed.clocks, listed.summary)
        return {one.id: one for one in found if one.id in wanted}

    def _is_open(self, run_id: str, found: FoundSource) -> bool:
        return self.sources.ready(run_id, found.id) is not None

    def _wait_for(self, run_id: str, found: FoundSource) -> None:
        if self._is_open(run_id, found):
            return
        opening = self.sources.open(run_id, found)
        opening.wait(PICTURE_SECONDS)
        if opening.problem is not None:
            problem = opening.problem
            where = ", ".join(filter(None, (problem.path, problem.where)))
            raise UnreadableError(problem.what, where, problem.remedy)
        if opening.source is None:
            raise NotReadyError(
                "The trace is still being opened.",
                found.name[:200],
                "Ask again in a moment.",
            )

    def _placed(
        self,
        run_id: str,
        sources: Iterable[FoundSource],
        clocks: RunClocks,
        summary: api.RunSummary,
    ) -> list[Placed]:
        found: list[OpenSource] = []
        for one in sources:
            ready = self.sources.ready(run_id, one.id)
            if ready is not None and ready.source is not None:
                found.append(ready.source)
        return placed(found, clocks, int(summary.first_ms * 1e6))

    def _lines(self, query: TraceQuery) -> list[api.TraceLine]:
        """The run's own numbers in a window."""
        asked = [one for one in query.tracks if one[0].startswith(COUNTERS)]
        if not asked:
            return []
        window = window_of(query)
        run = self._store.run(query.run)
        lines: list[api.TraceLine] = []
        with run.lock:
            budget = Budget(FIND_SECONDS)
            clocks = run_clocks(run)
            for source_id, indices in asked:
                rank = source_id.removeprefix(COUNTERS)
                if not (rank.isdigit() and len(rank) < 9):
                    raise NotFoundError(
                        "There are no such counters.", source_id, "Reload the page."
                    )
                counters = RankCounters(self._store.series, run, int(rank))
                offset = clocks.offset_ns(int(rank))
                lines += counters.lines(
                    source_id, indices, window, query.px, budget, offset
                )
        return lines

    def _listed(self, run_id: str, *, fresh: bool = False) -> _Listed:
        now = time.monotonic()
        with self._lock:
            known = self._lists.get(run_id)
        if known is not None and not fresh and now - known[0] < _LISTED_SECONDS:
            return known[1]
        run = self._store.run(run_id)
        with run.lock:
            budget = Budget(FIND_SECONDS)
            run.update(budget)
            sources = list(span_sources(run, budget))
            if self._files is not None:
                sources += self._files(run, budget)
            sources.sort(key=lambda one: (one.rank is None, one.rank or 0, one.kind))
            listing = run.found.traces
            listed = _Listed(
                sources,
                () if listing is None else listing.problems,
                run_clocks(run),
                self._summary(run),
                run.version,
                budget.exhausted or run.unfinished,
            )
        with self._lock:
            if len(self._lists) > _MAX_LISTS:
                self._lists.clear()
            self._lists[run_id] = (now, listed)
        return listed


_MAX_LISTS: Final = 64


class _Listed:
    """What a run had when it was last looked at."""

    def __init__(
        self,
        sources: list[FoundSource],
        problems: tuple[api.Problem, ...],
        clocks: RunClocks,
        summary: api.RunSummary,
        version: int,
        still_reading: bool,
    ) -> None:
        self.sources = sources
        self.problems = problems
        self.clocks = clocks
        self.summary = summary
        self.version = version
        self.still_reading = still_reading

    @property
    def keys(self) -> list[tuple[object, ...]]:
        """What decides what is in it."""
        return [(one.id, *one.key) for one in self.sources]


def _ranks_shown(run: Run, query: TraceQuery) -> tuple[int, ...]:
    """Of a run without traces and spans: whose numbers are shown."""
    ranks = run.ranks
    if query.rank is not None:
        ranks = [rank for rank in ranks if rank == query.rank]
    elif query.ranks is not None:
        ranks = [rank for rank in ranks if rank in query.ranks]
    return tuple(ranks[:4])


def _with_ranks(chosen: Chosen, ranks: tuple[int, ...], number: int) -> Chosen:
    return Chosen(chosen.sources, ranks, number)
