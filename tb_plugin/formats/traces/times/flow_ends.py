"""Points of flows become arrows between slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.trace.build import Placed
    from tb_plugin.formats.traces.bytes.growing import Growing

    Ints: TypeAlias = npt.NDArray[Any]

_START, _STEP, _END = 0, 1, 2


def arrows_of(flows: Growing, track_of: Ints, placed: Placed) -> dict[str, Ints]:
    """The columns of `trace.Flows`.

    Each step and end of a flow is reached from the last point of it before; an end that
    comes before every start, as clocks of hosts and devices differ, from the first.

    Args:
        flows: what was gathered.
        track_of: the track by the number that was gathered.
        placed: the slices.
    """
    columns = {
        name: flows.take(name)
        for name in ("step", "track", "time_ns", "category", "id")
    }
    leaves = np.flatnonzero(columns["step"] != _END)
    arrives = np.flatnonzero(columns["step"] != _START)
    point = np.concatenate((arrives, leaves))
    is_leaving = np.concatenate(
        (np.zeros(len(arrives), np.bool_), np.ones(len(leaves), np.bool_))
    )
    # A start comes before what it reaches at the same time; a step arrives before it
    # leaves.
    rank = np.where(columns["step"][point] == _START, 0, 1 + is_leaving)
    order = np.lexsort(
        (
            rank,
            columns["time_ns"][point],
            columns["id"][point],
            columns["category"][point],
        )
    )
    point, is_leaving = point[order], is_leaving[order]
    place = np.arange(len(point))
    group = np.concatenate(
        (
            [0],
            np.cumsum(
                (np.diff(columns["category"][point]) != 0)
                | (np.diff(columns["id"][point]) != 0)
            ),
        )
    )[: len(point)]
    before = np.maximum.accumulate(np.where(is_leaving, place, -1))
    after = np.minimum.accumulate(np.where(is_leaving, place, len(point))[::-1])[::-1]
    ends = np.flatnonzero(~is_leaving)
    source = before[ends]
    ok = (source >= 0) & (group[source] == group[ends])
    late = np.minimum(after[ends], max(len(point) - 1, 0))
    ok_late = ~ok & (after[ends] < len(point)) & (group[late] == group[ends])
    source = np.where(ok, source, np.where(ok_late, late, -1))
    found = source >= 0
    start, stop = point[source[found]], point[ends[found]]
    track = track_of[columns["track"]]
    rows = rows_at(placed, track, columns["time_ns"])
    made = {
        "category": columns["category"][start],
        "from_row": rows[start],
        "to_row": rows[stop],
        "from_track": track[start],
        "to_track": track[stop],
        "from_ns": columns["time_ns"][start],
        "to_ns": columns["time_ns"][stop],
    }
    order = np.argsort(made["from_ns"], kind="stable")
    return {name: column[order] for name, column in made.items()}


def rows_at(placed: Placed, track: Ints, time_ns: Ints) -> Ints:
    """The innermost slice of each track at a time; -1 where there is none."""
    slices = placed.slices
    found = np.full(len(track), -1, np.int64)
    for index in np.unique(track[track >= 0]).tolist():
        known = placed.tracks[index]
        if not known.num_slices:
            continue
        first = known.first_row
        rows = slice(first, first + known.num_slices)
        starts = slices.start_ns[rows]
        order = np.argsort(starts, kind="stable")
        asked = np.flatnonzero(track == index)
        at = np.searchsorted(starts[order], time_ns[asked], "right") - 1
        row = np.where(at >= 0, order[np.maximum(at, 0)] + first, -1)
        open_ = row >= 0
        while open_.any():
            ends = slices.start_ns[row[open_]] + slices.duration_ns[row[open_]]
            past = ends < time_ns[asked[open_]]
            moved = np.flatnonzero(open_)[past]
            row[moved] = slices.parent[row[moved]]
            open_ = np.zeros(len(row), np.bool_)
            open_[moved] = row[moved] >= 0
        found[asked] = row
    return found
