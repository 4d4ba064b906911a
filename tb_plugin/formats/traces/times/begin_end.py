"""Pairs of events that begin and end something become slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from tb_plugin.formats.traces.bytes.growing import Growing, Problems

    Columns: TypeAlias = dict[str, np.ndarray[Any, Any]]

_KEPT = ("track", "name", "category", "args")


def slices_of(edges: Growing, end_ns: int, problems: Problems) -> Columns | None:
    """The slices that begin and end events make; None without any.

    An end belongs to the last of its thread that began and has not ended, or, where
    events carry an id, to the one of that id. What never ended lasts until `end_ns`.
    """
    if not len(edges):
        return None
    columns = {name: edges.take(name) for name in edges.names()}
    order = np.lexsort(
        (columns["number"], columns["time_ns"], columns["pair"], columns["track"])
    )
    keys = zip(
        columns["track"][order].tolist(), columns["pair"][order].tolist(), strict=True
    )
    signs = columns["sign"][order].tolist()
    times = columns["time_ns"][order].tolist()
    numbers = columns["number"][order].tolist()
    begun: list[int] = []
    """Places of what has begun and not ended."""
    of: tuple[int, int] | None = None
    made: list[tuple[int, int]] = []
    unbegun, unended = 0, 0
    for place, key in enumerate(keys):
        if key != of:
            unended += len(begun)
            made += [(at, end_ns) for at in begun]
            begun, of = [], key
        if signs[place] > 0:
            begun.append(place)
        elif begun:
            made.append((begun.pop(), times[place]))
        else:
            unbegun += 1
            problems.note(
                "ends of what never began are not shown", 1, f"event {numbers[place]}"
            )
    unended += len(begun)
    made += [(at, end_ns) for at in begun]
    what = "slices that never ended are shown until the trace's end"
    problems.note(what, unended)
    made.sort()
    places = order[np.array([at for at, _ in made], np.int64)]
    ends = np.array([end for _, end in made], np.int64)
    found = {name: columns[name][places] for name in _KEPT}
    found["start_ns"] = columns["time_ns"][places]
    found["duration_ns"] = np.maximum(ends - found["start_ns"], 0)
    return found
