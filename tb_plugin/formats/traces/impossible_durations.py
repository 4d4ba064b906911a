"""Durations of device work that cannot be true are left out.

Profilers have written some (the end of a kernel lost, or a counter run over): one kernel of
seconds in a trace of milliseconds then is all that is seen. The times of a trace contradict
a duration where

- works of other launches on the same stream begin and end within it, all far shorter: a
  stream runs one after the other. Collectives may share a queue with other streams, and a
  graph's works a stream.
- it reaches far beyond the end of the profiler's own span, or of all that the host did: a
  profiler writes only what ended before it stopped, and waits for the devices first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.kernel_names.kinds import communicates

if TYPE_CHECKING:
    import numpy.typing as npt

    from memboard.tb_plugin.formats.traces.columns.details import Growing
    from memboard.tb_plugin.formats.traces.columns.gathering import Gathering

    Ints: TypeAlias = npt.NDArray[Any]
    Columns: TypeAlias = dict[str, Any]

_TIMES_LONGER: Final = 100
"""Than what contradicts it: less may be clocks that are read at different moments."""
_SHORTEST_NS: Final = 1_000_000
_SHORTEST_BEYOND_NS: Final = 1_000_000_000
_MOST_HELD: Final = 64
"""Later works of a stream that are looked at for each."""
_PROFILER: Final = "Trace"
"""Category of the profiler's own span."""


def without_impossible(slices: Columns, gathered: Gathering) -> Columns:
    """The slices; those of impossible durations become points, and a problem names them."""
    work = gathered.tables["device_work"]
    if not len(work):
        return slices
    rows = work.peek("slice")
    has_inner = _holds_others(slices, rows, work)
    beyond = _reaches_beyond(slices, rows, gathered)
    names = gathered.texts.all
    is_collective = np.zeros(len(rows), np.bool_)
    for place in np.flatnonzero(has_inner & ~beyond).tolist():
        slice_name = names[int(slices["name"][rows[place]])]
        is_collective[place] = communicates(slice_name)
    wrong = rows[beyond | (has_inner & ~is_collective)]
    duration = slices["duration_ns"].copy()
    for row in wrong.tolist():
        slice_name = names[int(slices["name"][row])]
        number = int(slices["args"][row])
        gathered.problems.note_impossible(slice_name, number, duration[row] / 1e9)
    duration[wrong] = 0
    return {**slices, "duration_ns": duration}


def _holds_others(slices: Columns, rows: Ints, work: Growing) -> Ints:
    """(works,) flags: whether much shorter works of its stream lie whole within each."""
    start = slices["start_ns"][rows]
    end = start + slices["duration_ns"][rows]
    correlation = work.peek("correlation")
    order = np.lexsort((start, work.peek("stream"), work.peek("device")))
    lane = np.stack((work.peek("device"), work.peek("stream")))[:, order]
    contains = np.zeros(len(rows), np.bool_)
    same = np.append((lane[:, 1:] == lane[:, :-1]).all(axis=0), [False])
    start, end, correlation = start[order], end[order], correlation[order]
    overlaps = same & (np.append(start[1:], [0]) < end)
    overlaps &= end - start >= _SHORTEST_NS
    lane_ends = np.append(np.flatnonzero(~same), [len(order)])
    for row in np.flatnonzero(overlaps).tolist():
        lane_end = int(lane_ends[np.searchsorted(lane_ends, row)]) + 1
        later = slice(row + 1, min(row + 1 + _MOST_HELD, lane_end))
        others = (correlation[later] != correlation[row]) | (correlation[later] <= 0)
        inside = others & (end[later] <= end[row])
        if not inside.any():
            continue
        usual = float(np.median((end[later] - start[later])[inside]))
        contains[order[row]] = end[row] - start[row] >= _TIMES_LONGER * usual
    return contains


def _reaches_beyond(slices: Columns, rows: Ints, gathered: Gathering) -> Ints:
    """(works,) flags: whether each ends long after the profiler stopped."""
    start, duration = slices["start_ns"], slices["duration_ns"]
    ends = start[rows] + duration[rows]
    of_host = np.ones(len(start), np.bool_)
    of_host[rows] = False
    spans = of_host & (slices["category"] == gathered.texts.get(_PROFILER, -1))
    if not spans.any():
        spans = of_host if len(gathered.tables["launches"]) else spans
    if not spans.any():
        return np.zeros(len(rows), np.bool_)
    first = int(start[spans].min())
    last = max(int((start + duration)[spans].max()), int(start[rows].max()))
    least = max(_TIMES_LONGER * (last - first), _SHORTEST_BEYOND_NS)
    reaches_beyond: Ints = ends - last >= least
    return reaches_beyond
