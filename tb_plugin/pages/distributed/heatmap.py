"""Route `/distributed_heatmap`: one part of the ranks' profiled steps as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from memboard.tb_plugin.analysis.series.heatmap import (
    farthest_ranks,
    size_of,
    step_edges,
)
from memboard.tb_plugin.api.distributed import (
    DistributedHeatmapResponse,
    DistributedPart,
)
from memboard.tb_plugin.api.timeline import SeriesInfo
from memboard.tb_plugin.contract.parameters import Pixels
from memboard.tb_plugin.contract.routes import RouteRequest, route
from memboard.tb_plugin.facts.series.matrix import cells_response
from memboard.tb_plugin.pages.distributed.distributed import CycleQuery, cycle_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.formats.recording.rank_summaries import RankSummary

_SECOND: Final = 1e9

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
    shown = cycle.ranks
    steps = np.concatenate([*(one.step for one in shown), np.empty(0, np.int64)])
    low, high = (float(steps.min()), float(steps.max())) if len(steps) else (0.0, 0.0)
    x0 = min(max(low, low if query.x0 is None else np.floor(query.x0)), high)
    x1 = max(min(high, high if query.x1 is None else np.ceil(query.x1)), x0)
    # No more columns than steps: a cycle has few, and ranks stay apart.
    width = max(1, min(query.px, int(x1 - x0) + 1))
    num_rows, px = size_of(len(shown), width, query.rows)
    edges, per_column = step_edges(x0, x1, px)
    values = _matrix(shown, steps, query.part, edges, per_column)
    series = SeriesInfo(
        key=f"profile/{query.part}_seconds",
        label=query.part.capitalize(),
        unit="seconds",
        group="timing",
        headline=False,
        num_ranks=len(shown),
    )
    cells = cells_response(
        DistributedHeatmapResponse,
        run,
        series,
        [one.rank for one in shown],
        values,
        edges,
        num_rows,
        farthest_ranks,
        x_low=low,
        x_high=high,
        exact=cycle.num_opening == 0,
    )
    return cells if cells.values.any() else replace(cells, series=None)


def _matrix(
    shown: Sequence[RankSummary],
    steps: Ints,
    part: DistributedPart,
    edges: Floats,
    per_column: int,
) -> Floats:
    """(ranks, columns): the longest of each rank in each column; NaN: it has none."""
    found = np.full((len(shown), len(edges) - 1), np.nan)
    if not len(steps):
        return found
    row = np.repeat(np.arange(len(shown)), [len(one.step) for one in shown])
    column = (steps - int(edges[0])) // per_column
    inside = (column >= 0) & (column < found.shape[1])
    seconds = np.concatenate([_part(one, part) for one in shown]) / _SECOND
    np.fmax.at(found, (row[inside], column[inside]), seconds[inside])
    return found


def _part(one: RankSummary, part: DistributedPart) -> Ints:
    """Nanoseconds of each step; all parts but `step` add up to it."""
    computation: Ints = one.computation_ns - one.overlap_ns
    communication: Ints = one.communication_ns - one.overlap_ns
    parts: dict[DistributedPart, Ints] = {
        "step": one.duration_ns,
        "computation": computation,
        "overlap": one.overlap_ns,
        "communication": communication,
        "other": one.duration_ns - computation - communication - one.overlap_ns,
    }
    return parts[part]
