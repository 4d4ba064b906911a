"""Route `/timeline`: a series over steps or time, as lines or as bands with outliers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.analysis.series.buckets import thinned, visible
from memboard.tb_plugin.api.base import Problem, f64
from memboard.tb_plugin.api.timeline import GROUPS, RankBand, RankLine, TimelineResponse
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.facts.series.bands import Why, rank_spread
from memboard.tb_plugin.facts.series.marks import marks_of, ranks_with_oom
from memboard.tb_plugin.facts.series.matrix import refined_rows
from memboard.tb_plugin.facts.series.selection import (
    DrawnQuery,
    RankRows,
    capacity_of,
    chosen_ranks,
    drawable_series,
    errors_within,
    extent,
    visible_range,
    x_axis,
)
from memboard.tb_plugin.rank_set import RankSet
from memboard.tb_plugin.server.views.run import of_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.series.rows import Rows
    from memboard.tb_plugin.facts.ranks.rank_facts import FactsReader
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.index.run import Run

MAX_LINES: Final = 16
"""Up to so many ranks each have a line; above, bands are drawn."""
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


class TimelineQuery(DrawnQuery, frozen=True):
    """A series; `pinned` ranks are lines even where bands are drawn."""

    pinned: RankSet = RankSet()


@of_run(
    "timeline",
    TimelineQuery,
    reads=lambda readers: (readers.facts,),
    prefetches="series",
    seconds=None,
)
def timeline(view: View[TimelineQuery], facts: FactsReader) -> TimelineResponse:
    # Answer `/timeline`
    reader, run, query, budget = view.series, view.run, view.query, view.budget
    ranks = chosen = chosen_ranks(run, query)
    key = run.catalogue.resolve(query.series, query.phase)
    axis = x_axis(run, query.x)
    info = None if key is None else run.catalogue.info(key.table, key.column)
    drawing = _Drawing((), None, 1, 0.0, 0.0)
    if key is not None:
        having = run.catalogue.ranks_of(key)
        ranks = [rank for rank in ranks if rank in having] or ranks
        errors = errors_within(run, facts, budget)
        source = RankRows(reader, run, key, axis, errors)
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
                drawable_series(
                    reader, run, chosen, axis, run.catalogue.phase(query.phase)
                ),
                key=lambda series: (GROUPS.index(series.group), not series.headline),
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
    spread = view.series.derived(
        (_STAMP, source.stamps(ranks), query, out_of_memory),
        partial(rank_spread, source, ranks, query, query.pinned, out_of_memory, budget),
        is_final=lambda spread: spread.is_final,
    )
    x0, x1 = spread.x0, spread.x1
    chosen = [rank for rank, _ in spread.named]
    finer = [source.rollup(rank, low=True) for rank in chosen]
    lines, width = _drawn(source, chosen, finer, x0, x1, query, budget)
    return _Drawing(
        lines=_as_lines(spread.named, lines),
        band=spread.band,
        rows_per_point=max(width, spread.rows_per_point),
        low=spread.low,
        high=spread.high,
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
