"""A build of Perfetto's page that the user has on disk, served beside ours.

`--memboard_perfetto=DIR` names it. What lies there is the user's own choice of software, so
it is served as it is, under a policy of its own: its trace processor is WebAssembly, which
our page's policy does not let run, and its page begins with a script inside it, which is
allowed by its hash.
"""

# ruff: noqa: PTH118
# os.path: a walk over thousands of files makes pathlib's cost felt.

from __future__ import annotations

import hashlib
import os
import re
import threading
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Final

from werkzeug.wrappers import Response

from tb_plugin.assets import TYPES
from tb_plugin.errors import NotFoundError
from tb_plugin.validators import finish, not_modified

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

POLICY: Final = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'{hashes}; worker-src 'self' blob:;"
    " style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:;"
    " font-src 'self' data:; connect-src 'self' data: blob:; object-src 'none';"
    " base-uri 'self'; frame-ancestors 'self'"
)
MAX_FILES: Final = 20_000
MAX_SCRIPTS: Final = 20
"""Inside one page."""

_INLINE: Final = re.compile(
    rb"<script\b(?![^>]*\bsrc\s*=)[^>]*>(.*?)</script\s*>", re.IGNORECASE | re.DOTALL
)

_TYPES: Final = {**TYPES, ".wasm": "application/wasm"}


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
        name = request.path.partition("/perfetto/")[2] or "index.html"
        path = self._listing().get(name) if self._folder else None
        if path is None:
            raise NotFoundError(
                "There is no such file of Perfetto's page.",
                name[:200],
                "Start TensorBoard with --memboard_perfetto=DIR, where DIR holds"
                " Perfetto's built page with its index.html.",
            )
        body = Path(path).read_bytes()
        status = os.stat(path)  # noqa: PTH116
        etag = f"{status.st_mtime_ns:x}-{len(body):x}"
        content_type = _TYPES.get(Path(path).suffix.lower(), "application/octet-stream")
        response = not_modified(request, etag, content_type)
        if response is None:
            response = Response(body, content_type=content_type)
            finish(response, etag)
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
        found: dict[str, str] = {}
        for folder, _, names in os.walk(self._folder):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.islink(path) or not os.path.isfile(path):  # noqa: PTH114, PTH113
                    continue
                below = os.path.relpath(path, self._folder).replace(os.sep, "/")
                found[below] = path
                if len(found) >= MAX_FILES:
                    return found
        return found


def policy_of(page: bytes) -> str:
    """The policy of a file; of a page with the hashes of the scripts inside it."""
    # Browsers hash a script after they have made its line ends equal.
    plain = page.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    found = [one.group(1) for one in _INLINE.finditer(plain)][:MAX_SCRIPTS]
    hashes = [b64encode(hashlib.sha256(one).digest()).decode() for one in found]
    return POLICY.format(hashes="".join(f" 'sha256-{one}'" for one in hashes))
