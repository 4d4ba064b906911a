"""Times that cannot be true are left out of all sums.

Profilers have written some (the end of a kernel lost, a counter run over, a time that was
never set): one kernel of seconds in a trace of milliseconds then is all that is seen. The
times of a trace contradict a **duration** of device work where

- works of other launches on the same stream begin and end within it, all far shorter: a
  stream runs one after the other. Collectives may share a queue with other streams, a
  graph's works a stream, and AMD's queues are shared by streams.
- it goes on after a call returned that was made after its launch and waited for the device.
- it reaches far beyond the end of the profiler's own span, or of all that the host did: a
  profiler writes only what ended before it stopped, and waits for the devices first.

They contradict the **begin** of any slice that is 0 while all others begin far later, or
lies more than `_FARTHEST_NS` from most of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, places_in
from memboard.tb_plugin.analysis.kernel_names.kinds import communicates

if TYPE_CHECKING:
    import numpy.typing as npt

    from memboard.tb_plugin.formats.traces.columns.gathering import Gathering

    Flags: TypeAlias = npt.NDArray[np.bool_]
    Ints: TypeAlias = npt.NDArray[Any]
    Columns: TypeAlias = dict[str, Any]

_TIMES_LONGER: Final = 100
"""Than what contradicts it: less may be clocks that are read at different moments."""
_TIMES_LONGER_CUDA: Final = 10
"""Likewise where works of one stream never lie over each other."""
_SHORTEST_NS: Final = 1_000_000
_SHORTEST_CUDA_NS: Final = 100_000
_SHORTEST_BEYOND_NS: Final = 1_000_000_000
_FARTHEST_NS: Final = 24 * 3_600 * 1_000_000_000
_FEW: Final = 0.1
"""Of all slices: more that begin elsewhere are no mistakes of some."""
_LEAST_OTHERS: Final = 8
"""That begin elsewhere than at 0: of fewer any may be the mistake."""
_FOR_DEVICE: Final = re.compile(r"(?:cuda|hip)DeviceSynchronize\w*|cuCtxSynchronize\w*")
_MOST_HELD: Final = 64
"""Later works of a stream that are looked at for each."""
_PROFILER: Final = "Trace"
"""Category of the profiler's own span."""
_SUMMED: Final = ("device_work", "collectives")


def without_impossible(slices: Columns, gathered: Gathering) -> Columns:
    """The slices; impossible ones become points outside all sums, and problems name them."""
    duration = slices["duration_ns"].copy()
    odd = _begins_elsewhere(slices["start_ns"])
    if odd.any():
        for row in np.flatnonzero(odd).tolist():
            gathered.problems.note_impossible_begin(*_named(slices, gathered, row))
        first = slices["start_ns"][~odd].min()
        start = np.where(odd, first, slices["start_ns"])
        duration[odd] = 0
        slices = {**slices, "start_ns": start, "duration_ns": duration}
    wrong = _impossible_work(slices, gathered)
    for row in wrong.tolist():
        seconds = duration[row] / 1e9
        gathered.problems.note_impossible(*_named(slices, gathered, row), seconds)
    duration[wrong] = 0
    odd[wrong] = True
    odd |= np.isin(slices["args"], gathered.problems.impossible)
    _leave_out(gathered, odd)
    return {**slices, "duration_ns": duration}


def _named(slices: Columns, gathered: Gathering, row: int) -> tuple[str, int]:
    return gathered.texts.all[int(slices["name"][row])], int(slices["args"][row])


def _leave_out(gathered: Gathering, odd: Flags) -> None:
    """Take what cannot be true out of the tables that sums are made of."""
    if not odd.any():
        return
    for table_name in _SUMMED:
        table = gathered.tables[table_name]
        if len(table):
            kept = ~odd[table.peek("slice")]
            for name in table.names():
                table.put(name, table.take(name)[kept])


def _begins_elsewhere(start: Ints) -> Flags:
    """(slices,) flags: whether each begins at 0, or days away, unlike most others."""
    odd = np.zeros(len(start), np.bool_)
    if not len(start) or int(start.max()) - int(start.min()) < _SHORTEST_BEYOND_NS:
        return odd
    few = _FEW * len(start)
    at_zero = start == 0
    others = start[~at_zero]
    away = np.abs(start - np.median(others)) > _FARTHEST_NS if len(others) else odd
    if np.count_nonzero(away & ~at_zero) <= few:
        odd |= away & ~at_zero
    others = start[~at_zero & ~odd]
    if at_zero.any() and len(others) >= max(few, _LEAST_OTHERS):
        span = int(others.max() - others.min())
        far = max(_TIMES_LONGER * span, _SHORTEST_BEYOND_NS)
        odd |= at_zero & (int(others.min()) > far)
    return odd


def _impossible_work(slices: Columns, gathered: Gathering) -> Ints:
    """Slices of device work whose durations are contradicted."""
    work = gathered.tables["device_work"]
    if not len(work):
        return np.empty(0, np.int64)
    rows = work.peek("slice")
    has_inner = _holds_others(slices, rows, gathered)
    beyond = _reaches_beyond(slices, rows, gathered)
    beyond |= _outlasts_waiting(slices, rows, gathered)
    names = gathered.texts.all
    for place in np.flatnonzero(has_inner & ~beyond).tolist():
        has_inner[place] = not communicates(names[int(slices["name"][rows[place]])])
    wrong: Ints = rows[beyond | has_inner]
    return wrong


def _holds_others(slices: Columns, rows: Ints, gathered: Gathering) -> Flags:
    """(works,) flags: whether much shorter works of its stream lie whole within each."""
    work = gathered.tables["device_work"]
    shortest_ns, times_longer = _SHORTEST_NS, _TIMES_LONGER
    if _is_cuda(slices, gathered):
        shortest_ns, times_longer = _SHORTEST_CUDA_NS, _TIMES_LONGER_CUDA
    start = slices["start_ns"][rows]
    end = start + slices["duration_ns"][rows]
    correlation = work.peek("correlation")
    order = np.lexsort((start, work.peek("stream"), work.peek("device")))
    lane = np.stack((work.peek("device"), work.peek("stream")))[:, order]
    contains = np.zeros(len(rows), np.bool_)
    same = np.append((lane[:, 1:] == lane[:, :-1]).all(axis=0), [False])
    start, end, correlation = start[order], end[order], correlation[order]
    overlaps = same & (np.append(start[1:], [0]) < end)
    overlaps &= end - start >= shortest_ns
    lane_ends = np.append(np.flatnonzero(~same), [len(order)])
    for row in np.flatnonzero(overlaps).tolist():
        lane_end = int(lane_ends[np.searchsorted(lane_ends, row)]) + 1
        later = slice(row + 1, min(row + 1 + _MOST_HELD, lane_end))
        others = (correlation[later] != correlation[row]) | (correlation[later] <= 0)
        inside = others & (end[later] <= end[row])
        if not inside.any():
            continue
        usual = float(np.median((end[later] - start[later])[inside]))
        contains[order[row]] = end[row] - start[row] >= times_longer * usual
    return contains


def _is_cuda(slices: Columns, gathered: Gathering) -> bool:
    """Whether all work was launched by calls of CUDA."""
    launches = gathered.tables["launches"]
    if not len(launches):
        return False
    names = np.unique(slices["name"][launches.peek("slice")]).tolist()
    return all(gathered.texts.all[name].startswith("cu") for name in names)


def _outlasts_waiting(slices: Columns, rows: Ints, gathered: Gathering) -> Flags:
    """(works,) flags: whether a call that waited for each returned long before its end."""
    none = np.zeros(len(rows), np.bool_)
    launches, work = gathered.tables["launches"], gathered.tables["device_work"]
    # A call waits for one device, and the trace does not say for which.
    if not len(launches) or len(np.unique(work.peek("device"))) > 1:
        return none
    calls, correlation = launches.peek("slice"), launches.peek("correlation")
    start, end = slices["start_ns"], slices["start_ns"] + slices["duration_ns"]
    names = slices["name"][calls]
    waits = [
        name
        for name in np.unique(names).tolist()
        if _FOR_DEVICE.fullmatch(gathered.texts.all[name])
    ]
    waiting = calls[np.isin(names, waits)]
    if not len(waiting):
        return none
    waiting = waiting[np.argsort(start[waiting], kind="stable")]
    # What was launched before the wait began has ended when it, or a later one, returns.
    returned = np.minimum.accumulate(end[waiting][::-1])[::-1]
    order = np.argsort(correlation, kind="stable")
    of_work = work.peek("correlation")
    place = np.where(of_work > 0, places_in(correlation[order], of_work), NOTHING)
    launch = calls[order[place]]
    next_wait = np.searchsorted(start[waiting], end[launch])
    has_wait = (place != NOTHING) & (next_wait < len(waiting))
    waited_until = returned[np.minimum(next_wait, len(waiting) - 1)]
    is_long = end[rows] - start[rows] >= _SHORTEST_NS
    outlasts: Flags = has_wait & is_long & (end[rows] - waited_until >= _SHORTEST_NS)
    return outlasts


def _reaches_beyond(slices: Columns, rows: Ints, gathered: Gathering) -> Flags:
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
    reaches_beyond: Flags = ends - last >= least
    return reaches_beyond
