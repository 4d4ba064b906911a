"""Which unit of FSDP2 was in its forward or backward, told from its annotations.

`FSDP::pre_forward (layers.0)` begins what `FSDP::post_forward (layers.0)` ends on the same
thread, `FSDP::pre_backward` what `FSDP::post_backward_reduce` does; units inside others
come before them. An annotation inside a prefetch names its unit itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tb_plugin.analysis.trace.texts import texts_in
from tb_plugin.analysis.trace.trace import NOTHING

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.trace.trace import Trace

    Ints: TypeAlias = npt.NDArray[Any]

_NAME: Final = re.compile(r"(FSDP::\w+)(?: for ([^()]+)| \((.+)\))?", re.DOTALL)
_ENDS: Final = {
    "FSDP::pre_forward": "FSDP::post_forward",
    "FSDP::pre_backward": "FSDP::post_backward_reduce",
}


def sharding_names(trace: Trace) -> dict[int, tuple[str, str]]:
    """By row of `Trace.strings`: the annotation's phase, and its unit or nothing."""
    return {
        row: (found[1], found[2] or found[3] or "")
        for row, text in texts_in(trace.strings, trace.slices.name)
        if (found := _NAME.fullmatch(text))
    }


def units_under_way(
    trace: Trace, names: dict[int, tuple[str, str]], track: Ints, time_ns: Ints
) -> Ints:
    """By track and time, the annotation (row of `Trace.strings`) of the unit under way.

    NOTHING: it is outside of all.
    """
    found = np.full(len(time_ns), NOTHING, dtype=np.int64)
    slices = trace.slices
    rows = np.flatnonzero(np.isin(slices.name, list(names)))
    for index in np.unique(slices.track[rows]).tolist():
        times, unit = _changes(trace, names, rows[slices.track[rows] == index])
        chosen = np.flatnonzero(track == index)
        if len(times):
            at = np.searchsorted(times, time_ns[chosen], "right") - 1
            found[chosen] = np.where(at >= 0, unit[np.maximum(at, 0)], NOTHING)
    return found


def _changes(
    trace: Trace, names: dict[int, tuple[str, str]], rows: Ints
) -> tuple[Ints, Ints]:
    """When another unit is under way on a thread, and which; ascending."""
    slices = trace.slices
    rows = rows[np.argsort(slices.start_ns[rows], kind="stable")]
    times: list[int] = []
    units: list[int] = []
    under_way: list[tuple[str, str, int]] = []
    for row in rows.tolist():
        name = int(slices.name[row])
        phase, unit = names[name]
        start = int(slices.start_ns[row])
        if phase in _ENDS:
            under_way.append((_ENDS[phase], unit, name))
            times.append(start)
        elif (phase, unit) in {(end, of) for end, of, _ in under_way}:
            while under_way.pop()[:2] != (phase, unit):
                pass
            times.append(start + int(slices.duration_ns[row]))
        else:
            continue
        units.append(under_way[-1][2] if under_way else NOTHING)
    return np.array(times, np.int64), np.array(units, np.int64)
