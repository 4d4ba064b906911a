"""The allocator's totals that a trace says at each `[memory]` event, as counters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tb_plugin.analysis.trace.trace import Counters, Series, Track

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.trace.trace import Trace

    Ints: TypeAlias = npt.NDArray[Any]

PROCESS: Final = "Memory"
"""What the tracks' process is called; their numbers are bytes."""

_DEVICE_TYPES: Final = {0: "CPU", 1: "GPU", 6: "GPU", 12: "XPU", 13: "MPS"}


def with_memory(trace: Trace) -> Trace:
    """The trace with a counter for each device's allocated and reserved bytes.

    Events that say no total are passed over: sums of sizes would begin anywhere.
    """
    memory = trace.memory
    if not len(memory):
        return trace
    tracks, series = list(trace.tracks), list(trace.series)
    times, values = [trace.counters.time_ns], [trace.counters.value]
    at = len(trace.counters)
    keys = np.stack((memory.device_type, memory.device), axis=1).astype(np.int64)
    for kind, device in np.unique(keys, axis=0).tolist():
        of_device = (keys[:, 0] == kind) & (keys[:, 1] == device)
        for word, totals in (
            ("Allocated", memory.allocated_bytes),
            ("Reserved", memory.reserved_bytes),
        ):
            rows = np.flatnonzero(of_device & (totals >= 0))
            if not len(rows) or not np.any(totals[rows]):
                continue
            order = rows[np.argsort(memory.time_ns[rows], kind="stable")]
            series.append(Series(len(tracks), word, at, len(order)))
            tracks.append(_track(trace, word, kind, device))
            times.append(memory.time_ns[order].astype(np.int64))
            values.append(totals[order].astype(np.float64))
            at += len(order)
    return replace(
        trace,
        tracks=tuple(tracks),
        series=tuple(series),
        counters=Counters(np.concatenate(times), np.concatenate(values)),
    )


def _track(trace: Trace, word: str, kind: int, device: int) -> Track:
    where = _DEVICE_TYPES.get(kind, f"device type {kind}")
    name = f"{word}, {where}{f' {device}' if device >= 0 else ''}"
    return Track(
        name=name,
        process=PROCESS,
        kind="counter",
        rank=trace.facts.rank,
        device=device,
    )
