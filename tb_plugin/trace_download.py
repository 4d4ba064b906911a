"""A trace's file as it is, whole or in part, for whoever wants it elsewhere."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from werkzeug.wrappers import Response
from werkzeug.wsgi import wrap_file

from tb_plugin import storage
from tb_plugin.readers.imports.column_cache import FileKey
from tb_plugin.server.errors import NotFoundError

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from tb_plugin.readers.trace_sources import FoundSource

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
_MAX_NAME: Final = 200
_TYPES: Final = {".gz": "application/gzip", ".html": "application/octet-stream"}


def file_answer(request: Request, found: FoundSource) -> Response:
    """The file of a source; answers `Range`.

    Raises:
        NotFoundError: it is no longer there, or another one than was listed.
    """
    path = found.path or ""
    try:
        file, status = storage.at(path).open(path)
    except OSError as error:
        raise _gone(found) from error
    same = tuple(FileKey.of(status)[:2]) == tuple(found.key[:2])
    if not same:
        file.close()
        raise _gone(found)
    ending = os.path.splitext(path)[1].lower()  # noqa: PTH122  # of a text
    response = Response(
        wrap_file(request.environ, file),
        content_type=_TYPES.get(ending, "application/json"),
        direct_passthrough=True,
    )
    name = _UNSAFE.sub("_", found.name)[-_MAX_NAME:]
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Cache-Control"] = "no-cache"
    response.content_length = status.st_size
    response.set_etag(f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}")
    return response.make_conditional(
        request, accept_ranges=True, complete_length=status.st_size
    )


def _gone(found: FoundSource) -> NotFoundError:
    return NotFoundError(
        "The trace's file is no longer there.",
        found.shown_path[:500],
        "It may have been deleted or replaced: reload the page.",
    )
