"""Routes `/trace_slice` and `/trace_instant`: everything of one, and its relations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tb_plugin.analysis.spans.events import CHECKPOINT, OUT_OF_MEMORY
from tb_plugin.analysis.trace.families import family_of
from tb_plugin.analysis.trace.instants import slices_around
from tb_plugin.api.trace import (
    TraceArg,
    TraceInstantResponse,
    TracePartner,
    TraceSliceResponse,
)
from tb_plugin.pages.trace.asked import RowQuery, row_of
from tb_plugin.server.errors import NotFoundError
from tb_plugin.server.routes import Asked, route

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tb_plugin.analysis.trace.trace import Trace
    from tb_plugin.api.trace import TraceInstantKind
    from tb_plugin.pages.trace.axis import Placed

MAX_VALUE: Final = 4_000
MAX_ARGS: Final = 500
MAX_PARTNERS: Final = 200
_MAX_TEXT: Final = 2_000
_KIND_OF: Final[dict[str, TraceInstantKind]] = {
    OUT_OF_MEMORY: "oom",
    CHECKPOINT: "checkpoint",
}


@route("trace_slice", RowQuery)
def trace_slice(asked: Asked[RowQuery]) -> TraceSliceResponse:
    """The slice of a row."""
    place, row = row_of(asked)
    trace = place.trace
    if not 0 <= row < len(trace.slices):
        raise _not_there("slice", place)
    slices = trace.slices
    args, problem = _told_args(trace, int(slices.args[row]))
    name, category = trace.name_of(row), trace.category_of(row)
    return TraceSliceResponse(
        source=place.id,
        row=row,
        track=place.track_of(int(slices.track[row])),
        level=int(slices.level[row]),
        name=name[:_MAX_TEXT],
        category=category[:_MAX_TEXT],
        family=family_of(category, name),
        start_ns=str(place.zero_ns + int(slices.start_ns[row])),
        duration_ns=float(slices.duration_ns[row]),
        self_ns=float(trace.self_ns(row)),
        num_children=len(trace.children_of(row)),
        args=args,
        args_problem=problem,
        stack=tuple(_stack(place, row)),
        partners=tuple(
            _partner(
                place,
                slices.start_ns[row],
                link.row,
                link.kind,
                link.category,
                link.outgoing,
            )
            for link in trace.links_of(row)[:MAX_PARTNERS]
        ),
    )


@route("trace_instant", RowQuery)
def trace_instant(asked: Asked[RowQuery]) -> TraceInstantResponse:
    """The instant of a row."""
    place, row = row_of(asked)
    trace = place.trace
    instants = trace.instants
    if not 0 <= row < len(instants):
        raise _not_there("instant", place)
    args, problem = _told_args(trace, int(instants.args[row]))
    time_ns = int(instants.time_ns[row])
    return TraceInstantResponse(
        source=place.id,
        row=row,
        track=place.track_of(int(instants.track[row])),
        name=trace.strings[int(instants.name[row])][:_MAX_TEXT],
        category=_category(trace, row)[:_MAX_TEXT],
        kind=kind_of(trace, row),
        time_ns=str(place.zero_ns + time_ns),
        args=args,
        args_problem=problem,
        stack=tuple(
            _partner(place, time_ns, around, "parent", "", outgoing=False)
            for around in slices_around(trace, row)[:MAX_PARTNERS]
        ),
    )


def _category(trace: Trace, row: int) -> str:
    return trace.strings[int(trace.instants.category[row])]


def kind_of(trace: Trace, row: int) -> TraceInstantKind:
    """The kind of an instant."""
    return _KIND_OF.get(_category(trace, row), "other")


def _not_there(what: str, place: Placed) -> NotFoundError:
    return NotFoundError(
        f"There is no such {what}.",
        place.source.found.name[:200],
        "Reload the page: the trace was replaced by another one.",
    )


def _told_args(trace: Trace, handle: int) -> tuple[tuple[TraceArg, ...], str]:
    """Arguments by a handle, or why they cannot be read."""
    try:
        return tuple(_args(trace.args_at(handle))), ""
    except (OSError, ValueError) as error:
        return (), str(error)[:_MAX_TEXT] or "The file cannot be read."


def _args(args: Mapping[str, Any]) -> Iterator[TraceArg]:
    for name, value in list(args.items())[:MAX_ARGS]:
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        yield TraceArg(str(name)[:_MAX_TEXT], text[:MAX_VALUE])


def _stack(place: Placed, row: int) -> Iterator[TracePartner]:
    above, asked = int(place.trace.slices.parent[row]), row
    for _ in range(MAX_PARTNERS):
        if above < 0 or above == row:
            return
        since = place.trace.slices.start_ns[asked]
        yield _partner(place, since, above, "parent", "", outgoing=False)
        row, above = above, int(place.trace.slices.parent[above])


def _partner(
    place: Placed,
    since_ns: int,
    row: int,
    relation: str,
    category: str,
    outgoing: bool,
) -> TracePartner:
    """A slice that is linked with something that begins at `since_ns` of the trace."""
    slices = place.trace.slices
    return TracePartner(
        relation=relation,  # type: ignore[arg-type]  # one of these words
        category=category[:_MAX_TEXT],
        outgoing=outgoing,
        source=place.id,
        row=row,
        track=place.track_of(int(slices.track[row])),
        level=int(slices.level[row]),
        name=place.trace.name_of(row)[:_MAX_TEXT],
        start_ns=float(int(slices.start_ns[row]) - int(since_ns)),
        duration_ns=float(slices.duration_ns[row]),
    )
