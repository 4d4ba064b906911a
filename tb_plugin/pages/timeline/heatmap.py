"""Route `/heatmap`: ranks by steps, the highest value of each cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tb_plugin.analysis.series.heatmap import pooled_ranks, quantized, step_edges
from tb_plugin.api.timeline import HeatmapResponse
from tb_plugin.contract.wire import i32, u16
from tb_plugin.pages.of_run import of_run
from tb_plugin.pages.timeline.marks import marks_of
from tb_plugin.pages.timeline.matrix import matrix, refined_rows
from tb_plugin.pages.timeline.selection import (
    MatrixQuery,
    RankRows,
    capacity_of,
    chosen_ranks,
    extent,
    visible_range,
    x_axis,
)

if TYPE_CHECKING:
    from tb_plugin.api.base import RunSummary
    from tb_plugin.api.timeline import Mark
    from tb_plugin.budget import Budget
    from tb_plugin.formats.recording.series import SeriesReader
    from tb_plugin.index.run import Run


@of_run("heatmap", MatrixQuery, prefetches="series", seconds=None)
def heatmap(
    reader: SeriesReader,
    run: Run,
    summary: RunSummary,
    query: MatrixQuery,
    budget: Budget,
) -> HeatmapResponse:
    """Answer `/heatmap`."""
    ranks = chosen_ranks(run, query)
    key = run.catalogue.resolve(query.series, query.phase)
    axis = x_axis(run, "step")
    marks = marks_of(reader, run, axis, ranks)
    if key is None:
        return _empty(run, summary, marks)
    info = run.catalogue.info(key.table, key.column)
    source = RankRows(reader, run, key, axis)
    rolled = [source.rollup(rank) for rank in ranks]
    low, high = extent(rolled)
    x0, x1 = visible_range(query, low, high)
    rows = refined_rows(
        source, ranks, rolled, x0, x1, min(query.px, int(x1 - x0) + 1), budget
    )
    edges, per_column = step_edges(x0, x1, query.px)
    ranks_per_row = -(-len(ranks) // query.rows)
    cells = quantized(pooled_ranks(matrix(rows, edges), ranks_per_row))
    widest = max([1, *(row.width for row in rows if row is not None)])
    return HeatmapResponse(
        run=summary,
        series=info,
        x_low=low,
        x_high=high,
        x0=float(edges[0]),
        steps_per_column=float(per_column),
        num_rows=cells.values.shape[0],
        num_columns=cells.values.shape[1],
        ranks_per_row=ranks_per_row,
        row_rank=i32(np.asarray(ranks)[::ranks_per_row]),
        values=u16(cells.values),
        value_low=cells.low,
        value_high=cells.high,
        capacity_bytes=capacity_of(
            run, ranks, info.group if info.unit == "bytes" else ""
        ).size_bytes,
        exact=widest <= per_column and not run.unfinished,
        marks=marks,
        absent=run.catalogue.absent(),
    )


def _empty(run: Run, summary: RunSummary, marks: tuple[Mark, ...]) -> HeatmapResponse:
    return HeatmapResponse(
        run=summary,
        series=None,
        x_low=0.0,
        x_high=0.0,
        x0=0.0,
        steps_per_column=1.0,
        num_rows=0,
        num_columns=0,
        ranks_per_row=1,
        row_rank=i32([]),
        values=u16([]),
        value_low=0.0,
        value_high=0.0,
        capacity_bytes=None,
        exact=True,
        marks=marks,
        absent=run.catalogue.absent(),
    )
