"""Route `/trace_slices`: the slices, blocks and counters of a window of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.trace.families import FAMILIES, family_of
from tb_plugin.analysis.trace.instants import marks
from tb_plugin.analysis.trace.tiles import MAX_PIECES, Lane, zoom_of
from tb_plugin.api.trace import TraceInstants, TraceLane, TraceSlicesResponse
from tb_plugin.budget import Budget
from tb_plugin.contract.errors import NotFoundError
from tb_plugin.contract.parameters import Pixels
from tb_plugin.contract.routes import Asked, route
from tb_plugin.contract.wire import f64, i32, u8, u16
from tb_plugin.pages.trace.asked import places_of
from tb_plugin.pages.trace.axis import (
    COUNTERS,
    TracksQuery,
    chosen_tracks,
    run_clocks,
    window_of,
)
from tb_plugin.pages.trace.counters import RankCounters, trace_lines
from tb_plugin.pages.trace.slice import kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tb_plugin.analysis.arrays import Ints
    from tb_plugin.analysis.trace.tiles import Tile
    from tb_plugin.analysis.trace.trace import Trace
    from tb_plugin.api.trace import TraceInstantKind, TraceLine
    from tb_plugin.pages.trace.axis import Placed

NO_NAME: Final = 0xFFFF
MAX_NAME: Final = 160

MAX_INSTANTS: Final = 4_000
"""Of one tile."""

_COUNTER_SECONDS: Final = 2.0
"""What the run's own numbers in a tile may take."""

KINDS: Final[tuple[TraceInstantKind, ...]] = ("other", "oom", "checkpoint")
_MOST: Final = 2**31 - 1


class SlicesQuery(TracksQuery, frozen=True):
    """A tile of tracks, on so many pixels."""

    px: Pixels = 1600


def _own_lines(asked: Asked[SlicesQuery]) -> list[TraceLine]:
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
def trace_slices(asked: Asked[SlicesQuery]) -> TraceSlicesResponse:
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
    tiles: list[tuple[Placed, Tile]] = []
    left = MAX_PIECES
    for at, (place, tracks) in enumerate(chosen):
        own = [
            Lane(track, level)
            for track in tracks
            for level in range(place.trace.tracks[track].num_levels)
            if place.trace.tracks[track].num_slices
        ]
        # Sources that are still to come get their share.
        most = max(200, left // (len(chosen) - at))
        tile = place.source.tiles.tile(
            own, place.own_ns(start), place.own_ns(end), zoom, most
        )
        left = max(0, left - len(tile.pieces))
        tiles.append((place, tile))
        lanes += [TraceLane(place.track_of(one.track), one.level) for one in own]
        for track in tracks:
            if place.trace.tracks[track].kind == "counter":
                lines += trace_lines(
                    place.trace,
                    place.track_of(track),
                    track,
                    place.own_ns(start),
                    place.own_ns(end),
                    query.px,
                )
    shifted = [(tile.pieces, place.zero_ns - start) for place, tile in tiles]
    begin = _joined([pieces.start_ns + shift for pieces, shift in shifted])
    stop = _joined([pieces.end_ns + shift for pieces, shift in shifted])
    busy = _joined([tile.pieces.busy_ns for _, tile in tiles])
    unit = _unit(begin, stop)
    first = np.rint(begin / unit)
    names, name, family = _named(tiles)
    return TraceSlicesResponse(
        t0=str(start),
        unit_ns=float(unit),
        zoom=max((tile.zoom for _, tile in tiles), default=0),
        lanes=tuple(lanes),
        lane_start=i32(_lane_starts([tile for _, tile in tiles])),
        start=i32(first),
        duration=i32(np.rint(stop / unit) - first),
        row=i32(_joined([tile.pieces.longest for _, tile in tiles])),
        name=u16(name),
        family=u8(family),
        count=i32(_joined([tile.pieces.count for _, tile in tiles])),
        busy=i32(np.minimum(np.rint(busy / unit), _MOST)),
        names=names,
        families=FAMILIES,
        lines=tuple(lines),
        instants=_instants_in(chosen, start, end, zoom),
    )


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


def _lane_starts(tiles: Sequence[Tile]) -> list[int]:
    starts, base = [0], 0
    for tile in tiles:
        starts += (tile.lane_start[1:] + base).tolist()
        base += len(tile.pieces)
    return starts


def _named(
    tiles: Sequence[tuple[Placed, Tile]],
) -> tuple[tuple[str, ...], Ints, Ints]:
    """Names, and by piece which of them and which family."""
    names: dict[str, int] = {}
    of_name, of_family = [], []
    for place, tile in tiles:
        trace, rows = place.trace, tile.pieces.longest
        keys, which = np.unique(_keys(trace, rows), return_inverse=True)
        table = np.full((2, len(keys)), NO_NAME, np.int64)
        for at, key in enumerate(keys.tolist()):
            text = trace.strings[key >> 32]
            family = family_of(trace.strings[key & 0xFFFFFFFF], text)
            number = names.setdefault(_shortened(text), len(names))
            table[:, at] = (min(number, NO_NAME), FAMILIES.index(family))
        of_name.append(table[0][which])
        of_family.append(table[1][which])
    return tuple(names)[:NO_NAME], _joined(of_name), _joined(of_family)


def _keys(trace: Trace, rows: Ints) -> Ints:
    name = np.asarray(trace.slices.name[rows], np.int64)
    return name << 32 | np.asarray(trace.slices.category[rows], np.int64)


def _instants_in(
    chosen: Sequence[tuple[Placed, Sequence[int]]], start: int, end: int, zoom: int
) -> TraceInstants:
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
            name = _shortened(trace.strings[int(trace.instants.name[row])])
            rows.append(
                (
                    len(tracks),
                    int(trace.instants.time_ns[row]) + shift,
                    row,
                    names.setdefault(name, len(names)),
                    KINDS.index(kind_of(trace, row)),
                    count,
                )
            )
        tracks.append(place.track_of(track))
    columns = np.array(rows, np.int64).reshape(-1, 6).T
    return TraceInstants(
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


def _shortened(text: str) -> str:
    """A name as tiles have it; told apart at its end too, where templates differ."""
    if len(text) <= MAX_NAME:
        return text
    return f"{text[: MAX_NAME - 41]}…{text[-40:]}"
