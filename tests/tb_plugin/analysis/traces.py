"""Traces made of slices as tests write them down."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from tb_plugin.analysis.trace.details import (
    Collectives,
    DeviceWork,
    Launches,
    MemoryEvents,
    Operators,
    PythonCalls,
)
from tb_plugin.analysis.trace.nesting import nest
from tb_plugin.analysis.trace.trace import (
    Counters,
    Flows,
    Instants,
    Series,
    Slices,
    Trace,
    Track,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def none(table: type) -> Any:
    """A table of a trace without rows."""
    return table(**{one.name: np.empty(0, np.int64) for one in fields(table)})


def trace_of(
    slices: Sequence[tuple[int, int, int, str]],
    *,
    num_tracks: int = 1,
    base_ns: int = 0,
    category: str = "cpu_op",
    kind: str = "host",
    points: Sequence[tuple[int, float]] = (),
    **more: Any,
) -> Trace:
    """A trace of slices (track, start, duration, name), and one counter's points."""
    texts = sorted({name for *_, name in slices} | {category, ""})
    columns = np.array(
        [
            (track, start, length, texts.index(name))
            for track, start, length, name in slices
        ],
        np.int64,
    ).reshape(-1, 4)
    track, start, length, name = columns.T
    nested = nest(track, start, start + length, num_tracks)
    tracks = [
        Track(
            name=f"thread {at}",
            process="python 1",
            kind=kind,  # type: ignore[arg-type]
            rank=0,
            first_row=rows[0],
            num_slices=rows[-1] - rows[0],
            level_rows=rows,
        )
        for at, rows in enumerate(nested.level_rows)
    ]
    series: tuple[Series, ...] = ()
    if points:
        series = (Series(len(tracks), "bytes", 0, len(points)),)
        tracks.append(Track(name="memory", process="python 1", kind="counter", rank=0))
    order = nested.order
    return Trace(
        tracks=tuple(tracks),
        strings=texts,
        slices=Slices(
            track=track[order],
            level=nested.level,
            start_ns=start[order],
            duration_ns=length[order],
            name=name[order],
            category=np.full(len(order), texts.index(category)),
            parent=nested.parent,
            args=np.full(len(order), -1),
        ),
        instants=none(Instants),
        series=series,
        counters=Counters(
            np.array([time for time, _ in points], np.int64),
            np.array([value for _, value in points], np.float64),
        ),
        flows=more.pop("flows", none(Flows)),
        operators=none(Operators),
        python=none(PythonCalls),
        launches=more.pop("launches", none(Launches)),
        device_work=more.pop("device_work", none(DeviceWork)),
        collectives=none(Collectives),
        memory=none(MemoryEvents),
        base_ns=base_ns,
        start_ns=int(start.min()) if len(start) else 0,
        end_ns=int((start + length).max()) if len(start) else 0,
        **more,
    )
