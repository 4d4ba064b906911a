"""Route `/trace`: which sources a run's timeline has, and the tracks of those open."""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec.structs import replace

from memboard.collector.format.sizes import counted, part_of
from memboard.tb_plugin.analysis.findings.text import duration_text, size_text
from memboard.tb_plugin.analysis.trace.timeline.counters import (
    DEVICE_USE,
    MEMORY,
    value_range,
)
from memboard.tb_plugin.analysis.trace.timeline.instants import rows_of_track
from memboard.tb_plugin.analysis.trace.trace import CAPTURED
from memboard.tb_plugin.api.base import f64, i32, i32_clipped
from memboard.tb_plugin.api.time.trace import (
    TraceChoice,
    TraceClock,
    TraceResponse,
    TraceSource,
    TraceSteps,
    TraceTrack,
)
from memboard.tb_plugin.facts.traces.axis import COUNTERS, run_clocks
from memboard.tb_plugin.facts.traces.timeline.counters import RankCounters
from memboard.tb_plugin.facts.traces.timeline.focus import focus_of
from memboard.tb_plugin.facts.traces.timeline.interest import of_interest
from memboard.tb_plugin.facts.traces.timeline.sources import (
    DEFAULT_RANKS,
    ShownSources,
    TraceQuery,
    choose,
    first_ranks,
    rank_of,
)
from memboard.tb_plugin.server.routes import RouteRequest, route

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memboard.tb_plugin.analysis.series.rows import Rows
    from memboard.tb_plugin.analysis.trace.trace import Trace, Track
    from memboard.tb_plugin.api.base import Problem, Unit
    from memboard.tb_plugin.facts.traces.axis import PlacedSource
    from memboard.tb_plugin.facts.traces.timeline.interest import Interest
    from memboard.tb_plugin.jobs.trace_sources import FoundSource, TraceJob
    from memboard.tb_plugin.server.state import State

    Counters: TypeAlias = Sequence[tuple[int, int, Sequence[tuple[TraceTrack, Rows]]]]
    """By rank, with the offset of its clock: tracks and their rows."""

OPEN_SECONDS: Final = 0.5
"""Longest wait of an answer for sources that are being opened."""
MAX_CHOICES: Final = 2_000
MAX_TEXT: Final = 500
_MAX_NOTES: Final = 20


@route("trace", TraceQuery)
def trace(asked: RouteRequest[TraceQuery]) -> TraceResponse:
    """Sources and tracks; what is shown begins to be opened."""
    state, query, traces = asked.state, asked.query, asked.state.traces
    listed = traces.listed(query.run, fresh=True)
    first: Sequence[Interest] = ()
    is_known = True
    if query.is_open:
        pinned = list(islice(query.pinned, DEFAULT_RANKS))
        first, is_known = of_interest(state, query.run, listed, pinned)
    ranks = [source.rank for source in first]
    chosen = choose(listed.sources, query, ranks)
    still_reading = listed.still_reading or not is_known
    run = state.store.run(query.run)
    traces.sources.show(len(chosen.sources))
    openings = [traces.sources.open(query.run, source) for source in chosen.sources]
    until = time.monotonic() + OPEN_SECONDS
    for opening in openings:
        opening.wait(max(0.0, until - time.monotonic()))
    with run.lock:
        summary, version = state.summary(run), run.version
        states = [
            (opening.state, opening.progress, opening.doing) for opening in openings
        ]
        asked.decided_by(version, listed.keys, states, still_reading, ranks)
        if not chosen.ranks:
            # Without traces and spans the run's own numbers are shown.
            own = first_ranks([rank for rank in run.ranks if query.wants(rank)], ranks)
            chosen = ShownSources(chosen.sources, tuple(own), len(run.ranks))
        clocks = run_clocks(run)
        counters = [
            (rank, clocks.offset_ns(rank), list(of.tracks(0)))
            for rank in chosen.ranks
            if rank >= 0
            for of in (RankCounters(state.store.series, run, rank),)
        ]
        places = traces.placed(query.run, chosen.sources, clocks, summary)
        base, end = _extent(places, counters)
        sources, tracks = _shown(openings, places, counters, base)
    order = {rank: index for index, rank in enumerate(chosen.ranks)}
    tracks.sort(
        key=lambda track: order.get(
            -1 if track.rank is None else track.rank, len(order)
        )
    )
    shown = {source.id for source in chosen.sources}
    steps = _steps(places, base)
    shown_ranks = tuple(rank for rank in chosen.ranks if rank >= 0)
    parts = [
        *_amounts(tracks),
        part_of(len(shown_ranks), chosen.num_ranks, "rank"),
        f"{duration_text((end - base) / 1e9)} long",
        counted(len(steps.number), "step"),
    ]
    return TraceResponse(
        run=summary,
        base_ns=str(base),
        end_ns=float(end - base),
        sources=tuple(sources),
        tracks=tuple(tracks),
        summary=f"{', '.join(part for part in parts if part[0] != '0')}.",
        steps=steps,
        focus=focus_of(places, base, query.step, first),
        choices=tuple(
            TraceChoice(
                source.id,
                source.kind,
                source.name[:MAX_TEXT],
                source.rank,
                source.cycle,
                float(source.num_bytes),
                source.id in shown,
            )
            for source in listed.sources[:MAX_CHOICES]
        ),
        num_ranks=chosen.num_ranks,
        shown_ranks=shown_ranks,
        problems=(*listed.problems, *_left_out(state, openings)),
        still_reading=still_reading,
        perfetto="local" if state.has_perfetto() else "hosted",
    )


def _left_out(state: State, openings: Sequence[TraceJob]) -> Iterator[Problem]:
    """What is wrong with the traces that are open."""
    for opening in openings:
        if opening.result is not None:
            yield from state.traces.sources.problems_of(opening.found, opening.result)


def _amounts(tracks: Sequence[TraceTrack]) -> Iterator[str]:
    counters = sum(track.kind == "counter" for track in tracks)
    slices = counted(sum(track.num_slices for track in tracks), "slice")
    yield f"{slices} on {counted(len(tracks) - counters, 'track')}"
    yield counted(sum(track.num_instants for track in tracks), "instant")
    yield counted(counters, "counter")


def _shown(
    openings: Sequence[TraceJob],
    places: Sequence[PlacedSource],
    counters: Counters,
    base: int,
) -> tuple[list[TraceSource], list[TraceTrack]]:
    """Sources in their order, those of counters last, and the tracks of those open."""
    by_id = {place.id: place for place in places}
    sources = [
        _source(opening, by_id.get(opening.found.id), base) for opening in openings
    ]
    tracks = [
        _track(index, number, place.trace.tracks[number], place)
        for index, opening in enumerate(openings)
        if (place := by_id.get(opening.found.id)) is not None
        for number in _in_order(place.trace.tracks)
        if _is_listed(place.trace, number)
    ]
    for rank, offset, series_rows in counters:
        if series_rows:
            source_index = len(sources)
            sources.append(
                _counter_source(rank, offset, [r for _, r in series_rows], base)
            )
            tracks += [replace(track, source=source_index) for track, _ in series_rows]
    return sources, tracks


def _in_order(tracks: Sequence[Track]) -> list[int]:
    """Indices of tracks; what graphs captured comes below the streams that replay it."""
    streams = {
        track.device: index
        for index, track in enumerate(tracks)
        if track.kind == "device" and track.process != CAPTURED
    }

    def place(index: int) -> tuple[int, bool]:
        track = tracks[index]
        is_captured = track.process == CAPTURED
        return streams.get(track.device, index) if is_captured else index, is_captured

    return sorted(range(len(tracks)), key=place)


def _extent(places: Sequence[PlacedSource], counters: Counters) -> tuple[int, int]:
    """First and last time of what is shown; numbers count where nothing else is."""
    if places:
        return (
            min(place.zero_ns + place.trace.start_ns for place in places),
            max(place.zero_ns + place.trace.end_ns for place in places),
        )
    rows = [
        (row, offset) for _, offset, series_rows in counters for _, row in series_rows
    ]
    if not rows:
        return 0, 0
    return (
        min(int(float(row.first[0]) * 1e6) + offset for row, offset in rows),
        max(int(float(row.last.max()) * 1e6) + offset for row, offset in rows),
    )


def _source(opening: TraceJob, place: PlacedSource | None, base: int) -> TraceSource:
    source = opening.found
    of_trace: dict[str, Any] = {"state": opening.state}
    if place is not None:
        # What is shown meanwhile may be an older one, which is ready.
        of_trace = {
            "num_slices": len(place.trace.slices),
            "start_ns": float(place.zero_ns + place.trace.start_ns - base),
            "end_ns": float(place.zero_ns + place.trace.end_ns - base),
            "clock": place.clock,
            "notes": _notes(place.trace),
            "facts": tuple(_facts(len(place.trace.slices), source, place.clock)),
        }
    return TraceSource(
        id=source.id,
        kind=source.kind,
        name=source.name[:MAX_TEXT],
        title=("" if source.rank is None else f"rank {source.rank}: ")
        + ("spans" if source.kind == "spans" else source.name[:MAX_TEXT]),
        rank=source.rank,
        cycle=source.cycle,
        progress=opening.progress,
        doing=opening.doing,
        problem=opening.problem,
        num_bytes=float(source.num_bytes),
        has_file=source.path is not None,
        **of_trace,
    )


def _facts(num_slices: int, source: FoundSource, clock: TraceClock) -> Iterator[str]:
    yield counted(num_slices, "slice")
    if source.num_bytes:
        yield size_text(source.num_bytes)
    offset_ns, error_ns = clock.offset_ns, clock.error_ns
    if clock.method == "none":
        yield "no wall clock: placed where the others begin"
    elif clock.method == "reference":
        yield "the clock that the others are compared with"
    else:
        moved = f"clock moved by {duration_text(offset_ns / 1e9)}"
        error = "error not known"
        if error_ns is not None:
            error = f"at most {duration_text(error_ns / 1e9)} off ({clock.method})"
        yield f"{moved if offset_ns else 'clock not moved'}, {error}"


def _notes(trace: Trace) -> tuple[str, ...]:
    return tuple(
        f"{problem.what}{f' ({problem.count:,})' if problem.count > 1 else ''}"
        f"{f', first at {problem.where}' if problem.where else ''}"[:MAX_TEXT]
        for problem in trace.problems[:_MAX_NOTES]
    )


def _track(source: int, index: int, track: Track, place: PlacedSource) -> TraceTrack:
    trace = place.trace
    is_counter = track.kind == "counter"
    lowest, highest = value_range(trace, index) if is_counter else (None, None)
    return TraceTrack(
        source=source,
        index=index,
        key=place.track_of(index),
        name=track.name[:MAX_TEXT],
        process=track.process[:MAX_TEXT],
        kind=track.kind,
        rank=place.source.found.rank,
        device=track.device if track.device >= 0 else None,
        stream=track.stream if track.stream >= 0 else None,
        num_slices=track.num_slices,
        num_levels=track.num_levels if track.num_slices else 0,
        num_instants=_num_instants(trace, index),
        unit=_UNITS.get(track.process) if is_counter else None,
        most=highest,
        least=lowest,
    )


def _is_listed(trace: Trace, index: int) -> bool:
    """Whether anything of a track can be drawn.

    Instants of no process are the profiler's own mark of where its window ended, which
    may lie far behind the last slice.
    """
    track = trace.tracks[index]
    has_any = track.num_slices or track.kind == "counter"
    return bool(has_any or (track.process and _num_instants(trace, index)))


_UNITS: Final[dict[str, Unit]] = {MEMORY: "bytes", DEVICE_USE: "percent"}
"""Of counters, by what their process is called."""


def _num_instants(trace: Trace, track: int) -> int:
    first, stop = rows_of_track(trace.instants, track)
    return stop - first


def _counter_source(
    rank: int, offset: int, rows: Sequence[Rows], base: int
) -> TraceSource:
    first = min(float(row.first[0]) for row in rows) * 1e6 + offset - base
    last = max(float(row.last.max()) for row in rows) * 1e6 + offset - base
    return TraceSource(
        id=f"{COUNTERS}{rank}",
        kind="counters",
        name="memory and host",
        title=f"rank {rank}: memory and host",
        rank=rank,
        start_ns=first,
        end_ns=last,
        clock=TraceClock("wall", float(offset), None),
    )


def _steps(places: Sequence[PlacedSource], base: int) -> TraceSteps:
    """Of the first rank that names any: its profiler's, which are few, else its spans'."""
    with_steps = [place for place in places if len(place.source.steps.number)]
    if not with_steps:
        return TraceSteps(i32([]), f64([]), f64([]))
    rank = rank_of(with_steps[0].source.found)
    own = [
        with_step for with_step in with_steps if rank_of(with_step.source.found) == rank
    ]
    # Spans have every step, the profiler's file only those it traced.
    place = next((p for p in own if p.source.found.kind == "spans"), own[0])
    steps, shift = place.source.steps, place.zero_ns - base
    return TraceSteps(
        number=i32_clipped(steps.number),
        start_ns=f64(steps.start_ns + shift),
        end_ns=f64(steps.end_ns + shift),
    )
