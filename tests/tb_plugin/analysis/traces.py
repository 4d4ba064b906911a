"""Traces made of slices as tests write them down."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tb_plugin.analysis.trace.build import EMPTY_TRACE, place
from tb_plugin.analysis.trace.trace import Counters, Series, Trace, Track

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    columns = np.array([(*row, texts.index(name)) for *row, name in slices], np.int64)
    track, start, length, name = columns.reshape(-1, 4).T
    placed = place(
        [
            Track(name=f"thread {at}", process="python 1", kind=kind, rank=0)  # type: ignore[arg-type]
            for at in range(num_tracks)
        ],
        track=track,
        start_ns=start,
        duration_ns=length,
        name=name,
        category=np.full(len(track), texts.index(category)),
        args=np.full(len(track), -1),
    )
    made = replace(
        EMPTY_TRACE,
        tracks=placed.tracks,
        strings=texts,
        slices=placed.slices,
        base_ns=base_ns,
        start_ns=int(start.min()) if len(start) else 0,
        end_ns=int((start + length).max()) if len(start) else 0,
    )
    if points:
        time_ns, value = zip(*points, strict=True)
        memory = Track(name="memory", process="python 1", kind="counter", rank=0)
        made = replace(
            made,
            tracks=(*made.tracks, memory),
            series=(Series(len(made.tracks), "bytes", 0, len(points)),),
            counters=Counters(np.array(time_ns, np.int64), np.array(value, np.float64)),
        )
    return replace(made, **more)


def rest_ns(parts):
    """Of each step, what is neither computation nor communication."""
    return parts.parts_ns.sum(axis=1) - parts.computation_ns - parts.exposed_ns
