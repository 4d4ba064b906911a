"""The data routes, and with them all that is heavy: imported at the first question.

What only some questions need is imported when the first of those is asked: what stands
between a start and its first picture is all that a start pays for.

A data request goes: parameters (`query`) -> the run, brought up to date (`store`) -> the
view of the route's name -> a dataclass of `api` -> bytes (`wire`) -> an answer with an
ETag (`answers`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from tb_plugin.budget import Budget
from tb_plugin.cache import Cache
from tb_plugin.history_routes import ROUTES, HistoryRoutes
from tb_plugin.query import parse_query
from tb_plugin.readers.imports.importer import Importer
from tb_plugin.readers.kept import Kept
from tb_plugin.server.drop import Drops
from tb_plugin.server.respond import data_answer, etag_of, fresh_answer, not_modified
from tb_plugin.store import CHECK_SECONDS, REQUEST_SECONDS, Store, glance
from tb_plugin.views import view_of
from tb_plugin.views.facts import FactsReader
from tb_plugin.views.runs import runs, summary_of
from tb_plugin.views.selection import prefetcher
from tb_plugin.wire import CONTENT_TYPE, envelope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from werkzeug.wrappers import Request, Response

    from tb_plugin import api
    from tb_plugin.all_trace_routes import AllTraceRoutes
    from tb_plugin.listing import FoundRun
    from tb_plugin.logdirs import Logdir
    from tb_plugin.query import Query
    from tb_plugin.readers.functions import FunctionsReader
    from tb_plugin.readers.modules import ModulesReader
    from tb_plugin.readers.rank_file import RankFile
    from tb_plugin.run import Run
    from tb_plugin.trace_routes import TraceRoutes
    from tb_plugin.views.verdict import VerdictReader

MODULES_CACHE_BYTES: Final = 192 << 20
"""Logs of module memory, and what was made of them."""

MODULE_SECONDS: Final = 1.0
"""What one module's picture over windows and ranks may take at a time."""

PICKER_SECONDS: Final = 0.5
"""What the run picker may spend on reading."""


class DataRoutes:
    """Answers by the route's name."""

    def __init__(
        self,
        logdirs: tuple[Logdir, ...],
        given: Sequence[FoundRun] = (),
        drops: Drops | None = None,
        has_perfetto: Callable[[], bool] = lambda: False,
    ) -> None:
        """`given`: runs of files that were named one by one.

        `has_perfetto`: whether a build of Perfetto's page is served beside ours.
        """
        self.drops: Final = Drops(allowed=False) if drops is None else drops
        self.store: Final = Store(logdirs, lambda: (*given, *self.drops.runs()))
        self.facts: Final = FactsReader(self.store.series)
        self.capacity_bytes: int | None = None
        """Size of the devices, for verdicts about files that do not record it."""
        self.importer: Final = lru_cache(maxsize=1)(Importer)
        """Of all files of other tools, so that few are read at a time; made late."""
        self.histories: Final = HistoryRoutes(self.store, self._summary, self.importer)
        self._has_perfetto = has_perfetto
        self._kept = Kept()
        """Readers that only some routes need."""
        self._first_series = prefetcher(self.store.series, parse_query({}))
        self._asked: list[str] = []
        """One entry per request that is being answered; appending is atomic."""
        self._summaries: WeakKeyDictionary[
            Run, tuple[tuple[int, int], api.RunSummary]
        ] = WeakKeyDictionary()

    def answer(self, name: str, request: Request) -> Response:
        """The answer of `/<name>`.

        Raises:
            RequestError: what was asked for means nothing or is not there.
        """
        self._asked.append(name)
        try:
            if name in ROUTES:
                return self.histories.answer(name, request)
            if name == "runs":
                return self._runs(request)
            if name in _OF_RUN:
                return self._of_run(name, request)
            return self._all_traces.answer(name, request)
        finally:
            self._asked.pop()

    @property
    def traces(self) -> TraceRoutes:
        """What answers questions about a run's timeline."""
        return self._all_traces.traces

    @property
    def is_asked(self) -> bool:
        """Whether a request is being answered now."""
        return bool(self._asked)

    def drop(self, request: Request) -> Response:
        """Take the body of a request as a file that was dropped onto the page.

        Raises:
            RequestError: it is not taken.
        """
        candidate = self.drops.receive(request)
        run = self.store.hand_over(lambda: self.drops.add(candidate))
        return fresh_answer(envelope(self.drops.response(candidate, run)))

    def glance_at_all(self) -> list[api.RunSummary]:
        """Every run as the run picker shows it, read as far as that needs."""
        found = self.store.runs()
        budget, summaries = Budget(PICKER_SECONDS), []
        for run in found:
            with run.lock:
                glance(run, budget, Budget(CHECK_SECONDS / len(found)))
                summaries.append(self._summary(run))
        return summaries

    def read_first(self, file: RankFile) -> None:
        """Decode what the page shows first of a file, while its bytes are at hand."""
        self._first_series(file)

    def open_trace_ahead(self, run_id: str) -> None:
        """Begin to open the trace that a run's Overview shows first, if it has any."""
        if self.store.run(run_id).traces:
            self._all_traces.open_ahead(run_id)

    def _runs(self, request: Request) -> Response:
        summaries = self.glance_at_all()
        version, foreign, problems = self.store.seen_besides()
        etag = etag_of(self.store.epoch, "runs", version, summaries)
        unchanged = not_modified(request, etag, CONTENT_TYPE)
        if unchanged is not None:
            return unchanged
        response = runs(
            self.store.index.logdirs,
            summaries,
            foreign,
            problems,
            self.drops.limit_bytes,
        )
        return data_answer(request, envelope(response), etag)

    def _of_run(self, name: str, request: Request) -> Response:
        query = parse_query(request.args)
        run = self.store.run(query.run)
        with run.lock:
            budget = Budget(REQUEST_SECONDS)
            run.update(budget, self._prefetch(name, query))
            if name == "overview":
                # A little at each poll, so that damage inside is named soon.
                run.check(Budget(CHECK_SECONDS), rank=query.rank)
            stamp = self._verdicts.version if name == "verdict" else 0
            etag = etag_of(self.store.epoch, name, run.version, stamp, query)
            unchanged = not_modified(request, etag, CONTENT_TYPE)
            if unchanged is not None:
                return unchanged
            faults = run.num_faults
            response = self._view(name, run, query, budget)
            if budget.put_off and name in _DRAWN_VIEWS:
                run.expect_more()
            # Reading may have found damage: the next poll shows it.
            run.note_new_faults(faults)
        return data_answer(request, envelope(response), etag)

    def _prefetch(self, name: str, query: Query) -> Callable[[RankFile], object] | None:
        """What is done to each file right after opening."""
        if name == "overview":
            return self.facts.of_file
        if name in ("host", "functions", "verdict") or name in _MODULE_VIEWS:
            return None
        return prefetcher(self.store.series, query)

    def _view(self, name: str, run: Run, query: Query, budget: Budget) -> object:
        series, summary = self.store.series, self._summary(run)
        if name == "verdict":
            budget = Budget(REQUEST_SECONDS)
            why = self._verdicts.verdict(run, summary, query, budget)
            if budget.exhausted:
                run.expect_more()
            return why
        view = view_of(name)
        if name == "overview":
            # Its own: a run that takes long to read must get its numbers all the same.
            budget = Budget(REQUEST_SECONDS)
            response: object = view(series, self.facts, run, summary, query, budget)
            if budget.exhausted:
                run.expect_more()
            return response
        if name == "functions":
            budget = Budget(REQUEST_SECONDS)
            found = view(self._functions, run, summary, query, budget)
            if budget.exhausted:
                run.expect_more()  # what was read is kept: it comes to an end
            return found
        if name in _MODULE_VIEWS:
            # One module answers soon and with more at each poll; the others at once.
            seconds = MODULE_SECONDS if name == "module" else REQUEST_SECONDS
            budget = Budget(seconds)
            answer = view(self._modules, series, run, summary, query, budget)
            if budget.exhausted and name == "module":
                run.expect_more()  # what was read is kept: it comes to an end
            return answer
        if name in _STEP_VIEWS:
            # Its own: a run that takes long to open must get its steps all the same.
            budget = Budget(REQUEST_SECONDS)
        answer = view(series, run, summary, query, budget)
        if name in _STEP_VIEWS and budget.exhausted:
            run.expect_more()
        return answer

    @property
    def _all_traces(self) -> AllTraceRoutes:
        def make() -> AllTraceRoutes:
            from tb_plugin.all_trace_routes import AllTraceRoutes

            return AllTraceRoutes(
                self.store, self._summary, self.importer, self._has_perfetto
            )

        return self._kept.get("traces", make)

    @property
    def _verdicts(self) -> VerdictReader:
        def make() -> VerdictReader:
            from tb_plugin.views.verdict import VerdictReader

            return VerdictReader(
                self.facts,
                self.histories.reader,
                self.store.cache,
                self.capacity_bytes,
            )

        return self._kept.get("verdicts", make)

    @property
    def _modules(self) -> ModulesReader:
        def make() -> ModulesReader:
            from tb_plugin.readers.modules import ModulesReader

            return ModulesReader(Cache(MODULES_CACHE_BYTES))

        return self._kept.get("modules", make)

    @property
    def _functions(self) -> FunctionsReader:
        def make() -> FunctionsReader:
            from tb_plugin.readers.functions import FunctionsReader

            return FunctionsReader(self.store.cache)

        return self._kept.get("functions", make)

    def _summary(self, run: Run) -> api.RunSummary:
        """Made anew only where the run changed: every route repeats it."""
        stamp = (run.version, run.found.version)
        known = self._summaries.get(run)
        if known is None or known[0] != stamp:
            known = self._summaries[run] = (stamp, summary_of(self.store.series, run))
        return known[1]


_MODULE_VIEWS: Final = ("modules", "module", "module_timeline")

_DRAWN_VIEWS: Final = ("timeline", "heatmap", "host", "steps", "step_heatmap")
"""Where what takes too long is drawn more coarsely, and finer at one of the next polls."""

_STEP_VIEWS: Final = ("step", "stragglers")
"""Where ranks that were not read in time are missing, and come at the next poll."""

_OF_RUN: Final = frozenset(
    (
        *("overview", "timeline", "heatmap", "host", "functions", "verdict"),
        *("steps", "step_heatmap", *_STEP_VIEWS, *_MODULE_VIEWS),
    )
)
