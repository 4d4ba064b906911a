"""Route `/trace_instant`, and the instants of a tile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin import api
from tb_plugin.analysis.spans.events import CHECKPOINT, OUT_OF_MEMORY
from tb_plugin.analysis.trace.instants import marks, slices_around
from tb_plugin.contract.wire import f64, i32, u8, u16
from tb_plugin.pages.trace.asked import RowQuery, row_of
from tb_plugin.pages.trace.names import shortened
from tb_plugin.pages.trace.slice import MAX_PARTNERS, partner, told_args
from tb_plugin.server.errors import NotFoundError
from tb_plugin.server.routes import Asked, route

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tb_plugin.analysis.trace.trace import Trace
    from tb_plugin.pages.trace.axis import Placed

MAX_INSTANTS: Final = 4_000
"""Of one tile."""

KINDS: Final[tuple[api.TraceInstantKind, ...]] = ("other", "oom", "checkpoint")
_KIND_OF: Final[dict[str, api.TraceInstantKind]] = {
    OUT_OF_MEMORY: "oom",
    CHECKPOINT: "checkpoint",
}
_MAX_TEXT: Final = 2_000


def instants_in(
    chosen: Sequence[tuple[Placed, Sequence[int]]], start: int, end: int, zoom: int
) -> api.TraceInstants:
    """Those of some tracks in a window, as they are drawn at a zoom."""
    tracks: list[str] = []
    names: dict[str, int] = {}
    rows: list[tuple[int, int, int, int, int, int]] = []
    having = [
        (place, track)
        for place, own in chosen
        if len(place.trace.instants)
        for track in own
    ]
    for place, track in having:
        trace = place.trace
        most = max(50, (MAX_INSTANTS - len(rows)) // len(having))
        found = marks(trace, track, place.own_ns(start), place.own_ns(end), zoom, most)
        if not len(found):
            continue
        shift = place.zero_ns - start
        for row, count in zip(found.row.tolist(), found.count.tolist(), strict=True):
            name = shortened(trace.strings[int(trace.instants.name[row])])
            rows.append(
                (
                    len(tracks),
                    int(trace.instants.time_ns[row]) + shift,
                    row,
                    names.setdefault(name, len(names)),
                    KINDS.index(_kind(trace, row)),
                    count,
                )
            )
        tracks.append(place.track_of(track))
    columns = np.array(rows, np.int64).reshape(-1, 6).T
    return api.TraceInstants(
        tracks=tuple(tracks),
        track=u16(columns[0]),
        time_ns=f64(columns[1]),
        row=i32(columns[2]),
        name=u16(columns[3]),
        kind=u8(columns[4]),
        count=i32(columns[5]),
        names=tuple(names),
        kinds=KINDS,
    )


@route("trace_instant", RowQuery)
def answer(asked: Asked[RowQuery]) -> api.TraceInstantResponse:
    """The instant of a row."""
    return trace_instant(*row_of(asked))


def trace_instant(place: Placed, row: int) -> api.TraceInstantResponse:
    """Answer it.

    Raises:
        NotFoundError: there is no such instant.
    """
    trace = place.trace
    instants = trace.instants
    if not 0 <= row < len(instants):
        raise NotFoundError(
            "There is no such instant.",
            place.source.found.name[:200],
            "Reload the page: the trace was replaced by another one.",
        )
    args, problem = told_args(trace, int(instants.args[row]))
    time_ns = int(instants.time_ns[row])
    return api.TraceInstantResponse(
        source=place.id,
        row=row,
        track=place.track_of(int(instants.track[row])),
        name=trace.strings[int(instants.name[row])][:_MAX_TEXT],
        category=_category(trace, row)[:_MAX_TEXT],
        kind=_kind(trace, row),
        time_ns=str(place.zero_ns + time_ns),
        args=args,
        args_problem=problem,
        stack=tuple(
            partner(place, time_ns, around, "parent", "", outgoing=False)
            for around in slices_around(trace, row)[:MAX_PARTNERS]
        ),
    )


def _category(trace: Trace, row: int) -> str:
    return trace.strings[int(trace.instants.category[row])]


def _kind(trace: Trace, row: int) -> api.TraceInstantKind:
    return _KIND_OF.get(_category(trace, row), "other")
