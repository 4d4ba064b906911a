"""Route `/heatmap`: a series of all ranks over steps, as cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from memboard.tb_plugin.analysis.series.heatmap import (
    beyond_median,
    farthest_ranks,
    pooled_ranks,
    rows_among,
)
from memboard.tb_plugin.api.timeline import HeatmapResponse
from memboard.tb_plugin.facts.series.marks import marks_of
from memboard.tb_plugin.facts.series.matrix import cells_response, step_matrix
from memboard.tb_plugin.facts.series.selection import (
    MatrixQuery,
    RankRows,
    capacity_of,
    chosen_ranks,
    errors_within,
    x_axis,
)
from memboard.tb_plugin.server.views.run import of_run

if TYPE_CHECKING:
    from memboard.tb_plugin.facts.ranks.rank_facts import FactsReader
    from memboard.tb_plugin.facts.view import View


class HeatmapQuery(MatrixQuery, frozen=True):
    """What the cells are: values, or what is beyond the median of all ranks."""

    of: Literal["value", "excess"] = "value"


@of_run(
    "heatmap",
    HeatmapQuery,
    reads=lambda readers: (readers.facts,),
    prefetches="series",
    seconds=None,
)
def heatmap(view: View[HeatmapQuery], facts: FactsReader) -> HeatmapResponse:
    # Answer `/heatmap`
    reader, run, query = view.series, view.run, view.query
    wanted = chosen_ranks(run, query)
    is_excess = query.of == "excess"
    # The median is of all ranks, whichever are in sight.
    ranks = run.ranks if is_excess else wanted
    key = run.catalogue.resolve(query.series, query.phase)
    axis = x_axis(run, "step")
    marks = marks_of(reader, run, axis, wanted)
    if key is None:
        absent = run.catalogue.absent()
        return HeatmapResponse(run=view.summary, marks=marks, absent=absent)
    info = run.catalogue.info(key.table, key.column)
    errors = errors_within(run, facts, view.budget)
    source = RankRows(reader, run, key, axis, errors)
    rolled = [source.rollup(rank) for rank in ranks]
    cells = step_matrix(source, ranks, rolled, query, query.px, view.budget)
    values = cells.values
    if is_excess:
        values = rows_among(beyond_median(values), ranks, wanted)
    group = info.group if info.unit == "bytes" else ""
    return cells_response(
        HeatmapResponse,
        view.summary,
        info,
        wanted,
        values,
        cells.edges,
        query.rows,
        farthest_ranks if is_excess else pooled_ranks,
        x_low=cells.low,
        x_high=cells.high,
        capacity_bytes=capacity_of(run, wanted, group).size_bytes,
        exact=cells.is_exact and not run.unfinished,
        marks=marks,
        absent=run.catalogue.absent(),
    )
