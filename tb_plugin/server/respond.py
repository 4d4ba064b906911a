"""HTTP answers from what routes make: errors, ETags and 304, compression, headers.

Data and pages are `no-cache` with an ETag: browsers ask each time and are told 304 where
nothing changed. Built assets carry the hash of their content in their name and are
kept for a year. Kept light, because pages need it too.
"""

from __future__ import annotations

import gzip
import json
import logging
from typing import TYPE_CHECKING, Any, Final

from werkzeug.wrappers import Request, Response

from memboard.tb_plugin.contract.errors import HeldError, MethodError, RequestError
from memboard.tb_plugin.server.routes import RouteRequest, declared, is_held

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.datastructures import Headers

    from memboard.tb_plugin.server.access import Hosts
    from memboard.tb_plugin.server.state import State

    Route = Callable[[Request], Response | Callable[..., Any]]

_logger = logging.getLogger("memboard")

_DATA: Final = "application/octet-stream"
_TEXT: Final = "text/plain; charset=utf-8"
_MIN_COMPRESSED_BYTES: Final = 1024
_FAST: Final = 1
"""Columns deflate nearly as well at level 1, several times faster."""


def _refuse_others(request: Request, methods: tuple[str, ...]) -> None:
    if request.method not in methods:
        reads = "GET" in methods
        raise MethodError(
            f"{request.method} is not answered here.",
            request.path,
            "MemBoard only reads: use GET."
            if reads
            else "Drop a file onto the page: it is sent by POST.",
            allow=", ".join(methods),
        )


def guarded(
    route: Route,
    hosts: Hosts | None = None,
    methods: tuple[str, ...] | None = ("GET", "HEAD"),
) -> Callable[..., Any]:
    """The border: whatever goes wrong behind it becomes an answer that says so.

    `hosts` are the names under which the route is asked; None: any name, or method.
    """

    @Request.application
    def application(request: Request) -> Response | Callable[..., Any]:
        try:
            if hosts is not None:
                hosts.check(request, takes_files=methods == ("POST",))
            if methods is not None:
                _refuse_others(request, methods)
            return route(request)
        except HeldError as unchanged:
            return _not_modified(unchanged.etag, _DATA)
        except RequestError as error:
            return error_answer(request, error)
        except Exception as error:
            _logger.exception("MemBoard failed to answer %s", request.path)
            return error_answer(
                request,
                RequestError(
                    f"MemBoard failed to answer: {type(error).__name__}.",
                    request.path,
                    "The log of TensorBoard holds the traceback; please report it.",
                ),
            )

    return application


def respond(state: State, route: str, request: Request) -> Response:
    """The answer of `/<name>`.

    Raises:
        RequestError: the query is invalid, or what it names is not there, or is not open yet.
        HeldError: the client holds the answer already.
    """
    from memboard.collector.format.sizes import SHOWN_UNIT
    from memboard.tb_plugin.contract.parameters import parse
    from memboard.tb_plugin.contract.wire import envelope

    with state.answering(route):
        query, answer = declared(route)
        asked = RouteRequest(state, route, parse(query, request.args), request)
        before = SHOWN_UNIT.set(asked.query.unit)
        try:
            made = answer(asked)
        finally:
            SHOWN_UNIT.reset(before)
        if isinstance(made, Response):
            return made
        return data_answer(request, envelope(made), asked.etag)


def data_answer(request: Request, body: bytes, etag: str) -> Response:
    """A binary envelope, compressed where the client takes that."""
    response = Response(content_type=_DATA)
    if len(body) >= _MIN_COMPRESSED_BYTES and accepts_gzip(request):
        body = gzip.compress(body, _FAST, mtime=0)
        response.headers["Content-Encoding"] = "gzip"
    response.set_data(body)
    finish(response, etag)
    return response


def respond_to_drop(state: State, request: Request) -> Response:
    """Take a file that was dropped onto the page, and answer what was done: uncached.

    Raises:
        RequestError: it is not taken.
    """
    from memboard.tb_plugin.contract.wire import envelope

    response = Response(envelope(state.drop(request)), content_type=_DATA)
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def error_answer(request: Request, error: RequestError) -> Response:
    """What went wrong, where, and what to do about it: as JSON, or as text in a window."""
    if "text/html" in request.headers.get("Accept", ""):
        body = f"{error.what}\n\n{error.remedy}\n\n{error.where}\n".encode()
        response = Response(body, error.status, content_type=_TEXT)
    else:
        plain = {"what": error.what, "where": error.where, "remedy": error.remedy}
        body = json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace")
        response = Response(body, error.status, content_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    if isinstance(error, MethodError):
        response.headers["Allow"] = error.allow
    return response


def not_modified(request: Request, etag: str, content_type: str) -> Response | None:
    """The 304 for a request that already holds this version, else None."""
    return _not_modified(etag, content_type) if is_held(request, etag) else None


def _not_modified(etag: str, content_type: str) -> Response:
    response = _NotModified(status=304, content_type=content_type)
    finish(response, etag)
    return response


def finish(response: Response, etag: str) -> None:
    """Headers of everything that browsers ask for again each time."""
    # Weak: the compressed and the plain body are the same answer.
    response.set_etag(etag, weak=True)
    response.headers["Cache-Control"] = "no-cache"
    response.headers["Vary"] = "Accept-Encoding"
    response.headers["X-Content-Type-Options"] = "nosniff"


def accepts_gzip(request: Request) -> bool:
    """Whether the client says it takes gzip."""
    return bool(request.accept_encodings["gzip"] > 0)


class _NotModified(Response):
    """Names its type: TensorBoard warns about every answer that does not."""

    def get_wsgi_headers(self, environ: Any) -> Headers:
        headers = super().get_wsgi_headers(environ)  # takes the type away from a 304
        headers["Content-Type"] = self.headers["Content-Type"]
        return headers
