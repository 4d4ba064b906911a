"""Everything that was gathered of a trace becomes the tables of a column file.

`stored` makes a `Trace` of them again.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.trace.build import PlacedSlices, place
from memboard.tb_plugin.formats.traces.ascend import with_work_of_npus
from memboard.tb_plugin.formats.traces.columns.times import arrows_of, slices_of
from memboard.tb_plugin.formats.traces.columns.track_names import tracks_of
from memboard.tb_plugin.formats.traces.columns.work_links import link_work
from memboard.tb_plugin.formats.traces.impossible_times import without_impossible
from memboard.tb_plugin.formats.traces.recorder import without_recorder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.trace.trace import Track
    from memboard.tb_plugin.formats.traces.columns.details import Growing
    from memboard.tb_plugin.formats.traces.columns.gathering import Gathering

    Ints: TypeAlias = npt.NDArray[Any]
    Columns: TypeAlias = dict[str, Any]

_SLICES: Final = ("track", "start_ns", "duration_ns", "name", "category", "args")
_WALL_CLOCK_NS: Final = 10**18
"""September 2001: times after it count from 1970."""
MAX_LEVELS: Final = 2_048
"""Of one thread. Pages draw, and analyses walk, level by level."""
_MOST_NS: Final = 4 * 10**18
_NO_PROCESS: Final = frozenset({"Spans", "Traces", ""})


def tables_of(
    gathered: Gathering, chunks: Columns, facts: dict[str, Any], base_ns: int | None
) -> tuple[dict[str, Columns], dict[str, Any]]:
    """Tables, and what is written with them.

    Args:
        gathered: everything; empty afterwards.
        chunks: where the events lie in the file, for `args`.
        facts: what `top_level.facts_of` gives.
        base_ns: `baseTimeNanoseconds`, if there is one.
    """
    slices = {name: gathered.slices.take(name) for name in _SLICES}
    slices = with_work_of_npus(slices, gathered)
    slices = _with_pairs(without_impossible(slices, gathered), gathered)
    zero = _zero(slices, gathered)
    slices["start_ns"] -= zero
    tracks, place_of = tracks_of(
        gathered,
        slices["track"],
        slices["category"],
        _used(gathered, slices["track"]),
        _work(gathered, slices["track"]),
        int(facts["rank"]),
    )
    slices["track"] = place_of[slices["track"]]
    slices, placed = _placed(tracks, slices, gathered)
    other = without_recorder(slices, placed, gathered, facts.get("metadata", {}))
    if other is not None:
        _, placed = _placed(tracks, other, gathered)
    del slices, other
    tables: dict[str, Columns] = {
        "tracks": _track_table(placed),
        "slices": _columns_of(placed.slices),
        "chunks": chunks,
    }
    for name, growing in gathered.tables.items():
        tables[name] = _detail_table(growing, placed.row_of)
    tables["instants"] = _timed(gathered.instants, place_of, zero)
    tables["memory"] = _memory(gathered.memory, place_of, zero)
    tables["series"], tables["points"] = _counters(gathered, place_of, zero)
    if len(gathered.flows):
        times = gathered.flows.take("time_ns") - zero
        gathered.flows.add({"time_ns": times})
        tables["flows"] = arrows_of(gathered.flows, place_of, placed)
        link_work(tables, gathered.texts.all)
    tables["strings"] = {"text": tuple(gathered.texts.all)}
    tables["about"] = _about(facts)
    base, has_wall_clock = _base(base_ns, zero)
    meta = {
        "base_ns": base,
        "has_wall_clock": has_wall_clock,
        "window": _window(placed, tables),
        "resolution_ns": _resolution(placed, zero),
        "num_overlapping": placed.num_overlapping,
        "num_events": dict(gathered.num_events.most_common(4096)),
        "problems": [
            {
                "what": sentence,
                "count": count,
                "where": gathered.problems.first[sentence],
                "event": gathered.problems.events.get(sentence, NOTHING),
                "is_usual": sentence in gathered.problems.usual,
            }
            for sentence, count in gathered.problems.counts.items()
        ][:256],
    }
    return tables, meta


def _placed(
    tracks: Sequence[Track], slices: Columns, gathered: Gathering
) -> tuple[Columns, PlacedSlices]:
    """The slices that are not deeper than any program's, and where they belong."""
    placed = place(tracks, **slices)
    shown = placed.slices.level[placed.row_of] < MAX_LEVELS
    if shown.all():
        return slices, placed
    sentence = f"slices beyond {MAX_LEVELS:,} levels are not shown"
    gathered.problems.note(sentence, int(np.count_nonzero(~shown)))
    gathered.keep_details(shown)
    slices = {name: column[shown] for name, column in slices.items()}
    return slices, place(tracks, **slices)


def _with_pairs(slices: Columns, gathered: Gathering) -> Columns:
    """The slices, and those of events that begin and end them."""
    if not len(gathered.edges):
        return slices
    ends = slices["start_ns"] + slices["duration_ns"]
    last = int(ends.max()) if len(ends) else -_MOST_NS
    last = max(last, int(gathered.edges.peek("time_ns").max()))
    pairs = slices_of(gathered.edges, last, gathered.problems)
    if pairs is None:
        return slices
    return {name: np.concatenate((slices[name], pairs[name])) for name in _SLICES}


def _zero(slices: Columns, gathered: Gathering) -> int:
    """The time that becomes 0: that of the first slice, or of what there is."""
    if len(slices["start_ns"]):
        return int(slices["start_ns"].min())
    firsts = [
        int(table.peek("time_ns").min())
        for table in (gathered.memory, gathered.instants)
        if len(table)
    ]
    firsts += [min(times) for times, _ in gathered.points.values()]
    return min(firsts, default=0)


def _used(gathered: Gathering, track: Ints) -> Ints:
    """(gathered tracks,) flags: whether there is anything on each."""
    used = np.zeros(len(gathered.tracks.ids), np.bool_)
    used[track] = True
    for table in (gathered.instants, gathered.memory):
        if len(table):
            used[table.peek("track")] = True
    for number, _, _ in gathered.points:
        used[number] = True
    return used


def _work(gathered: Gathering, track: Ints) -> dict[int, tuple[int, int]]:
    """By gathered track: device and stream of the first that ran there."""
    work = gathered.tables["device_work"]
    if not len(work):
        return {}
    tracks_of_work, first = np.unique(track[work.peek("slice")], return_index=True)
    device, stream = work.peek("device")[first], work.peek("stream")[first]
    rows = zip(tracks_of_work.tolist(), device.tolist(), stream.tolist(), strict=True)
    return {number: (device, stream) for number, device, stream in rows}


def _track_table(placed: PlacedSlices) -> Columns:
    tracks = placed.tracks
    texts = ("name", "process", "kind", "pid", "tid")
    numbers = ("rank", "device", "stream", "sort_index", "first_row", "num_slices")
    table: Columns = {
        name: tuple(str(getattr(track, name)) for track in tracks) for name in texts
    }
    for name in numbers:
        table[name] = np.array([getattr(track, name) for track in tracks], np.int64)
    table["num_levels"] = np.array([track.num_levels for track in tracks], np.int64)
    return table


def _columns_of(table: Any) -> Columns:
    return {column.name: getattr(table, column.name) for column in fields(table)}


def _detail_table(growing: Growing, row_of: Ints) -> Columns:
    """The columns by the rows of slices, ascending."""
    rows = row_of[growing.take("slice", np.int32)]
    order = np.argsort(rows, kind="stable")
    table: Columns = {"row": rows[order]}
    for name in growing.names():
        table[name] = growing.take(name)[order]
    return table


def _timed(growing: Growing, place_of: Ints, zero: int) -> Columns:
    """Instants by track and time."""
    if not len(growing):
        return {}
    track = place_of[growing.take("track")]
    time_ns = growing.take("time_ns") - zero
    order = np.lexsort((time_ns, track))
    table = {"track": track[order], "time_ns": time_ns[order]}
    for name in ("name", "category", "args"):
        table[name] = growing.take(name)[order]
    return table


def _memory(growing: Growing, place_of: Ints, zero: int) -> Columns:
    if not len(growing):
        return {}
    time_ns = growing.take("time_ns") - zero
    order = np.argsort(time_ns, kind="stable")
    table = {"time_ns": time_ns[order], "track": place_of[growing.take("track")][order]}
    for name in growing.names():
        table[name] = growing.take(name)[order]
    return table


def _counters(
    gathered: Gathering, place_of: Ints, zero: int
) -> tuple[Columns, Columns]:
    """The series, and the points of all of them."""
    keys = sorted(gathered.points, key=lambda key: (int(place_of[key[0]]), key[2]))
    times, values = [], []
    for key in keys:
        of_series = gathered.points.pop(key)
        time_ns = np.array(of_series[0], np.int64) - zero
        order = np.argsort(time_ns, kind="stable")
        times.append(time_ns[order])
        values.append(np.array(of_series[1], np.float64)[order])
    if not keys:
        return {}, {}
    series = {
        "track": np.array([place_of[key[0]] for key in keys], np.int64),
        "name": tuple(key[2] for key in keys),
        "num_points": np.array([len(points) for points in times], np.int64),
    }
    return series, {"time_ns": np.concatenate(times), "value": np.concatenate(values)}


def _about(facts: Mapping[str, Any]) -> Columns:
    """What the trace says of itself, as JSON by name."""
    return {
        "name": tuple(facts),
        "json": tuple(json.dumps(value) for value in facts.values()),
    }


def _base(base_ns: int | None, zero: int) -> tuple[int, bool]:
    """When time 0 is, and whether that is a time of the wall clock."""
    if base_ns is not None and abs(zero) < _WALL_CLOCK_NS and base_ns + zero < _MOST_NS:
        return base_ns + zero, base_ns >= _WALL_CLOCK_NS
    return zero, _WALL_CLOCK_NS <= zero < _MOST_NS


def _window(placed: PlacedSlices, tables: Mapping[str, Columns]) -> tuple[int, int]:
    """From the first to the last that is worth showing.

    What the profiler notes of itself reaches hours beyond in some traces.
    """
    slices = placed.slices
    own = np.array([track.pid in _NO_PROCESS for track in placed.tracks], np.bool_)
    shown = ~own[slices.track] if len(own) else np.zeros(0, np.bool_)
    times = []
    if shown.any():
        start = slices.start_ns[shown]
        times += [int(start.min()), int((start + slices.duration_ns[shown]).max())]
    for name in ("points", "memory"):
        column = tables[name].get("time_ns")
        if column is not None and len(column):
            times += [int(column.min()), int(column.max())]
    if not times:
        for columns, starts in (
            (_columns_of(slices), "start_ns"),
            (tables["instants"], "time_ns"),
        ):
            column = columns.get(starts)
            if column is not None and len(column):
                times += [int(column.min()), int(column.max())]
        if len(slices):
            times.append(int((slices.start_ns + slices.duration_ns).max()))
    return min(times, default=0), max(times, default=0)


def _resolution(placed: PlacedSlices, zero: int) -> int:
    """1,000 where all times are whole microseconds, else 1."""
    slices = placed.slices
    whole = not (
        ((slices.start_ns + zero) % 1000).any() or (slices.duration_ns % 1000).any()
    )
    return 1000 if whole and len(slices) else 1
