"""Routes of trace files: which there are, one as it is, and what recordings say of them."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from werkzeug.wrappers import Response
from werkzeug.wsgi import wrap_file

from memboard.tb_plugin import storage
from memboard.tb_plugin.api.time.traces import (
    TraceFile,
    TracesResponse,
)
from memboard.tb_plugin.contract.errors import NotFoundError
from memboard.tb_plugin.contract.parameters import Query, SourceId
from memboard.tb_plugin.server.routes import RouteRequest, route
from memboard.tb_plugin.worker.cache import FileKey

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from memboard.tb_plugin.formats.traces.files.listing import FoundTrace
    from memboard.tb_plugin.jobs.trace_sources import FoundSource, TraceJob

MAX_FILES: Final = 10_000

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
_MAX_NAME: Final = 200
_TYPES: Final = {".gz": "application/gzip", ".html": "application/octet-stream"}


class FileQuery(Query, frozen=True):
    source: SourceId | None = None


@route("traces", Query)
def traces(asked: RouteRequest[Query]) -> TracesResponse:
    """All files, and how far each is."""
    state, sources = asked.state, asked.state.traces.sources
    with state.reading(asked.query.run) as reading:
        run, budget = reading
        files = list(state.traces.files.of(run, budget))
        listing = run.found.traces
        openings = [
            sources.known((asked.query.run, file.id, *file.key)) for file in files
        ]
        states = [opening and opening.state for opening in openings]
        asked.decided_by(run.version, files, states, reading.goes_on)
        return TracesResponse(
            run=state.summary(run),
            files=tuple(map(_file, files[:MAX_FILES], openings)),
            num_files=len(files),
            problems=() if listing is None else listing.problems,
            still_reading=reading.goes_on,
        )


def _file(trace: FoundTrace, opening: TraceJob | None) -> TraceFile:
    return TraceFile(
        id=trace.id,
        name=trace.name,
        path=trace.path_text,
        worker=trace.worker,
        rank=trace.rank,
        cycle=trace.cycle,
        num_bytes=float(trace.num_bytes),
        timeline=trace.is_timeline,
        recorded=trace.origin == "recording",
        state="found" if opening is None else opening.state,
        problem=None if opening is None else opening.problem,
    )


@route("trace_file", FileQuery)
def trace_file(asked: RouteRequest[FileQuery]) -> Response:
    """The file of a source; answers `Range`."""
    for source in asked.state.traces.listed(asked.query.run).sources:
        if source.id == asked.query.source and source.path is not None:
            return _file_answer(asked.request, source)
    raise NotFoundError(
        "There is no such trace file.",
        "the trace in the address",
        "It may have been deleted: reload the page.",
    )


def _file_answer(request: Request, source: FoundSource) -> Response:
    path = source.path or ""
    try:
        file, status = storage.at(path).open(path)
    except OSError as error:
        raise _gone(source) from error
    same = tuple(FileKey.of(status)[:2]) == tuple(source.key[:2])
    if not same:
        file.close()
        raise _gone(source)
    ending = os.path.splitext(path)[1].lower()  # noqa: PTH122  # of a text
    response = Response(
        wrap_file(request.environ, file),
        content_type=_TYPES.get(ending, "application/json"),
        direct_passthrough=True,
    )
    file_name = _UNSAFE.sub("_", source.name)[-_MAX_NAME:]
    response.headers["Content-Disposition"] = f'attachment; filename="{file_name}"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Cache-Control"] = "no-cache"
    response.content_length = status.st_size
    response.set_etag(f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}")
    return response.make_conditional(
        request, accept_ranges=True, complete_length=status.st_size
    )


def _gone(source: FoundSource) -> NotFoundError:
    return NotFoundError(
        "The trace's file is no longer there.",
        source.path_text[:500],
        "It may have been deleted or replaced: reload the page.",
    )
