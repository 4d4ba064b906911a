"""One window as a picture: categories by pixel column, and what ran when.

Each column shows the moment of the highest total inside it, beginning with what was
held when it begins, so that no peak vanishes however wide a column is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import highest_within
from memboard.tb_plugin.analysis.trace_memory.pictures import MemoryColumns
from memboard.tb_plugin.api.base import i32
from memboard.tb_plugin.api.memory.modules import ModuleSpans, SpanKind

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.analysis.modules.log import ModuleLog

Axis: TypeAlias = Literal["time", "event"]

SPAN_KINDS: Final[tuple[SpanKind, ...]] = ("forward", "backward", "recompute")

MAX_ROWS: Final = 32
"""Rows of spans that are kept; more do not fit a page."""

_SPANS: Final = (
    ("before_pre_forward", "after_post_forward"),
    ("before_pre_backward", "after_post_backward"),
    ("pre_forward_ac", "post_forward_ac"),
)
"""Boundaries that begin and end each of `SPAN_KINDS`."""


def extent(log: ModuleLog, axis: Axis) -> tuple[float, float]:
    """First and last x of a window."""
    if axis == "event":
        return 0.0, float(len(log.delta_bytes))
    last = [times[-1] for times in (log.time_us, log.boundaries.time_us) if len(times)]
    return 0.0, float(max(last, default=0))


def columns(
    log: ModuleLog, device: int, axis: Axis, x0: float, x1: float, px: int
) -> MemoryColumns:
    """At most `px` columns from `x0` to `x1`; fewer where there are fewer moments."""
    if axis == "event":
        px = int(min(px, max(1.0, np.ceil(x1) - np.floor(x0) + 1)))
    width = max(x1 - x0, 1e-6) / px
    edges: Floats = x0 + width * np.arange(px + 1, dtype=np.float64)
    # The last column is closed: what happens at the very end is in it.
    edges[-1] = max(edges[-1], np.nextafter(x1, np.inf))
    total = log.total(device)
    first, last = _moments(log, axis, edges)
    moments = highest_within(total, first, last)
    low, high = edges[:-1], edges[1:]
    positions = moments.astype(np.float64) if axis == "event" else log.time_at(moments)
    return MemoryColumns(
        x0=x0,
        width=width,
        held=log.totals_at(moments, device),
        peak_x=np.clip(positions, low, high),
    )


def spans(
    log: ModuleLog, axis: Axis, x0: float, x1: float, min_width: float, most: int
) -> ModuleSpans:
    """Calls of modules that reach into the visible part and are wide enough to be seen.

    Of more than `most` the widest stay.
    """
    parts = [_spans_of_kind(log, axis, kind) for kind in range(len(SPAN_KINDS))]
    row, kind, begin, end = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    seen = np.minimum(end, x1) - np.maximum(begin, x0)
    kept = np.flatnonzero((end - begin >= min_width) & (seen > 0))
    kept = kept[np.argsort(-seen[kept], kind="stable")[:most]]
    in_view = np.count_nonzero((begin <= x1) & (end >= x0))
    # Outer calls before inner ones: those that begin earlier, or first, or end later.
    kept = kept[np.lexsort((row[kept], -end[kept], begin[kept]))]
    depth = _rows_without_overlap(begin[kept], end[kept])
    kept, depth = kept[depth < MAX_ROWS], depth[depth < MAX_ROWS]
    bounds = log.boundaries
    modules, module = np.unique(bounds.module[row[kept]], return_inverse=True)
    return ModuleSpans(
        modules=tuple(log.tree.fqn[row] for row in modules.tolist()),
        module=i32(module),
        kinds=SPAN_KINDS,
        kind=kind[kept],
        call=bounds.call[row[kept]],
        depth=depth,
        x0=begin[kept],
        x1=end[kept],
        num_left_out=int(in_view) - len(kept),
    )


def _moments(log: ModuleLog, axis: Axis, edges: Floats) -> tuple[Ints, Ints]:
    """First and last moment of each column; the first is what it begins with."""
    num = len(log.delta_bytes)
    if axis == "event":
        first = np.clip(np.floor(edges[:-1]), 0, num)
        last = np.clip(np.ceil(edges[1:]) - 1, first, num)
        return first.astype(np.int64), last.astype(np.int64)
    before = np.searchsorted(log.time_us, edges, "left")
    return before[:-1], before[1:]


def _spans_of_kind(
    log: ModuleLog, axis: Axis, kind: int
) -> tuple[Ints, Ints, Floats, Floats]:
    """(boundary that begins it, kind, begin, end)."""
    bounds = log.boundaries
    begin, end = log.intervals(*_SPANS[kind])
    x = bounds.event if axis == "event" else bounds.time_us
    positions = np.append(x, int(extent(log, axis)[1])).astype(np.float64)
    return begin, np.full(len(begin), kind, np.int64), positions[begin], positions[end]


def _rows_without_overlap(begin: Floats, end: Floats) -> Ints:
    """The lowest row that is free, in order; only what is drawn comes here."""
    free_from: list[float] = []
    rows = []
    for low, high in zip(begin.tolist(), end.tolist(), strict=True):
        row = next((r for r, until in enumerate(free_from) if until <= low), None)
        if row is None:
            row = len(free_from)
            free_from.append(high)
        else:
            free_from[row] = high
        rows.append(row)
    return np.array(rows, np.int64)
