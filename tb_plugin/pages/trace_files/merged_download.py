"""`/trace_merged`: all of a run's ranks as one trace, made while it is downloaded.

The answer is a gzip file of Chrome JSON. It is made anew each time and kept nowhere:
nothing is written, and memory stays what one rank needs.
"""

from __future__ import annotations

import math
import re
import threading
from contextlib import ExitStack, closing
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta
from werkzeug.wrappers import Response

from memboard.collector.format.names import MERGED_TRACE, RANK_FILES_DIR
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.errors import (
    BadRequestError,
    NotFoundError,
    RequestError,
)
from memboard.tb_plugin.contract.parameters import Query
from memboard.tb_plugin.index.run import Run
from memboard.tb_plugin.merging.discovery import (
    inputs_of_files,
    inputs_of_run,
    traces_below,
)
from memboard.tb_plugin.merging.merged_trace import merged
from memboard.tb_plugin.merging.output import deflated
from memboard.tb_plugin.rank_set import RankSet
from memboard.tb_plugin.server.routes import RouteRequest, route
from memboard.tb_plugin.storage import is_remote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.merging.inputs import Inputs, Ranks

CONTENT_TYPE: Final = "application/gzip"
MAX_AT_ONCE: Final = 2
"""Downloads that are made at the same time: each takes a processor of its own."""
_free: Final = threading.BoundedSemaphore(MAX_AT_ONCE)

FromOne = Annotated[int, Meta(ge=1, le=999_999_999)]

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")


class MergedQuery(Query, frozen=True):
    """Ranks, a cycle of the schedule, and a start of the job, the last one if none."""

    ranks: RankSet | None = None
    cycle: FromOne | None = None
    attempt: FromOne | None = None


@route("trace_merged", MergedQuery)
def trace_merged(asked: RouteRequest[MergedQuery]) -> Response:
    """The download, unless others are being made."""
    query = asked.query
    run = asked.state.store.run(query.run)
    if not _free.acquire(blocking=False):
        raise RequestError(
            "Other merged traces are being made.",
            run.found.title[:80],
            "Wait until their downloads have ended, or run: memboard merge",
            HTTPStatus.SERVICE_UNAVAILABLE,
        )
    with ExitStack() as taken:
        taken.callback(_free.release)
        inputs = _inputs(run, query.ranks, query.cycle, query.attempt)
        _refuse_nothing(inputs, run.found.title)
        place = taken.pop_all()  # given back once, however often it is closed
        # Not passed through: werkzeug would not close it, and the place stays taken.
        response = Response(_body(inputs, place), content_type=CONTENT_TYPE)
        # Also where the client leaves before the first byte.
        response.call_on_close(place.close)
    file_name = _NOT_IN_NAMES.sub("_", run.found.title).strip("._") or "run"
    response.headers["Content-Disposition"] = (
        f'attachment; filename="{file_name[:80]}.{MERGED_TRACE}"'
    )
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def _body(inputs: Inputs, place: ExitStack) -> Iterator[bytes]:
    pieces = deflated(merged(inputs))
    with place, closing(pieces):
        yield from pieces


def _inputs(
    run: Run, ranks: Ranks | None, cycle: int | None, attempt: int | None
) -> Inputs:
    """What is merged, read apart from what pages are drawn from."""
    if is_remote(run.found.folder):
        raise BadRequestError(
            "Traces at a store are not merged here.",
            run.found.title[:80],
            f"Run: memboard merge {_own_folder(run)!r}",
        )
    if run.made_of != "recording":
        folder = Path(run.found.folder)
        paths = traces_below(folder)
        return inputs_of_files(paths, ranks=ranks, cycle=cycle, root=folder)
    own = Run(run.found)
    own.update(Budget(math.inf))
    chosen = [
        own_attempt
        for own_attempt in own.attempts
        if attempt in (None, own_attempt.index)
    ]
    if not chosen:
        raise NotFoundError(
            "There is no such attempt, or none of its files can be read.",
            f"attempt={attempt}",
            "Choose another attempt.",
        )
    folder = Path(run.found.folder).parent.parent
    return inputs_of_run(chosen[-1], folder, ranks=ranks, cycle=cycle)


def _own_folder(run: Run) -> str:
    """The run's directory; the rank files of a recording lie below it."""
    return run.found.folder.removesuffix("/" + "/".join(RANK_FILES_DIR))


def _refuse_nothing(inputs: Inputs, run: str) -> None:
    if inputs.is_empty:
        raise NotFoundError(
            "The run has nothing to merge.",
            run[:80],
            "Record spans or traces, or choose other ranks.",
        )
