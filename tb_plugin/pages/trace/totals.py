"""Routes `/trace_search` and `/trace_range`: what is found by name, and summed up by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from tb_plugin.analysis.trace.families import FAMILIES, family_of
from tb_plugin.analysis.trace.instants import found_instants
from tb_plugin.analysis.trace.totals import found_slices, totals
from tb_plugin.api.trace import TraceRangeResponse, TraceSearchResponse
from tb_plugin.contract.wire import f64, i32, u8, u16
from tb_plugin.pages.trace.asked import places_of
from tb_plugin.pages.trace.axis import TracksQuery, chosen_tracks, window_of
from tb_plugin.server.errors import BadRequestError
from tb_plugin.server.parameters import Text
from tb_plugin.server.routes import Asked, route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tb_plugin.analysis.arrays import Ints
    from tb_plugin.pages.trace.axis import Placed

MAX_HITS: Final = 10_000
MAX_NAMES: Final = 20_000
_MAX_TEXT: Final = 500


class SearchQuery(TracksQuery, frozen=True):
    """A text in names of tracks; `only`: of instants alone."""

    text: Text | None = None
    only: Literal["instants"] | None = None


@route("trace_search", SearchQuery)
def answer_search(asked: Asked[SearchQuery]) -> TraceSearchResponse:
    """Where a text stands."""
    return trace_search(places_of(asked), asked.query)


@route("trace_range", TracksQuery)
def answer_range(asked: Asked[TracksQuery]) -> TraceRangeResponse:
    """Sums of a window."""
    return trace_range(places_of(asked), asked.query)


def trace_search(
    places: Mapping[str, Placed], query: SearchQuery
) -> TraceSearchResponse:
    """Where a text stands in names.

    Raises:
        BadRequestError: no text is given.
        NotFoundError: a track is not there.
    """
    if query.text is None and query.only is None:
        raise BadRequestError("A text must be given.", "text", "Type what to find.")
    parts, number, names = [], 0, 0
    keys: list[str] = []
    for place, tracks in chosen_tracks(query, places):
        trace = place.trace
        text = query.text
        wanted = None if text is None else place.source.matching(text)
        found, total = found_instants(trace, tracks, wanted, MAX_HITS)
        number += total
        known = [trace.instants.name[found]]
        parts.append(_hits_of_instants(place, found))
        if wanted is not None and query.only is None:
            rows, total = found_slices(trace, tracks, wanted, MAX_HITS)
            number += total
            known.append(trace.slices.name[rows])
            parts.append(_hits_of_slices(place, rows))
        names += len(np.unique(np.concatenate(known)))
        index = np.zeros(len(trace.tracks) + 1, np.int64)
        index[tracks] = np.arange(len(tracks)) + len(keys)
        keys += [place.track_of(track) for track in tracks]
        for part in parts[-len(known) :]:
            part[2] = index[part[2]]
    every: Ints = np.concatenate(parts, axis=1) if parts else np.empty((6, 0), np.int64)
    every = every[:, np.argsort(every[0], kind="stable")[:MAX_HITS]]
    t0 = int(every[0, 0]) if every.shape[1] else 0
    return TraceSearchResponse(
        t0=str(t0),
        num_hits=number,
        num_names=names,
        tracks=tuple(keys),
        track=u16(every[2]),
        level=u16(np.minimum(every[3], 0xFFFF)),
        row=i32(every[4]),
        is_instant=u8(every[5]),
        start_ns=f64(every[0] - t0),
        duration_ns=f64(every[1]),
    )


def _hits_of_slices(place: Placed, rows: Ints) -> Ints:
    """start_ns, duration_ns, track, level, row, whether it is an instant."""
    slices = place.trace.slices
    return np.stack(
        (
            slices.start_ns[rows].astype(np.int64) + place.zero_ns,
            slices.duration_ns[rows].astype(np.int64),
            slices.track[rows].astype(np.int64),
            slices.level[rows].astype(np.int64),
            rows.astype(np.int64),
            np.zeros(len(rows), np.int64),
        )
    )


def _hits_of_instants(place: Placed, rows: Ints) -> Ints:
    """The same."""
    instants, none = place.trace.instants, np.zeros(len(rows), np.int64)
    time_ns = instants.time_ns[rows].astype(np.int64) + place.zero_ns
    track = instants.track[rows].astype(np.int64)
    return np.stack((time_ns, none, track, none, rows.astype(np.int64), none + 1))


def trace_range(places: Mapping[str, Placed], query: TracksQuery) -> TraceRangeResponse:
    """Sums by name.

    Raises:
        BadRequestError: no window is given.
        NotFoundError: a track is not there.
    """
    start, end = window_of(query)
    rows: dict[tuple[str, str], list[int]] = {}
    sources: list[str] = []
    number = 0
    for place, tracks in chosen_tracks(query, places):
        trace = place.trace
        found = totals(trace, tracks, place.own_ns(start), place.own_ns(end))
        number += int(found.count.sum())
        for values in zip(
            found.name.tolist(),
            found.category.tolist(),
            found.count.tolist(),
            found.total_ns.tolist(),
            found.self_ns.tolist(),
            found.max_ns.tolist(),
            found.longest.tolist(),
            strict=True,
        ):
            key = (trace.strings[values[0]], trace.strings[values[1]])
            known = rows.get(key)
            if known is None:
                rows[key] = [*values[2:], len(sources)]
                continue
            known[0] += values[2]
            known[1] += values[3]
            known[2] += values[4]
            if values[5] > known[3]:
                known[3:] = [values[5], values[6], len(sources)]
        sources.append(place.id)
    ordered = sorted(rows.items(), key=lambda item: -item[1][1])[:MAX_NAMES]
    columns = np.array([value for _, value in ordered], np.int64).reshape(-1, 6).T
    return TraceRangeResponse(
        num_slices=number,
        num_names=len(rows),
        names=tuple(name[:_MAX_TEXT] for (name, _), _ in ordered),
        categories=tuple(category[:_MAX_TEXT] for (_, category), _ in ordered),
        family=u8(
            [
                FAMILIES.index(family_of(category, name))
                for (name, category), _ in ordered
            ]
        ),
        families=FAMILIES,
        count=i32(columns[0]),
        total_ns=f64(columns[1]),
        self_ns=f64(columns[2]),
        max_ns=f64(columns[3]),
        source=u16(columns[5]),
        row=i32(columns[4]),
        sources=tuple(sources),
    )
