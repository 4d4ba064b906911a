"""One rank's share of a merged trace: a trace of its own, as if it had been read alone.

Merging puts each rank's processes under names that begin with the rank.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, place_of
from memboard.tb_plugin.analysis.trace.trace import Counters, Flows, Series, Trace

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.trace.details import MemoryEvents
    from memboard.tb_plugin.analysis.trace.trace import Instants


OnTracks = TypeVar("OnTracks", "Instants", "MemoryEvents")
_PROCESS: Final = re.compile(r"Rank (\d{1,7})(?!\d)")
_DETAILS: Final = (
    "operators",
    "launches",
    "device_work",
    "synchronisations",
    "collectives",
)


def share_of(trace: Trace, rank: int | None) -> Trace:
    """What is of one rank's processes; of None what is of no rank's."""
    number = NOTHING if rank is None else rank
    ranks = (_PROCESS.match(track.process) for track in trace.tracks)
    of_rank = [NOTHING if match is None else int(match[1]) for match in ranks]
    kept = np.array(of_rank, np.int64) == number
    place = np.cumsum(kept) - 1  # of each track that is kept
    rows = np.flatnonzero(kept[trace.slices.track])
    row_of = place_of(rows, len(trace.slices) + 1)  # the last is NOTHING's
    tracks = []
    for track_number in np.flatnonzero(kept).tolist():
        track = trace.tracks[track_number]
        moved = int(np.searchsorted(rows, track.first_row)) - track.first_row
        levels = tuple(row + moved for row in track.level_rows)
        first = track.first_row + moved
        tracks.append(replace(track, rank=number, first_row=first, level_rows=levels))
    series, counters = _counters(trace, kept, place)
    share = replace(
        trace,
        tracks=tuple(tracks),
        slices=trace.slices.take(
            rows,
            track=place[trace.slices.track[rows]],
            parent=row_of[trace.slices.parent[rows]],
        ),
        instants=_of_tracks(trace.instants, kept, place),
        memory=_of_tracks(trace.memory, kept, place),
        series=series,
        counters=counters,
        flows=_flows(trace.flows, row_of, kept, place),
        facts=replace(trace.facts, rank=number),
        **{name: _details(getattr(trace, name), row_of) for name in _DETAILS},
    )
    start, end = _window(share)
    return replace(share, start_ns=start, end_ns=end)


def _of_tracks(table: OnTracks, kept: Ints, place: Ints) -> OnTracks:
    rows = np.flatnonzero(kept[table.track])
    return table.take(rows, track=place[table.track[rows]])


def _details(table: Any, row_of: Ints) -> Any:
    """What is known of slices: of those that are left."""
    row = row_of[table.row]
    rows = np.flatnonzero(row != NOTHING)
    return table.take(rows, row=row[rows])


def _flows(flows: Flows, row_of: Ints, kept: Ints, place: Ints) -> Flows:
    rows = np.flatnonzero(kept[flows.from_track] & kept[flows.to_track])
    return flows.take(
        rows,
        from_row=row_of[flows.from_row[rows]],
        to_row=row_of[flows.to_row[rows]],
        from_track=place[flows.from_track[rows]],
        to_track=place[flows.to_track[rows]],
    )


def _counters(
    trace: Trace, kept: Ints, place: Ints
) -> tuple[tuple[Series, ...], Counters]:
    series: list[Series] = []
    rows: list[Ints] = [np.empty(0, np.int64)]
    num = 0
    for counter in trace.series:
        if kept[counter.track]:
            rows.append(
                np.arange(counter.first_row, counter.first_row + counter.num_points)
            )
            track = int(place[counter.track])
            series.append(Series(track, counter.name, num, counter.num_points))
            num += counter.num_points
    return tuple(series), trace.counters.take(np.concatenate(rows))


def _window(trace: Trace) -> tuple[int, int]:
    """First and last time of what is there."""
    slices = trace.slices
    times = (trace.instants.time_ns, trace.memory.time_ns, trace.counters.time_ns)
    firsts = [int(time.min()) for time in (slices.start_ns, *times) if len(time)]
    lasts = [int(time.max()) for time in times if len(time)]
    if len(slices):
        lasts.append(int(slices.ends().max()))
    return min(firsts, default=0), max(lasts, default=0)
