"""Route `/distributed_heatmap`: one part of the ranks' profiled steps as a picture."""

from __future__ import annotations

import math
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from memboard.tb_plugin.analysis.ranks.rank_steps import longest_in_columns
from memboard.tb_plugin.analysis.series.heatmap import (
    farthest_ranks,
    size_of,
    step_edges,
)
from memboard.tb_plugin.api.time.distributed import (
    DistributedHeatmapResponse,
    DistributedPart,
)
from memboard.tb_plugin.api.timeline import SeriesInfo
from memboard.tb_plugin.contract.parameters import Pixels
from memboard.tb_plugin.facts.series.matrix import cells_response
from memboard.tb_plugin.pages.distributed.distributed import CycleQuery, cycle_of
from memboard.tb_plugin.server.routes import RouteRequest, route

Step = Annotated[float, Meta(ge=-1e12, le=1e12, description="a step")]


class DistributedHeatmapQuery(CycleQuery, frozen=True):
    """One part of the steps' time, in a range of steps."""

    part: DistributedPart = "communication"
    x0: Step | None = None
    x1: Step | None = None
    px: Pixels = 1200
    rows: Pixels = 800


@route("distributed_heatmap", DistributedHeatmapQuery)
def distributed_heatmap(
    asked: RouteRequest[DistributedHeatmapQuery],
) -> DistributedHeatmapResponse:
    """One part of the steps of the ranks whose traces are open."""
    (run, cycle), query = cycle_of(asked), asked.query
    asked.decided_by(*cycle.stamp)
    steps = cycle.steps
    low, high = steps.range()
    x0 = min(max(low, low if query.x0 is None else math.floor(query.x0)), high)
    x1 = max(min(high, high if query.x1 is None else math.ceil(query.x1)), x0)
    # No more columns than steps: a cycle has few, and ranks stay apart.
    width = max(1, min(query.px, int(x1 - x0) + 1))
    num_rows, px = size_of(len(steps.ranks), width, query.rows)
    edges, per_column = step_edges(x0, x1, px)
    values = longest_in_columns(steps, query.part, edges, per_column)
    series = SeriesInfo(
        key=f"profile/{query.part}_seconds",
        label=query.part.capitalize(),
        unit="seconds",
        group="timing",
        headline=False,
        num_ranks=len(steps.ranks),
    )
    cells = cells_response(
        DistributedHeatmapResponse,
        run,
        series,
        steps.ranks.tolist(),
        values,
        edges,
        num_rows,
        farthest_ranks,
        x_low=low,
        x_high=high,
        exact=cycle.num_opening == 0,
    )
    return cells if cells.values.any() else replace(cells, series=None)
