"""The data routes, and with them all that is heavy: imported at the first question.

A data request goes: parameters (`query`) -> the run, brought up to date (`store`) -> the
view of the route's name -> a dataclass of `api` -> bytes (`wire`) -> an answer with an
ETag (`answers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from tb_plugin.answers import data_answer
from tb_plugin.budget import Budget
from tb_plugin.cache import Cache
from tb_plugin.query import parse_query
from tb_plugin.readers.functions import FunctionsReader
from tb_plugin.readers.modules import ModulesReader
from tb_plugin.store import CHECK_SECONDS, REQUEST_SECONDS, Store, glance
from tb_plugin.validators import etag_of, not_modified
from tb_plugin.views.facts import FactsReader
from tb_plugin.views.functions import functions
from tb_plugin.views.heatmap import heatmap
from tb_plugin.views.host import host
from tb_plugin.views.module import module
from tb_plugin.views.module_timeline import module_timeline
from tb_plugin.views.modules import modules
from tb_plugin.views.overview import overview
from tb_plugin.views.runs import runs, summary_of
from tb_plugin.views.selection import prefetcher
from tb_plugin.views.timeline import timeline
from tb_plugin.wire import CONTENT_TYPE, envelope

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Request, Response

    from tb_plugin import api
    from tb_plugin.logdirs import Logdir
    from tb_plugin.query import Query
    from tb_plugin.readers.rank_file import RankFile
    from tb_plugin.run import Run

MODULES_CACHE_BYTES: Final = 192 << 20
"""Logs of module memory, and what was made of them."""

MODULE_SECONDS: Final = 1.0
"""What one module's picture over windows and ranks may take at a time."""

PICKER_SECONDS: Final = 0.5
"""What the run picker may spend on reading."""


class DataRoutes:
    """Answers by the route's name."""

    def __init__(self, logdirs: tuple[Logdir, ...]) -> None:
        self.store: Final = Store(logdirs)
        self.facts: Final = FactsReader(self.store.series)
        self.modules: Final = ModulesReader(Cache(MODULES_CACHE_BYTES))
        self.functions: Final = FunctionsReader(self.store.cache)
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
            return (
                self._runs(request) if name == "runs" else self._of_run(name, request)
            )
        finally:
            self._asked.pop()

    @property
    def is_asked(self) -> bool:
        """Whether a request is being answered now."""
        return bool(self._asked)

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

    def _runs(self, request: Request) -> Response:
        summaries = self.glance_at_all()
        version, foreign, problems = self.store.seen_besides()
        etag = etag_of(self.store.epoch, "runs", version, summaries)
        unchanged = not_modified(request, etag, CONTENT_TYPE)
        if unchanged is not None:
            return unchanged
        response = runs(self.store.index.logdirs, summaries, foreign, problems)
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
            etag = etag_of(self.store.epoch, name, run.version, query)
            unchanged = not_modified(request, etag, CONTENT_TYPE)
            if unchanged is not None:
                return unchanged
            faults = run.num_faults
            response = self._view(name, run, query, budget)
            # Reading may have found damage: the next poll shows it.
            run.note_new_faults(faults)
        return data_answer(request, envelope(response), etag)

    def _prefetch(self, name: str, query: Query) -> Callable[[RankFile], object] | None:
        """What is done to each file right after opening."""
        if name == "overview":
            return self.facts.of_file
        if name in ("host", "functions") or name in _MODULE_VIEWS:
            return None
        return prefetcher(self.store.series, query)

    def _view(self, name: str, run: Run, query: Query, budget: Budget) -> object:
        series, summary = self.store.series, self._summary(run)
        if name == "overview":
            # Its own: a run that takes long to read must get its numbers all the same.
            budget = Budget(REQUEST_SECONDS)
            response = overview(series, self.facts, run, summary, query, budget)
            if budget.exhausted:
                run.expect_more()
            return response
        if name == "functions":
            budget = Budget(REQUEST_SECONDS)
            found = functions(self.functions, run, summary, query, budget)
            if budget.exhausted:
                run.expect_more()  # what was read is kept: it comes to an end
            return found
        if name in _MODULE_VIEWS:
            view = _MODULE_VIEWS[name]
            # One module answers soon and with more at each poll; the others at once.
            seconds = MODULE_SECONDS if name == "module" else REQUEST_SECONDS
            budget = Budget(seconds)
            answer = view(self.modules, series, run, summary, query, budget)
            if budget.exhausted and name == "module":
                run.expect_more()  # what was read is kept: it comes to an end
            return answer
        return _VIEWS[name](series, run, summary, query, budget)

    def _summary(self, run: Run) -> api.RunSummary:
        """Made anew only where the run changed: every route repeats it."""
        stamp = (run.version, run.found.version)
        known = self._summaries.get(run)
        if known is None or known[0] != stamp:
            known = self._summaries[run] = (stamp, summary_of(self.store.series, run))
        return known[1]


_MODULE_VIEWS: Final = {
    "modules": modules,
    "module": module,
    "module_timeline": module_timeline,
}
_VIEWS: Final = {"timeline": timeline, "heatmap": heatmap, "host": host}
