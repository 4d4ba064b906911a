"""All routes about traces, imported when the first of them is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tb_plugin.merged_route import MergedRoute
from tb_plugin.profile_routes import ROUTES as PROFILE_ROUTES
from tb_plugin.profile_routes import ProfileRoutes
from tb_plugin.readers.trace_files.sources import TraceFiles
from tb_plugin.trace_file_routes import ROUTES as FILE_ROUTES
from tb_plugin.trace_file_routes import TraceFileRoutes
from tb_plugin.trace_report_routes import ROUTES as REPORT_ROUTES
from tb_plugin.trace_report_routes import TraceReportRoutes
from tb_plugin.trace_routes import TraceRoutes

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Request, Response

    from tb_plugin import api
    from tb_plugin.readers.imports.importer import Importer
    from tb_plugin.run import Run
    from tb_plugin.store import Store


class AllTraceRoutes:
    """Answers by the route's name."""

    def __init__(
        self,
        store: Store,
        summary: Callable[[Run], api.RunSummary],
        importer: Callable[[], Importer],
        has_perfetto: Callable[[], bool],
    ) -> None:
        """`summary` of a run, whose lock is held; `importer` is called when needed."""
        files = TraceFiles(importer)
        self.traces: Final = TraceRoutes(store, summary, files=files)
        self.traces.has_perfetto = has_perfetto
        self._files = TraceFileRoutes(store, summary, files, self.traces)
        self._profiles = ProfileRoutes(self.traces, store.epoch)
        self._reports = TraceReportRoutes(store, summary)
        self._merged = MergedRoute(store)

    def open_ahead(self, run_id: str) -> None:
        """See `ProfileRoutes.open_ahead`."""
        self._profiles.open_ahead(run_id)

    def answer(self, name: str, request: Request) -> Response:
        """The answer of `/<name>`.

        Raises:
            RequestError: what was asked for means nothing or is not there.
        """
        if name == "trace_merged":
            return self._merged.answer(request)
        if name in PROFILE_ROUTES:
            return self._profiles.answer(name, request)
        if name in REPORT_ROUTES:
            return self._reports.answer(name, request)
        if name in FILE_ROUTES:
            return self._files.answer(name, request)
        return self.traces.answer(name, request)
