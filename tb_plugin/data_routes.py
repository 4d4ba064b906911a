"""The data routes, and with them all that is heavy: imported at the first question.

A data request goes: parameters (`query`) -> the run, brought up to date (`store`) -> the
view of the route's name -> a dataclass of `api` -> bytes (`wire`) -> an answer with an
ETag (`answers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tb_plugin.answers import data_answer
from tb_plugin.budget import Budget
from tb_plugin.query import parse_query
from tb_plugin.store import CHECK_SECONDS, REQUEST_SECONDS, Store
from tb_plugin.validators import etag_of, not_modified
from tb_plugin.views.facts import FactsReader
from tb_plugin.views.heatmap import heatmap
from tb_plugin.views.host import host
from tb_plugin.views.overview import overview
from tb_plugin.views.runs import runs, summary_of
from tb_plugin.views.selection import prefetcher
from tb_plugin.views.timeline import timeline
from tb_plugin.wire import CONTENT_TYPE, envelope

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Request, Response

    from tb_plugin.logdirs import Logdir
    from tb_plugin.query import Query
    from tb_plugin.readers.rank_file import RankFile
    from tb_plugin.run import Run


class DataRoutes:
    """Answers by the route's name."""

    def __init__(self, logdirs: tuple[Logdir, ...]) -> None:
        self.store: Final = Store(logdirs)
        self.facts: Final = FactsReader(self.store.series)

    def answer(self, name: str, request: Request) -> Response:
        """The answer of `/<name>`.

        Raises:
            RequestError: what was asked for means nothing or is not there.
        """
        if name == "runs":
            return self._runs(request)
        return self._of_run(name, request)

    def _runs(self, request: Request) -> Response:
        store = self.store
        with store.lock:
            found = store.runs()
            versions = [(r.found.id, r.found.version, r.version) for r in found]
            etag = etag_of(store.epoch, "runs", store.index.version, versions)
            return not_modified(request, etag, CONTENT_TYPE) or data_answer(
                request, envelope(runs(store.series, store.index, found)), etag
            )

    def _of_run(self, name: str, request: Request) -> Response:
        query = parse_query(request.args)
        budget = Budget(REQUEST_SECONDS)
        store = self.store
        with store.lock:
            run = store.run(query.run, budget, self._prefetch(name, query))
            if name == "overview":
                # A little at each poll, so that damage inside is named soon.
                run.check(Budget(CHECK_SECONDS), rank=query.rank)
            etag = etag_of(store.epoch, name, run.version, query)
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
        return None if name == "host" else prefetcher(self.store.series, query)

    def _view(self, name: str, run: Run, query: Query, budget: Budget) -> object:
        series = self.store.series
        summary = summary_of(series, run)
        if name == "overview":
            return overview(series, self.facts, run, summary, query)
        return _VIEWS[name](series, run, summary, query, budget)


_VIEWS: Final = {"timeline": timeline, "heatmap": heatmap, "host": host}
