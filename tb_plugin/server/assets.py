"""Files served as they are: our built page, and a build of Perfetto's that lies on disk.

Ours are those in `static/` that are listed there by us. Perfetto's is named by
`--memboard_perfetto=DIR`. What lies there is the user's own choice of software, so it is
served as it is, under a policy of its own: its trace processor is WebAssembly, which our
page's policy does not let run, and its page begins with a script inside it, which is
allowed by its hash.
"""

# ruff: noqa: PTH118
# os.path: a walk over thousands of files makes pathlib's cost felt.

from __future__ import annotations

import gzip
import hashlib
import os
import re
import threading
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from werkzeug.wrappers import Response

from memboard.tb_plugin.contract.errors import NotFoundError
from memboard.tb_plugin.server.respond import accepts_gzip, finish, not_modified

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

STATIC: Final = Path(__file__).resolve().parents[1] / "static"

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
"""Types of files, by the ends of their names."""
_PACKED: Final = frozenset({".js", ".mjs", ".css", ".html", ".svg", ".json", ".map"})
_MISSING: Final = (
    "The MemBoard page is not built in this installation.\n\n"
    "From a checkout: cd frontend && npm ci && npm run build\n"
    "Otherwise: pip install --force-reinstall memboard\n"
)

PERFETTO_POLICY: Final = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'{hashes}; worker-src 'self' blob:;"
    " style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:;"
    " font-src 'self' data:; connect-src 'self' data: blob:; object-src 'none';"
    " base-uri 'self'; frame-ancestors 'self'"
)
MAX_FILES: Final = 20_000
MAX_SCRIPTS: Final = 20

_INLINE: Final = re.compile(
    rb"<script\b(?![^>]*\bsrc\s*=)[^>]*>(.*?)</script\s*>", re.IGNORECASE | re.DOTALL
)

_PERFETTO_TYPES: Final = {**TYPES, ".wasm": "application/wasm"}


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    packed: bytes | None
    content_type: str
    etag: str


class Assets:
    """Files of the built page, read and compressed at the first request, once."""

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
        asset = request.path.rpartition("/assets/")[2]
        # Looked up in a listing of ours, never joined: no path leads out of it.
        folder = self._folder / "assets"
        listing = {p.name: p for p in folder.iterdir()} if folder.is_dir() else {}
        path = listing.get(asset)
        if path is None or not path.is_file():
            raise NotFoundError(
                "There is no such file.",
                asset[:80],
                "Reload the page: MemBoard was updated while it was open.",
            )
        response = _answer(request, self._read(path))
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response

    def _page(
        self, request: Request, file_name: str, missing: str, missing_type: str
    ) -> Response:
        path = self._folder / file_name
        if path.is_file():
            return _answer(request, self._read(path))
        return _answer(request, _file(missing.encode(), missing_type))

    def _read(self, path: Path) -> _File:
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_size)
        stamped = self._files.get(str(path))
        if stamped is None or stamped[0] != stamp:
            stamped = (stamp, _file(path.read_bytes(), path.suffix))
            self._files[str(path)] = stamped
        return stamped[1]


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


class LocalPerfetto:
    """Files below one folder; links that lead out of it are not followed."""

    def __init__(self, folder: str) -> None:
        """`folder` empty: there is none."""
        self._folder = os.path.abspath(folder) if folder else ""  # noqa: PTH100
        self._lock = threading.Lock()
        self._files: dict[str, str] | None = None

    @property
    def is_there(self) -> bool:
        """Whether a build was named, and lies there."""
        return bool(self._folder) and "index.html" in self._listing()

    def answer(self, request: Request) -> Response:
        """`/perfetto/*`.

        Raises:
            NotFoundError: no such file lies there.
        """
        file_name = request.path.partition("/perfetto/")[2] or "index.html"
        path = self._listing().get(file_name) if self._folder else None
        if path is None:
            raise NotFoundError(
                "There is no such file of Perfetto's page.",
                file_name[:200],
                "Start TensorBoard with --memboard_perfetto=DIR, where DIR holds"
                " Perfetto's built page with its index.html.",
            )
        body = Path(path).read_bytes()
        status = os.stat(path)  # noqa: PTH116
        etag = f"{status.st_mtime_ns:x}-{len(body):x}"
        content_type = _PERFETTO_TYPES.get(
            Path(path).suffix.lower(), "application/octet-stream"
        )
        response = _answer(request, _File(body, None, content_type, etag))
        response.headers["Content-Security-Policy"] = policy_of(
            body if content_type.startswith("text/html") else b""
        )
        return response

    def _listing(self) -> dict[str, str]:
        """By their path below the folder: looked up in it, never joined."""
        with self._lock:
            if self._files is None:
                self._files = self._walk()
            return self._files

    def _walk(self) -> dict[str, str]:
        path_by_name: dict[str, str] = {}
        for folder, _, names in os.walk(self._folder):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.islink(path) or not os.path.isfile(path):  # noqa: PTH114, PTH113
                    continue
                below = os.path.relpath(path, self._folder).replace(os.sep, "/")
                path_by_name[below] = path
                if len(path_by_name) >= MAX_FILES:
                    return path_by_name
        return path_by_name


def policy_of(page: bytes) -> str:
    """The policy of a file; of a page with the hashes of the scripts inside it."""
    # Browsers hash a script after they have made its line ends equal.
    plain = page.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    scripts = [match.group(1) for match in _INLINE.finditer(plain)][:MAX_SCRIPTS]
    hashes = [b64encode(hashlib.sha256(script).digest()).decode() for script in scripts]
    return PERFETTO_POLICY.format(
        hashes="".join(f" 'sha256-{digest}'" for digest in hashes)
    )
