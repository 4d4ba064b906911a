"""ETags, and the 304 for whoever holds the answer already. Light: pages need it too."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Response

if TYPE_CHECKING:
    from werkzeug.datastructures import Headers
    from werkzeug.wrappers import Request


def etag_of(*parts: object) -> str:
    """A short validator of whatever decides an answer."""
    text = "\0".join(map(str, parts)).encode("utf-8", "replace")
    return hashlib.sha256(text).hexdigest()[:20]


def not_modified(request: Request, etag: str, content_type: str) -> Response | None:
    """The 304 for a request that already holds this version, else None."""
    if request.if_none_match.contains_weak(etag):
        response = _NotModified(status=304, content_type=content_type)
        finish(response, etag)
        return response
    return None


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
