"""The routes about files of traces: which a run has, and one of them as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tb_plugin.budget import Budget
from tb_plugin.server.respond import data_answer, etag_of, not_modified
from tb_plugin.trace_download import file_answer
from tb_plugin.trace_query import parse_trace_query
from tb_plugin.views.traces import traces
from tb_plugin.wire import CONTENT_TYPE, envelope

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Request, Response

    from tb_plugin import api
    from tb_plugin.readers.trace_files.sources import TraceFiles
    from tb_plugin.run import Run
    from tb_plugin.store import Store
    from tb_plugin.trace_query import TraceQuery
    from tb_plugin.trace_routes import TraceRoutes

ROUTES: Final = ("traces", "trace_file")
FIND_SECONDS: Final = 2.0


class TraceFileRoutes:
    """Answers by the route's name."""

    def __init__(
        self,
        store: Store,
        summary: Callable[[Run], api.RunSummary],
        files: TraceFiles,
        views: TraceRoutes,
    ) -> None:
        """`summary` of a run, whose lock is held; `views`: what opens the files."""
        self._store = store
        self._summary = summary
        self._files = files
        self._views = views

    def answer(self, name: str, request: Request) -> Response:
        """The answer of `/<name>`.

        Raises:
            RequestError: what was asked for means nothing or is not there.
        """
        query = parse_trace_query(request.args)
        if name == "trace_file":
            return file_answer(request, self._views.file_of(query))
        return self._traces(request, query)

    def _traces(self, request: Request, query: TraceQuery) -> Response:
        run = self._store.run(query.run)
        with run.lock:
            budget = Budget(FIND_SECONDS)
            run.update(budget)
            found = list(self._files.of(run, budget))
            still_reading = budget.exhausted or run.unfinished
            listing = run.found.traces
            problems = () if listing is None else listing.problems
            known = {
                one.id: self._views.sources.known(query.run, one.id, tuple(one.key))
                for one in found
            }
            states = [one and one.state for one in known.values()]
            etag = etag_of(
                self._store.epoch, "traces", run.version, found, states, still_reading
            )
            unchanged = not_modified(request, etag, CONTENT_TYPE)
            if unchanged is not None:
                return unchanged
            response = traces(
                self._summary(run),
                found,
                lambda one: known[one.id],
                problems,
                still_reading=still_reading,
            )
        return data_answer(request, envelope(response), etag)
