"""Which slice of a track is under way at a time."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tb_plugin.analysis.trace.trace import NOTHING

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.trace.trace import Trace

    Ints: TypeAlias = npt.NDArray[Any]


def innermost(trace: Trace, track: Ints, time_ns: Ints) -> Ints:
    """The deepest slice around each time on its track, or NOTHING.

    A slice holds its start and not its end.
    """
    found = np.full(len(time_ns), NOTHING, dtype=np.int64)
    for index in np.unique(track).tolist():
        chosen = np.flatnonzero(track == index)
        found[chosen] = _on_track(trace, index, time_ns[chosen])
    return found


def _on_track(trace: Trace, track: int, time_ns: Ints) -> Ints:
    slices, rows = trace.slices, trace.tracks[track].level_rows
    found = np.full(len(time_ns), NOTHING, dtype=np.int64)
    for first, stop in pairwise(rows):
        starts = slices.start_ns[first:stop]
        at = np.searchsorted(starts, time_ns, "right") - 1
        row = first + np.maximum(at, 0)
        ends = slices.start_ns[row].astype(np.int64) + slices.duration_ns[row]
        inside = (at >= 0) & (time_ns < ends)
        found[inside] = row[inside]
    return found
