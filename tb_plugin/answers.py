"""Bytes of an answer to an HTTP response: validators, compression, headers.

Data and pages are `no-cache` with an ETag: browsers ask each time and are told 304 where
nothing changed. Built assets carry the hash of their content in their name and are
kept for a year.
"""

from __future__ import annotations

import gzip
import hashlib
from typing import TYPE_CHECKING, Final

from werkzeug.wrappers import Response

from tb_plugin import api, wire

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from tb_plugin.errors import RequestError

_MIN_COMPRESSED_BYTES: Final = 1024
_FAST: Final = 1
"""Columns deflate nearly as well at level 1, several times faster."""


def not_modified(request: Request, etag: str) -> Response | None:
    """The 304 for a request that already holds this version, else None."""
    if request.if_none_match.contains_weak(etag):
        response = Response(status=304)
        _finish(response, etag)
        return response
    return None


def data_answer(request: Request, body: bytes, etag: str) -> Response:
    """A binary envelope, compressed where the client takes that."""
    response = Response(content_type=wire.CONTENT_TYPE)
    if len(body) >= _MIN_COMPRESSED_BYTES and accepts_gzip(request):
        body = gzip.compress(body, _FAST, mtime=0)
        response.headers["Content-Encoding"] = "gzip"
    response.set_data(body)
    response.headers["Vary"] = "Accept-Encoding"
    _finish(response, etag)
    return response


def error_answer(error: RequestError) -> Response:
    """What went wrong, where, and what to do about it, as JSON."""
    body = wire.error_json(api.ErrorResponse(error.what, error.where, error.remedy))
    response = Response(body, error.status, content_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    if error.status == 405:
        response.headers["Allow"] = "GET, HEAD"
    return response


def accepts_gzip(request: Request) -> bool:
    """Whether the client says it takes gzip."""
    return bool(request.accept_encodings["gzip"] > 0)


def etag_of(*parts: object) -> str:
    """A short validator of whatever decides an answer."""
    text = "\0".join(map(str, parts)).encode("utf-8", "replace")
    return hashlib.sha256(text).hexdigest()[:20]


def _finish(response: Response, etag: str) -> None:
    # Weak: the compressed and the plain body are the same answer.
    response.set_etag(etag, weak=True)
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Content-Type-Options"] = "nosniff"
