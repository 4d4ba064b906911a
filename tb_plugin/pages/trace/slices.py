"""Route `/trace_slices`: the slices, blocks and counters of a window of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.trace.timeline.families import (
    FAMILIES,
    family_of,
    family_of_instant,
)
from memboard.tb_plugin.analysis.trace.timeline.instants import marks
from memboard.tb_plugin.analysis.trace.timeline.tiles import MAX_PIECES, Lane, zoom_of
from memboard.tb_plugin.api.trace import INSTANTS_LEVEL, TraceLane, TraceSlicesResponse
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.errors import NotFoundError
from memboard.tb_plugin.contract.parameters import Pixels
from memboard.tb_plugin.contract.routes import RouteRequest, route
from memboard.tb_plugin.contract.wire import i32, u8, u16
from memboard.tb_plugin.facts.traces.axis import (
    COUNTERS,
    TracksQuery,
    chosen_tracks,
    run_clocks,
    window_of,
)
from memboard.tb_plugin.facts.traces.run_traces import places_of
from memboard.tb_plugin.pages.trace.counters import RankCounters, trace_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.trace.trace import Instants, Slices
    from memboard.tb_plugin.api.trace import TraceLine
    from memboard.tb_plugin.facts.traces.axis import PlacedSource

NO_NAME: Final = 0xFFFF
MAX_NAME: Final = 160

MAX_INSTANTS: Final = 4_000

_COUNTER_SECONDS: Final = 2.0
"""Time for the run's own numbers in a tile."""

_MOST: Final = 2**31 - 1


class SlicesQuery(TracksQuery, frozen=True):
    """A tile of tracks, on so many pixels."""

    px: Pixels = 1600


def _own_lines(asked: RouteRequest[SlicesQuery]) -> list[TraceLine]:
    """The run's own numbers, read with its lock held."""
    query = asked.query
    wanted = [one for one in query.tracks if one[0].startswith(COUNTERS)]
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
    parts: list[_Part] = []
    used_zoom, left = 0, MAX_PIECES
    marked = sum(
        len(np.intersect1d(place.trace.instants.track, tracks))
        for place, tracks in chosen
    )
    most_instants = max(50, MAX_INSTANTS // max(1, marked))
    for at, (place, tracks) in enumerate(chosen):
        trace, own_start, own_end = place.trace, place.own_ns(start), place.own_ns(end)
        own = [
            Lane(track, level)
            for track in tracks
            for level in range(trace.tracks[track].num_levels)
            if trace.tracks[track].num_slices
        ]
        # Sources that are still to come get their share.
        most = max(200, left // (len(chosen) - at))
        tile = place.source.tiles.tile(own, own_start, own_end, zoom, most)
        left = max(0, left - len(tile.pieces))
        used_zoom = max(used_zoom, tile.zoom)
        pieces = tile.pieces
        parts.append(
            _Part(
                place,
                trace.slices,
                pieces.longest,
                pieces.start_ns,
                pieces.end_ns,
                pieces.count,
                pieces.busy_ns,
                np.diff(tile.lane_start),
            )
        )
        lanes += [TraceLane(place.track_of(one.track), one.level) for one in own]
        for track in tracks:
            if trace.tracks[track].kind == "counter":
                shown = place.track_of(track)
                lines += trace_lines(trace, shown, track, own_start, own_end, query.px)
            found = marks(trace, track, own_start, own_end, zoom, most_instants)
            if len(found):
                time_ns = trace.instants.time_ns[found.row].astype(np.int64)
                sizes = np.array([len(found)])
                of = (trace.instants, found.row, time_ns, time_ns, found.count)
                parts.append(_Part(place, *of, np.zeros_like(time_ns), sizes))
                lanes.append(TraceLane(place.track_of(track), INSTANTS_LEVEL))
    begin = _joined([one.start_ns + one.place.zero_ns - start for one in parts])
    stop = _joined([one.end_ns + one.place.zero_ns - start for one in parts])
    unit = _unit(begin, stop)
    first = np.rint(begin / unit)
    names, name, family = _named(parts)
    lane_start = np.cumsum(
        _joined([np.zeros(1, np.int64), *(one.sizes for one in parts)])
    )
    return TraceSlicesResponse(
        t0=str(start),
        unit_ns=float(unit),
        zoom=used_zoom,
        lanes=tuple(lanes),
        lane_start=i32(lane_start),
        start=i32(first),
        duration=i32(np.rint(stop / unit) - first),
        row=i32(_joined([~one.row if one.is_instants else one.row for one in parts])),
        name=u16(name),
        family=u8(family),
        count=i32(_joined([one.num for one in parts])),
        busy=i32(
            np.minimum(np.rint(_joined([one.busy_ns for one in parts]) / unit), _MOST)
        ),
        names=names,
        families=FAMILIES,
        lines=tuple(lines),
    )


class _Part(NamedTuple):
    """Pieces of a source, in its own time: of lanes of slices, or of one of instants."""

    place: PlacedSource
    table: Slices | Instants
    row: Ints
    """Of the table: what a piece is named after."""
    start_ns: Ints
    end_ns: Ints
    num: Ints
    busy_ns: Ints
    sizes: Ints

    @property
    def is_instants(self) -> bool:
        return self.table is self.place.trace.instants


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _unit(begin: Ints, stop: Ints) -> int:
    """The power of two in nanoseconds by which all times are whole 32 bit numbers."""
    if not len(begin):
        return 1
    most = max(abs(int(begin.min())), abs(int(begin.max())), abs(int(stop.max())))
    longest = int((stop - begin).max())
    unit = 1
    while max(most, longest) // unit > _MOST - 2:
        unit *= 2
    return unit


def _named(parts: Sequence[_Part]) -> tuple[tuple[str, ...], Ints, Ints]:
    """Names, and by piece which of them and which family."""
    names: dict[str, int] = {}
    of_name, of_family = [], []
    for part in parts:
        strings = part.place.trace.strings
        name = np.asarray(part.table.name[part.row], np.int64)
        keys = name << 32 | np.asarray(part.table.category[part.row], np.int64)
        keys, which = np.unique(keys, return_inverse=True)
        table = np.full((2, len(keys)), NO_NAME, np.int64)
        for at, key in enumerate(keys.tolist()):
            text, category = strings[key >> 32], strings[key & 0xFFFFFFFF]
            family = (
                family_of_instant(category)
                if part.is_instants
                else family_of(category, text)
            )
            number = names.setdefault(_shortened(text), len(names))
            table[:, at] = (min(number, NO_NAME), FAMILIES.index(family))
        of_name.append(table[0][which])
        of_family.append(table[1][which])
    return tuple(names)[:NO_NAME], _joined(of_name), _joined(of_family)


def _shortened(text: str) -> str:
    """A name as tiles have it; told apart at its end too, where templates differ."""
    if len(text) <= MAX_NAME:
        return text
    return f"{text[: MAX_NAME - 41]}…{text[-40:]}"
