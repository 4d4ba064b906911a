"""MemBoard's page without TensorBoard: what `memboard open` serves.

The plugin's own routes stand where TensorBoard would have them, on a small server of
werkzeug's: it is there in a fraction of the time that TensorBoard takes to start.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from memboard.tb_plugin import PLUGIN_NAME
from memboard.tb_plugin.plugin import MemBoardPlugin
from memboard.tb_plugin.server.access import WORD, Access, Hosts
from memboard.tb_plugin.server.respond import guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from typing_extensions import Self

    from memboard.tb_plugin.index.logdirs import OpenedPaths

PREFIX: Final = f"/data/plugin/{PLUGIN_NAME}"
PAGE: Final = f"{PREFIX}/app.html"

_WAKE_SECONDS: Final = 0.25


class Standalone:
    """A server that runs while the block does, in threads of its own."""

    def __init__(
        self, opened: OpenedPaths, host: str, port: int, hosts: str = ""
    ) -> None:
        """`port` 0 takes a free one; `hosts`: names of proxies that lead here.

        Raises:
            OSError: there is nothing to listen on.
        """
        self.plugin = MemBoardPlugin(None, opened, Hosts(host, hosts, "--hosts"))
        self._access = Access()
        application = Application(self.plugin, self._access)
        try:
            self._server = make_server(
                host, port, application, threaded=True, request_handler=_Quiet
            )
        except SystemExit as error:  # werkzeug's answer to a port that is taken
            raise OSError(f"port {port} of {host} is taken") from error
        url_host = f"[{host}]" if ":" in host else host
        self.url = f"http://{url_host}:{self._server.port}{PAGE}"
        """Of the page; a browser is let in by `link`."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def link(self, place: str, *, once: bool = False) -> str:
        """The URL that opens the page at a place, the words of its hash.

        `once`: it lets in one browser and no second one.
        """
        token = self._access.for_once() if once else self._access.token
        return f"{self.url}?{WORD}={token}{place and '#'}{place}"

    def wait(self) -> None:
        """Until the user interrupts, which is the normal end."""
        try:
            # A signal may be delivered to any thread, and is handled where this one
            # wakes: waiting without an end it would not.
            while not self._ended.wait(_WAKE_SECONDS):
                pass
        except KeyboardInterrupt:
            return

    def _serve(self) -> None:
        try:
            self._server.serve_forever()
        finally:
            self._ended.set()


class Application:
    """The plugin's routes as one WSGI application."""

    def __init__(self, plugin: MemBoardPlugin, access: Access) -> None:
        """`access` says who may ask."""
        routes = plugin.get_plugin_apps()
        self._exact = {
            PREFIX + route: route_of
            for route, route_of in routes.items()
            if not route.endswith("*")
        }
        self._below = {
            PREFIX + route[:-1]: route_of
            for route, route_of in routes.items()
            if route.endswith("*")
        }
        self._access = access
        self._border = guarded(self._route, plugin.hosts, methods=None)

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer a request of WSGI."""
        body: Iterable[bytes] = self._border(environ, start_response)
        return body

    def _route(self, request: Request) -> Response | Callable[..., Any]:
        leading_on = self._access.check(request)
        if leading_on is not None:
            return leading_on
        if request.path == "/":  # relative: a proxy may have put us below a path
            return Response(status=302, headers={"Location": PAGE[1:]})
        if request.path == "/favicon.ico":  # browsers ask, and complain of a 404
            return _plain("", 204)
        if request.path in self._exact:
            return self._exact[request.path]
        for prefix, route in self._below.items():
            if request.path.startswith(prefix):
                return route
        return _plain("There is nothing here.", 404)


def _plain(text: str, status: int) -> Response:
    headers = {"X-Content-Type-Options": "nosniff"}
    return Response(text, status, headers, content_type="text/plain; charset=utf-8")


class _Quiet(WSGIRequestHandler):
    """Says nothing of requests, as TensorBoard does."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None: ...
