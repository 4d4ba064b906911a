"""The routes about what recordings say of their traces: which there are, one in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector.format.errors import FormatError
from tb_plugin.budget import Budget
from tb_plugin.readers.trace_reports import TraceReports, tables_of
from tb_plugin.server.errors import BadRequestError, NotFoundError, UnreadableError
from tb_plugin.server.respond import data_answer, etag_of, not_modified
from tb_plugin.trace_report_query import parse_report_query
from tb_plugin.views.trace_reports import trace_report, trace_reports
from tb_plugin.wire import CONTENT_TYPE, envelope

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Request, Response

    from tb_plugin import api
    from tb_plugin.readers.trace_reports import FoundReport
    from tb_plugin.run import Run
    from tb_plugin.store import Store
    from tb_plugin.trace_report_query import ReportQuery

ROUTES: Final = ("trace_reports", "trace_report")
FIND_SECONDS: Final = 2.0


class TraceReportRoutes:
    """Answers by the route's name."""

    def __init__(self, store: Store, summary: Callable[[Run], api.RunSummary]) -> None:
        """`summary` of a run, whose lock is held."""
        self._store = store
        self._summary = summary
        self._reports = TraceReports()

    def answer(self, name: str, request: Request) -> Response:
        """The answer of `/<name>`.

        Raises:
            RequestError: what was asked for means nothing, is not there, or cannot be
                read.
        """
        query = parse_report_query(request.args)
        run = self._store.run(query.run)
        with run.lock:
            budget = Budget(FIND_SECONDS)
            run.update(budget)
            if name == "trace_reports":
                return self._listed(request, run, query, budget)
            found = self._named(run, query, budget)
            etag = etag_of(
                self._store.epoch, name, found.file.identity, found.entry.offset, query
            )
            unchanged = not_modified(request, etag, CONTENT_TYPE)
            if unchanged is not None:
                return unchanged
            try:
                tables = tables_of(found)
            except (FormatError, OSError) as error:
                raise UnreadableError(
                    f"The report of the trace cannot be read: {error}",
                    f"{found.file.shown_path}, byte {found.entry.offset}",
                    "The other reports can; the trace's file may be there.",
                ) from error
        return data_answer(request, envelope(trace_report(found, tables, query)), etag)

    def _listed(
        self, request: Request, run: Run, query: ReportQuery, budget: Budget
    ) -> Response:
        found = [
            one
            for one in self._reports.of(run, budget)
            if query.rank in (None, one.file.rank)
            and (query.ranks is None or one.file.rank in query.ranks)
        ]
        still_reading = budget.exhausted or run.unfinished
        shown = [(one.id, one.entry.offset) for one in found]
        stamp = (run.version, shown, still_reading)
        etag = etag_of(self._store.epoch, "trace_reports", stamp, query)
        unchanged = not_modified(request, etag, CONTENT_TYPE)
        if unchanged is not None:
            return unchanged
        response = trace_reports(
            run, self._summary(run), found, still_reading=still_reading
        )
        return data_answer(request, envelope(response), etag)

    def _named(self, run: Run, query: ReportQuery, budget: Budget) -> FoundReport:
        if query.report is None:
            raise BadRequestError(
                "A report must be given.", "report", "Choose one from the list."
            )
        for found in self._reports.of(run, budget):
            if found.id == query.report:
                return found
        raise NotFoundError(
            "There is no such report of a trace.",
            run.found.name[:80],
            "Reload the page: the recording may have been deleted.",
        )
