"""Routes about single slices and instants, those found by name, and sums of a window."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec.structs import replace

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.findings.text import duration_text
from memboard.tb_plugin.analysis.trace.timeline.families import (
    family_of,
    family_of_instant,
)
from memboard.tb_plugin.analysis.trace.timeline.hits import Search
from memboard.tb_plugin.analysis.trace.timeline.instants import slices_around
from memboard.tb_plugin.analysis.trace.timeline.totals import RangeSums
from memboard.tb_plugin.api.base import f64, i32, u16
from memboard.tb_plugin.api.time.trace import (
    INSTANTS_LEVEL,
    TraceArg,
    TracePartner,
    TraceRangeResponse,
    TraceSearchResponse,
    TraceSliceResponse,
)
from memboard.tb_plugin.contract.errors import BadRequestError, NotFoundError
from memboard.tb_plugin.contract.parameters import Text
from memboard.tb_plugin.contract.table import Column, cut, table_of, titled
from memboard.tb_plugin.facts.traces.axis import TracksQuery, chosen_tracks, window_of
from memboard.tb_plugin.facts.traces.run_traces import RowQuery
from memboard.tb_plugin.server.routes import RouteRequest, route
from memboard.tb_plugin.server.views.trace import places_of, row_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from memboard.tb_plugin.analysis.trace.trace import Trace
    from memboard.tb_plugin.facts.traces.axis import PlacedSource

MAX_VALUE: Final = 4_000
MAX_ARGS: Final = 500
MAX_PARTNERS: Final = 200

MAX_HITS: Final = 10_000
MAX_NAMES: Final = 20_000
_MAX_NAME: Final = 500


@route("trace_slice", RowQuery)
def trace_slice(asked: RouteRequest[RowQuery]) -> TraceSliceResponse:
    """The slice of a row, or its instant."""
    place, row = row_of(asked)
    trace = place.trace
    if not -len(trace.instants) <= row < len(trace.slices):
        raise NotFoundError(
            "There is no such slice.",
            place.source.found.name[:200],
            "Reload the page: the trace was replaced by another one.",
        )
    if row < 0:
        return _instant(place, row)
    slices = trace.slices
    args, problem = _told_args(trace, int(slices.args[row]))
    slice_name, category = trace.name_of(row), trace.category_of(row)
    return TraceSliceResponse(
        source=place.id,
        row=row,
        track=place.track_of(int(slices.track[row])),
        level=int(slices.level[row]),
        name=cut(slice_name),
        category=cut(category),
        family=family_of(category, slice_name),
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
                int(slices.duration_ns[row]),
            )
            for link in trace.links_of(row)[:MAX_PARTNERS]
        ),
    )


def _instant(place: PlacedSource, row: int) -> TraceSliceResponse:
    trace, instant_row = place.trace, ~row
    instants = trace.instants
    args, problem = _told_args(trace, int(instants.args[instant_row]))
    category = trace.strings[int(instants.category[instant_row])]
    time_ns = int(instants.time_ns[instant_row])
    return TraceSliceResponse(
        source=place.id,
        row=row,
        track=place.track_of(int(instants.track[instant_row])),
        level=INSTANTS_LEVEL,
        name=cut(trace.strings[int(instants.name[instant_row])]),
        category=cut(category),
        family=family_of_instant(category),
        start_ns=str(place.zero_ns + time_ns),
        duration_ns=0.0,
        self_ns=0.0,
        num_children=0,
        args=args,
        args_problem=problem,
        stack=tuple(
            _partner(place, time_ns, around, "parent", "", outgoing=False)
            for around in slices_around(trace, instant_row)[:MAX_PARTNERS]
        ),
        partners=(),
    )


def _told_args(trace: Trace, handle: int) -> tuple[tuple[TraceArg, ...], str]:
    """Arguments by a handle, or why they cannot be read."""
    try:
        return tuple(_args(trace.args_at(handle))), ""
    except (OSError, ValueError) as error:
        return (), cut(str(error)) or "The file cannot be read."


def _args(args: Mapping[str, Any]) -> Iterator[TraceArg]:
    for key, value in list(args.items())[:MAX_ARGS]:
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        yield TraceArg(cut(str(key)), cut(text, MAX_VALUE))


def _stack(place: PlacedSource, row: int) -> Iterator[TracePartner]:
    above, asked = int(place.trace.slices.parent[row]), row
    for _ in range(MAX_PARTNERS):
        if above < 0 or above == row:
            return
        since = place.trace.slices.start_ns[asked]
        yield _partner(place, since, above, "parent", "", outgoing=False)
        row, above = above, int(place.trace.slices.parent[above])


_RELATIONS: Final = {
    "parent": ("in", "in"),
    "launch": ("launches", "launched by"),
    "captured": ("replayed as", "captured in"),
    "fwdbwd": ("backward of it", "forward of it"),
    "flow": ("leads to", "comes from"),
}


def _when(start_ns: int, took_ns: int) -> str:
    after = "after it began" if start_ns >= took_ns else "into it"
    return f"{duration_text(abs(start_ns) / 1e9)} {'before' if start_ns < 0 else after}"


def _partner(
    place: PlacedSource,
    since_ns: int,
    row: int,
    relation: str,
    category: str,
    outgoing: bool,
    took_ns: int = 0,
) -> TracePartner:
    """A slice that is linked with what begins at `since_ns` of the trace and takes so long."""
    slices = place.trace.slices
    start_ns = int(slices.start_ns[row]) - int(since_ns)
    return TracePartner(
        relation=relation,  # type: ignore[arg-type]  # one of these words
        words=_RELATIONS[relation][not outgoing],
        when=_when(start_ns, took_ns),
        category=cut(category),
        outgoing=outgoing,
        source=place.id,
        row=row,
        track=place.track_of(int(slices.track[row])),
        level=int(slices.level[row]),
        name=cut(place.trace.name_of(row)),
        start_ns=float(start_ns),
        duration_ns=float(slices.duration_ns[row]),
    )


class SearchQuery(TracksQuery, frozen=True):
    """A text in names of tracks; `only`: of instants alone."""

    text: Text | None = None
    only: Literal["instants"] | None = None


@route("trace_search", SearchQuery)
def trace_search(asked: RouteRequest[SearchQuery]) -> TraceSearchResponse:
    """Where a text stands in names.

    Raises:
        BadRequestError: no text is given.
        NotFoundError: a track is not there.
    """
    places, query = places_of(asked), asked.query
    if query.text is None and query.only is None:
        raise BadRequestError(
            "The search text is missing.", "text", "Type a text to find."
        )
    search = Search(MAX_HITS)
    keys: list[str] = []
    for place, tracks in chosen_tracks(query, places):
        text = query.text
        search.add(
            place.trace,
            place.zero_ns,
            tracks,
            None if text is None else place.source.matching(text),
            with_slices=text is not None and query.only is None,
        )
        keys += [place.track_of(track) for track in tracks]
    hits = search.hits()
    t0 = int(hits.start_ns[0]) if len(hits) else 0
    return TraceSearchResponse(
        t0=str(t0),
        num_hits=search.num_hits,
        num_names=search.num_names,
        tracks=tuple(keys),
        track=u16(hits.track),
        level=i32(hits.level),
        row=i32(hits.row),
        start_ns=f64(hits.start_ns - t0),
        duration_ns=f64(hits.duration_ns),
    )


_SUMS: Final = (
    Column("name", "Name", unit="name"),
    Column(
        "total_us", "Total", unit="us", help="Their time within the range", bar="row"
    ),
    Column("count", "Count", unit="count", help="Slices that touch the range"),
    Column("self_us", "Self", unit="us", help="Total without the slices inside them"),
    Column("mean_us", "Mean", unit="us", help="Total by count"),
    Column(
        "max_us",
        "Longest",
        unit="us",
        help="The whole duration of the longest; click a row to see it",
    ),
    Column("category", "Category", unit="text"),
)
_TRACK: Final = Column("track", "Track", unit="text", help="Its rank, and its name")


class RangeQuery(TracksQuery, frozen=True):
    """Tracks in a window; `by`: sums over all of them, or of each."""

    by: Literal["name", "track"] = "name"


@route("trace_range", RangeQuery)
def trace_range(asked: RouteRequest[RangeQuery]) -> TraceRangeResponse:
    """Sums of a window by name, or by name and track.

    Raises:
        BadRequestError: no window is given.
        NotFoundError: a track is not there.
    """
    places, query = places_of(asked), asked.query
    start, end = window_of(query)
    by_track = query.by == "track"
    sums = RangeSums(by_track=by_track)
    sources: list[PlacedSource] = []
    for place, tracks in chosen_tracks(query, places):
        sums.add(place.trace, tracks, place.own_ns(start), place.own_ns(end))
        sources.append(place)
    rows = sums.rows(MAX_NAMES)
    track_texts = (
        _track_text(sources[number], track)
        for number, track in zip(rows.source.tolist(), rows.track.tolist(), strict=True)
    )
    name_column, *others = _SUMS
    table = table_of(
        (name_column, _TRACK, *others) if by_track else _SUMS,
        {
            "track": list(track_texts) if by_track else (),
            "name": [name[:_MAX_NAME] for name in rows.name],
            "total_us": rows.total_ns,
            "count": rows.count,
            "self_us": rows.self_ns,
            "mean_us": rows.mean_ns,
            "max_us": rows.max_ns,
            "category": [category[:_MAX_NAME] for category in rows.category],
        },
        "total_us",
        sums.num_rows,
    )
    summary = (
        f"{counted(sums.num_slices, 'slice')} of {counted(sums.num_names, 'name')}"
    )
    title = "Slices by name and track" if by_track else "Slices by name"
    table = titled(table, title, summary, "Nothing runs in this range.")
    colours = map(family_of, rows.category, rows.name)
    return TraceRangeResponse(
        table=replace(table, colours=tuple(colours)),
        row=i32(rows.longest),
        source=u16(rows.source),
        sources=tuple(place.id for place in sources),
    )


def _track_text(place: PlacedSource, index: int) -> str:
    rank, track_name = (
        place.source.found.rank,
        place.trace.tracks[index].name[:_MAX_NAME],
    )
    return track_name if rank is None else f"rank {rank}: {track_name}"
