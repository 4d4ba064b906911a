"""Route `/trace_slice`: everything of one slice, and what it stands in a relation to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tb_plugin import api
from tb_plugin.analysis.trace.families import family_of
from tb_plugin.pages.trace.asked import RowQuery, row_of
from tb_plugin.server.errors import NotFoundError
from tb_plugin.server.routes import Asked, route

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tb_plugin.analysis.trace.trace import Trace
    from tb_plugin.pages.trace.axis import Placed

MAX_VALUE: Final = 4_000
MAX_ARGS: Final = 500
MAX_PARTNERS: Final = 200
_MAX_TEXT: Final = 2_000


@route("trace_slice", RowQuery)
def answer(asked: Asked[RowQuery]) -> api.TraceSliceResponse:
    """The slice of a row."""
    return trace_slice(*row_of(asked))


def trace_slice(place: Placed, row: int) -> api.TraceSliceResponse:
    """Answer it.

    Raises:
        NotFoundError: there is no such slice.
    """
    trace = place.trace
    if not 0 <= row < len(trace.slices):
        raise NotFoundError(
            "There is no such slice.",
            place.source.found.name[:200],
            "Reload the page: the trace was replaced by another one.",
        )
    slices = trace.slices
    args, problem = told_args(trace, int(slices.args[row]))
    name, category = trace.name_of(row), trace.category_of(row)
    return api.TraceSliceResponse(
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
            partner(
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


def told_args(trace: Trace, handle: int) -> tuple[tuple[api.TraceArg, ...], str]:
    """Arguments by a handle, or why they cannot be read."""
    try:
        return tuple(_args(trace.args_at(handle))), ""
    except (OSError, ValueError) as error:
        return (), str(error)[:_MAX_TEXT] or "The file cannot be read."


def _args(args: Mapping[str, Any]) -> Iterator[api.TraceArg]:
    for name, value in list(args.items())[:MAX_ARGS]:
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        yield api.TraceArg(str(name)[:_MAX_TEXT], text[:MAX_VALUE])


def _stack(place: Placed, row: int) -> Iterator[api.TracePartner]:
    above, asked = int(place.trace.slices.parent[row]), row
    for _ in range(MAX_PARTNERS):
        if above < 0 or above == row:
            return
        since = place.trace.slices.start_ns[asked]
        yield partner(place, since, above, "parent", "", outgoing=False)
        row, above = above, int(place.trace.slices.parent[above])


def partner(
    place: Placed,
    since_ns: int,
    row: int,
    relation: str,
    category: str,
    outgoing: bool,
) -> api.TracePartner:
    """A slice that is linked with something that begins at `since_ns` of the trace."""
    slices = place.trace.slices
    return api.TracePartner(
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
