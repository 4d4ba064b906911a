"""`/trace_merged`: all of a run's ranks as one trace, made while it is downloaded.

Parameters: `run`; `ranks` as in "0-7,64"; `cycle` of the schedule, from 1; `attempt` from
1, the last one where it is absent. The answer is a gzip file of Chrome JSON. It is made
anew each time and kept nowhere: nothing is written, and memory stays what one rank needs.
"""

from __future__ import annotations

import math
import re
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from werkzeug.wrappers import Response

from collector.format.names import RANK_FILES_DIR
from tb_plugin.budget import Budget
from tb_plugin.merging.finding import inputs_of_files, inputs_of_run, traces_below
from tb_plugin.merging.merged import merged
from tb_plugin.merging.output import deflated
from tb_plugin.query import parse_query
from tb_plugin.run import Run
from tb_plugin.server.errors import BadRequestError, BusyError, NotFoundError
from tb_plugin.storage import is_remote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from werkzeug.wrappers import Request

    from tb_plugin.merging.inputs import Inputs, Ranks
    from tb_plugin.store import Store

CONTENT_TYPE: Final = "application/gzip"
MAX_AT_ONCE: Final = 2
"""Downloads that are made at the same time: each takes a processor of its own."""

_MAX_DIGITS: Final = 9
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")


class MergedRoute:
    """Answers `/trace_merged`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._free = threading.BoundedSemaphore(MAX_AT_ONCE)

    def answer(self, request: Request) -> Response:
        """The download.

        Raises:
            RequestError: what was asked for means nothing or is not there, or others
                are being made.
        """
        query = parse_query(request.args)
        cycle = _number(request.args.get("cycle"), "cycle")
        attempt = _number(request.args.get("attempt"), "attempt")
        run = self._store.run(query.run)
        if not self._free.acquire(blocking=False):
            raise BusyError(
                "Other merged traces are being made.",
                run.found.name[:80],
                "Wait until their downloads have ended, or run: memboard merge",
            )
        try:
            inputs = _inputs(run, query.ranks, cycle, attempt)
            _refuse_nothing(inputs, run.found.name)
            # Not passed through: werkzeug would not close it, and the place stays taken.
            response = Response(self._body(inputs), content_type=CONTENT_TYPE)
        except BaseException:
            self._free.release()
            raise
        name = _NOT_IN_NAMES.sub("_", run.found.name).strip("._") or "run"
        response.headers["Content-Disposition"] = (
            f'attachment; filename="{name[:80]}.merged_trace.json.gz"'
        )
        response.headers["Cache-Control"] = "no-store"
        response.headers["X-Content-Type-Options"] = "nosniff"
        held = [self._free]

        def give_back() -> None:  # also where the client leaves before the first byte
            while held:
                held.pop().release()

        response.call_on_close(give_back)
        return response

    def _body(self, inputs: Inputs) -> Iterator[bytes]:
        pieces = deflated(merged(inputs))
        with closing(pieces):
            yield from pieces


def _inputs(
    run: Run, ranks: Ranks | None, cycle: int | None, attempt: int | None
) -> Inputs:
    """What is merged, read apart from what pages are drawn from."""
    if is_remote(run.found.folder):
        raise BadRequestError(
            "Traces at a store are not merged here.",
            run.found.name[:80],
            f"Run: memboard merge {_own_folder(run)!r}",
        )
    if run.made_of != "recording":
        folder = Path(run.found.folder)
        found = traces_below(folder)
        return inputs_of_files(found, ranks=ranks, cycle=cycle, root=folder)
    own = Run(run.found)
    own.update(Budget(math.inf))
    chosen = [one for one in own.attempts if attempt in (None, one.index)]
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


def _number(text: str | None, name: str) -> int | None:
    if not text:
        return None
    is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    if not is_number or int(text) < 1:
        raise BadRequestError(
            f"The parameter {name} must be a whole number from 1 up.",
            f"{name}={text[:80]}",
            "Correct the address, or reset the view.",
        )
    return int(text)
