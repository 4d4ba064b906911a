"""The plugin: its routes, and what TensorBoard asks of it.

A data request goes: parameters (`query`) -> the run, brought up to date (`store`) -> the
view of the route's name -> a dataclass of `api` -> bytes (`wire`) -> an answer with an
ETag (`answers`). Routes are GET only and change nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from tensorboard.plugins import base_plugin
from werkzeug.wrappers import Request, Response

from tb_plugin.answers import data_answer, error_answer, etag_of, not_modified
from tb_plugin.assets import Assets
from tb_plugin.budget import Budget
from tb_plugin.errors import MethodError, RequestError
from tb_plugin.loader import PLUGIN_NAME
from tb_plugin.logdirs import logdirs_of
from tb_plugin.query import parse_query
from tb_plugin.store import CHECK_SECONDS, REQUEST_SECONDS, Store
from tb_plugin.views.facts import FactsReader
from tb_plugin.views.heatmap import heatmap
from tb_plugin.views.host import host
from tb_plugin.views.overview import overview
from tb_plugin.views.runs import runs, summary_of
from tb_plugin.views.selection import prefetcher
from tb_plugin.views.timeline import timeline
from tb_plugin.wire import envelope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tb_plugin.query import Query
    from tb_plugin.readers.rank_file import RankFile
    from tb_plugin.run import Run

    Route = Callable[[Request], Response]

_logger = logging.getLogger("memboard")

TAB_NAME: Final = "MemBoard"


class MemBoardPlugin(base_plugin.TBPlugin):  # type: ignore[misc]
    """Serves the page and its data."""

    plugin_name = PLUGIN_NAME

    def __init__(self, context: Any) -> None:
        """`context` is a `TBContext`; nothing is read until the first request."""
        self._store = Store(logdirs_of(context))
        self._assets = Assets()
        self._facts = FactsReader(self._store.series)

    def get_plugin_apps(self) -> Mapping[str, Callable[..., Any]]:
        """The route table."""
        return {
            "/index.js": _guarded(self._assets.index),
            "/app.html": _guarded(self._assets.page),
            "/assets/*": _guarded(self._assets.asset),
            "/runs": _guarded(self._runs),
            "/overview": self._of_run("overview", self._overview, self._make_facts),
            "/timeline": self._of_run("timeline", self._timeline, self._read_series),
            "/heatmap": self._of_run("heatmap", self._heatmap, self._read_series),
            "/host": self._of_run("host", self._host),
        }

    def is_active(self) -> bool:
        """Whether there is anything to show. Called at every page load: never walks."""
        return self._store.is_active()

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """How TensorBoard shows the tab."""
        return base_plugin.FrontendMetadata(
            es_module_path="/index.js", tab_name=TAB_NAME
        )

    def _runs(self, request: Request) -> Response:
        store = self._store
        with store.lock:
            found = store.runs()
            versions = [(r.found.id, r.found.version, r.version) for r in found]
            etag = etag_of(store.epoch, "runs", store.index.version, versions)
            return not_modified(request, etag) or data_answer(
                request, envelope(runs(store.series, store.index, found)), etag
            )

    def _of_run(
        self,
        name: str,
        view: Callable[[Run, Query, Budget], object],
        first: Callable[[Query], Callable[[RankFile], object]] | None = None,
    ) -> Callable[..., Any]:
        """A route about one run; `first` is done to each file right after opening."""

        def answer(request: Request) -> Response:
            query = parse_query(request.args)
            budget = Budget(REQUEST_SECONDS)
            store = self._store
            with store.lock:
                prefetch = None if first is None else first(query)
                run = store.run(query.run, budget, prefetch)
                if name == "overview":
                    # A little at each poll, so that damage inside is named soon.
                    run.check(Budget(CHECK_SECONDS), rank=query.rank)
                etag = etag_of(store.epoch, name, run.version, query)
                unchanged = not_modified(request, etag)
                if unchanged is not None:
                    return unchanged
                faults = run.num_faults
                response = view(run, query, budget)
                # Reading may have found damage: the next poll shows it.
                run.note_new_faults(faults)
            return data_answer(request, envelope(response), etag)

        return _guarded(answer)

    def _make_facts(self, _: Query) -> Callable[[RankFile], object]:
        return self._facts.of_file

    def _read_series(self, query: Query) -> Callable[[RankFile], object]:
        return prefetcher(self._store.series, query)

    def _overview(self, run: Run, query: Query, _: Budget) -> object:
        series = self._store.series
        return overview(series, self._facts, run, summary_of(series, run), query)

    def _timeline(self, run: Run, query: Query, budget: Budget) -> object:
        series = self._store.series
        return timeline(series, run, summary_of(series, run), query, budget)

    def _heatmap(self, run: Run, query: Query, budget: Budget) -> object:
        series = self._store.series
        return heatmap(series, run, summary_of(series, run), query, budget)

    def _host(self, run: Run, query: Query, budget: Budget) -> object:
        series = self._store.series
        return host(series, run, summary_of(series, run), query, budget)


def _refuse_changes(request: Request) -> None:
    if request.method not in ("GET", "HEAD"):
        raise MethodError(
            f"{request.method} is not answered here.",
            request.path,
            "MemBoard only reads: use GET.",
        )


def _guarded(route: Route) -> Callable[..., Any]:
    """The border: whatever goes wrong behind it becomes an answer that says so."""

    @Request.application
    def application(request: Request) -> Response:
        try:
            _refuse_changes(request)
            return route(request)
        except RequestError as error:
            return error_answer(error)
        except Exception as error:
            _logger.exception("MemBoard failed to answer %s", request.path)
            return error_answer(
                RequestError(
                    f"MemBoard failed to answer: {type(error).__name__}.",
                    request.path,
                    "The log of TensorBoard holds the traceback; please report it.",
                )
            )

    return application
