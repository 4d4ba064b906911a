"""Bytes of a data answer, or of an error, to an HTTP response.

Data and pages are `no-cache` with an ETag: browsers ask each time and are told 304 where
nothing changed. Built assets carry the hash of their content in their name and are
kept for a year.
"""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Final

from werkzeug.wrappers import Response

from tb_plugin import api, wire
from tb_plugin.errors import MethodError
from tb_plugin.validators import accepts_gzip, finish

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from tb_plugin.errors import RequestError

_TEXT: Final = "text/plain; charset=utf-8"
_MIN_COMPRESSED_BYTES: Final = 1024
_FAST: Final = 1
"""Columns deflate nearly as well at level 1, several times faster."""


def data_answer(request: Request, body: bytes, etag: str) -> Response:
    """A binary envelope, compressed where the client takes that."""
    response = Response(content_type=wire.CONTENT_TYPE)
    if len(body) >= _MIN_COMPRESSED_BYTES and accepts_gzip(request):
        body = gzip.compress(body, _FAST, mtime=0)
        response.headers["Content-Encoding"] = "gzip"
    response.set_data(body)
    finish(response, etag)
    return response


def fresh_answer(body: bytes) -> Response:
    """A binary envelope that says what was done: nobody keeps it."""
    response = Response(body, content_type=wire.CONTENT_TYPE)
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def error_answer(request: Request, error: RequestError) -> Response:
    """What went wrong, where, and what to do about it: as JSON, or as text in a window."""
    if "text/html" in request.headers.get("Accept", ""):
        body = f"{error.what}\n\n{error.remedy}\n\n{error.where}\n".encode()
        response = Response(body, error.status, content_type=_TEXT)
    else:
        body = wire.error_json(api.ErrorResponse(error.what, error.where, error.remedy))
        response = Response(body, error.status, content_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    if isinstance(error, MethodError):
        response.headers["Allow"] = error.allow
    return response
