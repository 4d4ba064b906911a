"""Route `/timeline`: a series over steps or time, as lines or as bands with outliers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import astuple

from memboard.tb_plugin.analysis.arrays import median
from memboard.tb_plugin.analysis.ranks.spread import extremes, spread
from memboard.tb_plugin.analysis.series.buckets import thinned, visible
from memboard.tb_plugin.analysis.series.heatmap import step_edges
from memboard.tb_plugin.api.base import Problem
from memboard.tb_plugin.api.timeline import GROUPS, RankBand, RankLine, TimelineResponse
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.wire import f64, i32
from memboard.tb_plugin.facts.series.marks import marks_of, ranks_with_oom
from memboard.tb_plugin.facts.series.matrix import matrix, refined_rows
from memboard.tb_plugin.facts.series.selection import (
    DrawnQuery,
    RankRows,
    capacity_of,
    chosen_ranks,
    extent,
    visible_range,
    x_axis,
)
from memboard.tb_plugin.facts.view import of_run
from memboard.tb_plugin.rank_set import RankSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.analysis.series.rows import Rows
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.index.run import Run

Why: TypeAlias = Literal["selected", "pinned", "high", "low", "oom"]

MAX_LINES: Final = 16
"""Up to so many ranks each have a line; above, bands are drawn."""
MAX_LINES_WITH_BAND: Final = 32
_NUM_HIGH: Final = 3
_NUM_LOW: Final = 1
_MAX_OOM: Final = 8
_POINTS_PER_PX: Final = 2
_LINE_SECONDS: Final = 0.4
_STAMP: Final = "band of ranks"


@dataclass(frozen=True, slots=True)
class _Drawing:
    """What is drawn, before it becomes a response."""

    lines: tuple[RankLine, ...]
    band: RankBand | None
    rows_per_point: int
    low: float
    high: float


class _Spread(NamedTuple):
    """The band of many ranks, and which of them have lines of their own."""

    band: RankBand
    named: tuple[tuple[int, Why], ...]
    low: float
    high: float
    x0: float
    x1: float
    rows_per_point: int
    is_final: bool
    """Whether another request would get the same."""

    @property
    def nbytes(self) -> int:
        """Bytes of the band's columns; the rest is small."""
        _, *columns = astuple(self.band)
        return sum(column.nbytes for column in columns)


class TimelineQuery(DrawnQuery, frozen=True):
    """A series; `pinned` ranks are lines even where bands are drawn."""

    pinned: RankSet = RankSet()


@of_run("timeline", TimelineQuery, prefetches="series", seconds=None)
def timeline(view: View[TimelineQuery]) -> TimelineResponse:
    # Answer `/timeline`
    reader, run, query, budget = view.series, view.run, view.query, view.budget
    ranks = chosen_ranks(run, query)
    key = run.catalogue.resolve(query.series, query.phase)
    axis = x_axis(run, query.x)
    info = None if key is None else run.catalogue.info(key.table, key.column)
    drawing = _Drawing((), None, 1, 0.0, 0.0)
    if key is not None:
        having = run.catalogue.ranks_of(key)
        ranks = [rank for rank in ranks if rank in having] or ranks
        source = RankRows(reader, run, key, axis)
        if len(ranks) <= MAX_LINES:
            drawing = _lines(source, ranks, query, budget)
        else:
            drawing = _bands(view, source, ranks)
    bytes_group = info.group if info is not None and info.unit == "bytes" else ""
    capacity = capacity_of(run, ranks, bytes_group)
    return TimelineResponse(
        run=view.summary,
        series=info,
        x=query.x,
        x_low=drawing.low,
        x_high=drawing.high,
        rows_per_point=drawing.rows_per_point,
        lines=drawing.lines,
        band=drawing.band,
        capacity_bytes=capacity.size_bytes,
        capacity_kind=capacity.kind,
        marks=marks_of(reader, run, axis, ranks),
        available=tuple(
            sorted(
                run.catalogue.series,
                key=lambda one: (GROUPS.index(one.group), not one.headline),
            )
        ),
        absent=run.catalogue.absent(),
        phases=run.catalogue.phases,
        problems=(*run.problems, *_coarser(run, query, budget)),
    )


def _lines(
    source: RankRows, ranks: Sequence[int], query: TimelineQuery, budget: Budget
) -> _Drawing:
    rolled = [source.rollup(rank, low=True) for rank in ranks]
    low, high = extent(rolled)
    x0, x1 = visible_range(query, low, high)
    lines, width = _drawn(source, ranks, rolled, x0, x1, query, budget)
    named: list[tuple[int, Why]] = [
        (rank, "pinned" if rank in query.pinned else "selected") for rank in ranks
    ]
    return _Drawing(_as_lines(named, lines), None, width, low, high)


def _bands(
    view: View[TimelineQuery], source: RankRows, ranks: Sequence[int]
) -> _Drawing:
    """The band, cached until a file grows, and lines that get finer from poll to poll."""
    query, budget = view.query, view.budget
    out_of_memory = tuple(ranks_with_oom(view.series, view.run))
    spread_ranks = view.series.derived(
        (_STAMP, source.stamps(ranks), query, out_of_memory),
        partial(_spread_of, source, ranks, query, budget, out_of_memory),
        is_final=lambda spread_ranks: spread_ranks.is_final,
    )
    x0, x1 = spread_ranks.x0, spread_ranks.x1
    chosen = [rank for rank, _ in spread_ranks.named]
    finer = [source.rollup(rank, low=True) for rank in chosen]
    lines, width = _drawn(source, chosen, finer, x0, x1, query, budget)
    return _Drawing(
        lines=_as_lines(spread_ranks.named, lines),
        band=spread_ranks.band,
        rows_per_point=max(width, spread_ranks.rows_per_point),
        low=spread_ranks.low,
        high=spread_ranks.high,
    )


def _spread_of(
    source: RankRows,
    ranks: Sequence[int],
    query: TimelineQuery,
    budget: Budget,
    out_of_memory: Sequence[int],
) -> _Spread:
    rolled = [source.rollup(rank) for rank in ranks]
    low, high = extent(rolled)
    x0, x1 = visible_range(query, low, high)
    rows = refined_rows(source, ranks, rolled, x0, x1, query.px, budget)
    edges = _edges(rows, x0, x1, query)
    values = matrix(rows, edges)
    recorded = ~np.isnan(values).all(axis=0)
    bands = spread(values[:, recorded])
    x = edges[:-1] if query.x == "step" else (edges[:-1] + edges[1:]) / 2
    band = RankBand(
        num_ranks=int(np.count_nonzero(~np.isnan(values).all(axis=1))),
        x=f64(x[recorded]),
        low=f64(bands.low),
        p5=f64(bands.p5),
        median=f64(bands.median),
        p95=f64(bands.p95),
        high=f64(bands.high),
        high_rank=i32(np.asarray(ranks)[bands.high_row]),
    )
    return _Spread(
        band=band,
        named=tuple(_standing_out(ranks, values, query, out_of_memory)),
        low=low,
        high=high,
        x0=x0,
        x1=x1,
        rows_per_point=max([1, *(row.width for row in rows if row is not None)]),
        is_final=not budget.exhausted,
    )


def _drawn(
    source: RankRows,
    ranks: Sequence[int],
    rolled: Sequence[Rows | None],
    x0: float,
    x1: float,
    query: TimelineQuery,
    budget: Budget,
) -> tuple[list[Rows | None], int]:
    """Rows to draw of each rank, at most two per pixel, and rows per point.

    Lines are few, so they are made from rows even where buckets would look the same:
    the cursor then reads a peak at its own step. Buckets do where that is too dear.
    """
    cheap = Budget(_LINE_SECONDS, budget)
    rows = refined_rows(source, ranks, rolled, x0, x1, None, cheap)
    if cheap.exhausted:
        rows = refined_rows(source, ranks, rolled, x0, x1, query.px, budget)
    drawn: list[Rows | None] = []
    widest = 1
    for row in rows:
        if row is None:
            drawn.append(None)
            continue
        points = query.px * _POINTS_PER_PX
        fewer, width = thinned(visible(row, x0, x1), x0, x1, points)
        drawn.append(fewer)
        widest = max(widest, width)
    return drawn, widest


def _edges(
    rows: Sequence[Rows | None], x0: float, x1: float, query: TimelineQuery
) -> Floats:
    """Columns of the band: one per step where they fit, else equally wide ones."""
    unique = list({id(r.first): r for r in rows if r is not None}.values())
    if query.x == "step":
        inside = [r.first[(r.first >= x0) & (r.first <= x1)] for r in unique]
        steps = np.unique(np.concatenate([*inside, np.empty(0)]))
        if 0 < len(steps) <= query.px:
            # A bucket that began before the visible part still covers its start.
            begin = [x0] if steps[0] > x0 else []
            return np.concatenate([begin, steps, [max(x1, steps[-1]) + 1]])
        return step_edges(x0, x1, query.px)[0]
    # Ranks sample at their own times: columns must be wide enough to hold all of them.
    per_rank = [
        int(np.count_nonzero((r.first >= x0) & (r.first <= x1))) for r in unique
    ]
    usual = int(median(per_rank)) if per_rank else 1
    num_columns = max(1, min(query.px, usual // 2))
    span = max(x1 - x0, 1e-3)
    # The last column is closed: nothing at the very end may fall out of it.
    return np.linspace(x0, x0 + span * (1 + 1e-9), num_columns + 1)


def _standing_out(
    ranks: Sequence[int],
    values: Floats,
    query: TimelineQuery,
    out_of_memory: Sequence[int],
) -> list[tuple[int, Why]]:
    """Which ranks also have a line, and why; no rank twice, at most 32."""
    filled = np.where(np.isnan(values), -np.inf, values)
    peaks = filled.max(axis=1, initial=-np.inf)
    high, low = extremes(np.where(np.isinf(peaks), np.nan, peaks), _NUM_HIGH, _NUM_LOW)
    chosen: dict[int, Why] = {}
    for rank in ranks:
        if rank in query.pinned and len(chosen) < MAX_LINES_WITH_BAND:
            chosen[rank] = "pinned"
    in_view = set(ranks)
    for rank in [rank for rank in out_of_memory if rank in in_view][:_MAX_OOM]:
        chosen.setdefault(rank, "oom")
    for index in high:
        chosen.setdefault(ranks[index], "high")
    for index in low:
        chosen.setdefault(ranks[index], "low")
    return list(chosen.items())[:MAX_LINES_WITH_BAND]


def _as_lines(
    named: Sequence[tuple[int, Why]], rows: Sequence[Rows | None]
) -> tuple[RankLine, ...]:
    return tuple(
        RankLine(
            rank=rank, why=why, x=f64(row.first), y=f64(row.high), y_low=f64(row.low)
        )
        for (rank, why), row in zip(named, rows, strict=True)
        if row is not None and len(row)
    )


def _coarser(run: Run, query: TimelineQuery, budget: Budget) -> tuple[Problem, ...]:
    """Said where someone zoomed in for more; `rows_per_point` says it everywhere."""
    zoomed = query.x0 is not None or query.x1 is not None
    if not (budget.exhausted and zoomed) and not run.unfinished:
        return ()
    return (
        Problem(
            severity="warning",
            path=run.found.shown_folder,
            what="The picture is coarser than the data: reading all of it would take"
            " too long.",
            salvaged="Every peak is shown, at the resolution that was recorded.",
            remedy="Zoom in, or choose fewer ranks.",
        ),
    )
