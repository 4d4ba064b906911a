"""The plugin: its routes, and what TensorBoard asks of it.

Kept light, because every start of TensorBoard pays for it: what reads and analyses
(`data_routes`) is imported when something is first asked for, or by the thread that
reads ahead (`read_ahead`). Routes are GET only and change nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tensorboard.plugins import base_plugin
from werkzeug.wrappers import Request, Response

from tb_plugin.assets import Assets
from tb_plugin.errors import MethodError, RequestError
from tb_plugin.loader import PLUGIN_NAME
from tb_plugin.logdirs import logdirs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tb_plugin.data_routes import DataRoutes

    Route = Callable[[Request], Response]

_logger = logging.getLogger("memboard")

TAB_NAME: Final = "MemBoard"

_FIRST_LOOK_SECONDS: Final = 0.2
_LOOK_AGAIN_SECONDS: Final = 5.0


class MemBoardPlugin(base_plugin.TBPlugin):  # type: ignore[misc]
    """Serves the page and its data."""

    plugin_name = PLUGIN_NAME

    def __init__(self, context: Any) -> None:
        """`context` is a `TBContext`; nothing is read until the first request."""
        self._logdirs = logdirs_of(context)
        self._assets = Assets()
        self._making = threading.Lock()
        self._made: DataRoutes | None = None
        self._look: threading.Thread | None = None
        self._next_look = 0.0

    def get_plugin_apps(self) -> Mapping[str, Callable[..., Any]]:
        """The route table."""
        return {
            "/index.js": _guarded(self._assets.index),
            "/app.html": _guarded(self._assets.page),
            "/assets/*": _guarded(self._assets.asset),
            "/runs": self._data_route("runs"),
            "/overview": self._data_route("overview"),
            "/timeline": self._data_route("timeline"),
            "/heatmap": self._data_route("heatmap"),
            "/host": self._data_route("host"),
            "/functions": self._data_route("functions"),
            "/modules": self._data_route("modules"),
            "/module": self._data_route("module"),
            "/module_timeline": self._data_route("module_timeline"),
        }

    def is_active(self) -> bool:
        """Whether any run is known. Called at every page load: never waits long."""
        if self._knows_runs():
            return True
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _LOOK_AGAIN_SECONDS
            self._look = threading.Thread(target=self._look_for_runs, daemon=True)
            self._look.start()
            self._look.join(_FIRST_LOOK_SECONDS)
        return self._knows_runs()

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """How TensorBoard shows the tab."""
        return base_plugin.FrontendMetadata(
            es_module_path="/index.js", tab_name=TAB_NAME
        )

    def data_routes(self) -> DataRoutes:
        """What answers the data routes; imported and made when first needed."""
        with self._making:
            if self._made is None:
                from tb_plugin.data_routes import DataRoutes

                self._made = DataRoutes(self._logdirs)
            return self._made

    def read_ahead(self) -> None:
        """Read the newest run in the background, a moment from now."""
        from tb_plugin.read_ahead import ReadAhead

        ReadAhead(self.data_routes).start()

    def _data_route(self, name: str) -> Callable[..., Any]:
        return _guarded(partial(self._answer, name))

    def _answer(self, name: str, request: Request) -> Response:
        return self.data_routes().answer(name, request)

    def _knows_runs(self) -> bool:
        return self._made is not None and self._made.store.knows_runs

    def _look_for_runs(self) -> None:
        try:
            self.data_routes().store.look()
        except Exception:
            _logger.exception("MemBoard failed to look for runs")


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
            return _error_answer(error)
        except Exception as error:
            _logger.exception("MemBoard failed to answer %s", request.path)
            return _error_answer(
                RequestError(
                    f"MemBoard failed to answer: {type(error).__name__}.",
                    request.path,
                    "The log of TensorBoard holds the traceback; please report it.",
                )
            )

    return application


def _error_answer(error: RequestError) -> Response:
    from tb_plugin.answers import error_answer

    return error_answer(error)
