"""Route `/trace_slices`: the slices, blocks and counters of a window of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.analysis.trace.timeline.families import FAMILIES
from memboard.tb_plugin.analysis.trace.timeline.instants import marks
from memboard.tb_plugin.analysis.trace.timeline.source_pieces import (
    drawn_pieces,
    instant_pieces,
    num_tracks_with_instants,
    slice_pieces,
)
from memboard.tb_plugin.analysis.trace.timeline.tiles import MAX_PIECES, Lane, zoom_of
from memboard.tb_plugin.api.base import i32, u8, u16
from memboard.tb_plugin.api.time.trace import (
    INSTANTS_LEVEL,
    TraceLane,
    TraceSlicesResponse,
)
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.errors import NotFoundError
from memboard.tb_plugin.contract.parameters import Pixels
from memboard.tb_plugin.facts.traces.axis import (
    COUNTERS,
    TracksQuery,
    chosen_tracks,
    run_clocks,
    window_of,
)
from memboard.tb_plugin.facts.traces.timeline.counters import RankCounters, trace_lines
from memboard.tb_plugin.server.routes import RouteRequest, route
from memboard.tb_plugin.server.views.trace import places_of

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.trace.timeline.source_pieces import SourcePieces
    from memboard.tb_plugin.api.time.trace import TraceLine

MAX_INSTANTS: Final = 4_000

_COUNTER_SECONDS: Final = 2.0
"""Time for the run's own numbers in a tile."""


class SlicesQuery(TracksQuery, frozen=True):
    """A tile of tracks, on so many pixels."""

    px: Pixels = 1600


def _own_lines(asked: RouteRequest[SlicesQuery]) -> list[TraceLine]:
    """The run's own numbers, read with its lock held."""
    query = asked.query
    wanted = [track for track in query.tracks if track[0].startswith(COUNTERS)]
    if not wanted:
        return []
    window = window_of(query)
    run = asked.state.store.run(query.run)
    lines: list[TraceLine] = []
    with run.lock:  # as it was read so far: panning waits for nothing
        budget = Budget(_COUNTER_SECONDS)
        clocks = run_clocks(run)
        for source_id, indices in wanted:
            text = source_id.removeprefix(COUNTERS)
            if not (text.isdigit() and len(text) < 9):
                raise NotFoundError(
                    "There are no such counters.", source_id, "Reload the page."
                )
            rank = int(text)
            counters = RankCounters(asked.state.store.series, run, rank)
            offset = clocks.offset_ns(rank)
            lines += counters.lines(
                source_id, indices, window, query.px, budget, offset
            )
    return lines


@route("trace_slices", SlicesQuery)
def trace_slices(asked: RouteRequest[SlicesQuery]) -> TraceSlicesResponse:
    """One tile of the sources that the request names.

    Raises:
        NotFoundError: a track is not there.
        BadRequestError: no window is given.
    """
    query, places = asked.query, places_of(asked)
    lines = _own_lines(asked)
    start, end = window_of(query)
    zoom = zoom_of(end - start, query.px)
    chosen = list(chosen_tracks(query, places))
    lanes: list[TraceLane] = []
    parts: list[SourcePieces] = []
    used_zoom, left = 0, MAX_PIECES
    marked = sum(
        num_tracks_with_instants(place.trace, tracks) for place, tracks in chosen
    )
    most_instants = max(50, MAX_INSTANTS // max(1, marked))
    for index, (place, tracks) in enumerate(chosen):
        trace, own_start, own_end = place.trace, place.own_ns(start), place.own_ns(end)
        own = [
            Lane(track, level)
            for track in tracks
            for level in range(trace.tracks[track].num_levels)
            if trace.tracks[track].num_slices
        ]
        # Sources that are still to come get their share.
        most = max(200, left // (len(chosen) - index))
        tile = place.source.tiles.tile(own, own_start, own_end, zoom, most)
        left = max(0, left - len(tile.pieces))
        used_zoom = max(used_zoom, tile.zoom)
        parts.append(slice_pieces(trace, place.zero_ns, tile))
        lanes += [TraceLane(place.track_of(lane.track), lane.level) for lane in own]
        for track in tracks:
            if trace.tracks[track].kind == "counter":
                shown = place.track_of(track)
                lines += trace_lines(trace, shown, track, own_start, own_end, query.px)
            rows = marks(trace, track, own_start, own_end, zoom, most_instants)
            if len(rows):
                parts.append(instant_pieces(trace, place.zero_ns, rows))
                lanes.append(TraceLane(place.track_of(track), INSTANTS_LEVEL))
    pieces = drawn_pieces(parts, start)
    return TraceSlicesResponse(
        t0=str(start),
        unit_ns=float(pieces.unit_ns),
        zoom=used_zoom,
        lanes=tuple(lanes),
        lane_start=i32(pieces.lane_start),
        start=i32(pieces.start),
        duration=i32(pieces.duration),
        row=i32(pieces.row),
        name=u16(pieces.name),
        family=u8(pieces.family),
        count=i32(pieces.count),
        busy=i32(pieces.busy),
        names=pieces.names,
        families=FAMILIES,
        lines=tuple(lines),
    )
