"""Serves the built page from `static/`: only files that are listed there by us."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from werkzeug.wrappers import Response

from tb_plugin.errors import NotFoundError
from tb_plugin.validators import accepts_gzip, finish, not_modified

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

STATIC: Final = Path(__file__).resolve().parent / "static"

PAGE_POLICY: Final = (
    "default-src 'self'; script-src 'self'; style-src 'self';"
    " img-src 'self' data: blob:; font-src 'self' data:; object-src 'none';"
    " base-uri 'self'; frame-ancestors 'self'; frame-src 'self' https://ui.perfetto.dev"
)

# By hand: on Windows the registry decides what `mimetypes` says.
TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".map": "application/json",
    ".txt": "text/plain; charset=utf-8",
}
"""What a file is, by the end of its name."""
_PACKED: Final = frozenset({".js", ".mjs", ".css", ".html", ".svg", ".json", ".map"})
_MISSING: Final = (
    "The MemBoard page is not built in this installation.\n\n"
    "From a checkout: cd frontend && npm ci && npm run build\n"
    "Otherwise: pip install --force-reinstall memboard\n"
)


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    packed: bytes | None
    content_type: str
    etag: str


class Assets:
    """Files of the built page, read and compressed once when first asked for."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._folder = folder
        self._files: dict[str, tuple[tuple[int, int], _File]] = {}

    def index(self, request: Request) -> Response:
        """`/index.js`: the module TensorBoard imports."""
        missing = (
            "export function render() {\n"
            "  document.body.textContent = " + repr(_MISSING) + ";\n}\n"
        )
        return self._page(request, "index.js", missing, ".js")

    def page(self, request: Request) -> Response:
        """`/app.html`: the page itself, under its own policy."""
        response = self._page(request, "app.html", _MISSING, ".txt")
        response.headers["Content-Security-Policy"] = PAGE_POLICY
        return response

    def asset(self, request: Request) -> Response:
        """`/assets/*`: content-hashed files.

        Raises:
            NotFoundError: no such file was built.
        """
        name = request.path.rpartition("/assets/")[2]
        # Looked up in a listing of ours, never joined: no path leads out of it.
        folder = self._folder / "assets"
        listing = {p.name: p for p in folder.iterdir()} if folder.is_dir() else {}
        path = listing.get(name)
        if path is None or not path.is_file():
            raise NotFoundError(
                "There is no such file.",
                name[:80],
                "Reload the page: MemBoard was updated while it was open.",
            )
        response = _answer(request, self._read(path))
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response

    def _page(
        self, request: Request, name: str, missing: str, missing_type: str
    ) -> Response:
        path = self._folder / name
        if path.is_file():
            return _answer(request, self._read(path))
        return _answer(request, _file(missing.encode(), missing_type))

    def _read(self, path: Path) -> _File:
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_size)
        known = self._files.get(str(path))
        if known is None or known[0] != stamp:
            known = (stamp, _file(path.read_bytes(), path.suffix))
            self._files[str(path)] = known
        return known[1]


def _file(body: bytes, suffix: str) -> _File:
    packed = gzip.compress(body, 9, mtime=0) if suffix in _PACKED else None
    return _File(
        body,
        packed,
        TYPES.get(suffix, "application/octet-stream"),
        hashlib.sha256(body).hexdigest()[:20],
    )


def _answer(request: Request, file: _File) -> Response:
    unchanged = not_modified(request, file.etag, file.content_type)
    if unchanged is not None:
        return unchanged
    response = Response(content_type=file.content_type)
    if file.packed is not None and accepts_gzip(request):
        response.set_data(file.packed)
        response.headers["Content-Encoding"] = "gzip"
    else:
        response.set_data(file.body)
    finish(response, file.etag)
    return response
