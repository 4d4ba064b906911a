"""Route `/step_heatmap`: ranks by steps, how far each is from the rank in the middle.

Cells are per cent of the middle rank's step time, so that 0 is "as the others". Of a
cell that covers several ranks or steps, the one that is furthest behind is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from tb_plugin.analysis.series.heatmap import (
    size_of,
    step_edges,
)
from tb_plugin.analysis.series.step_parts import (
    OTHER,
    PARTS,
    STEP,
    other_part,
    relative_pct,
)
from tb_plugin.api.steps import StepHeatmapResponse
from tb_plugin.api.timeline import HeatmapResponse, SeriesInfo
from tb_plugin.formats.recording.series import SeriesKey
from tb_plugin.pages.of_run import of_run
from tb_plugin.pages.overview.facts import STEP_TIME
from tb_plugin.pages.timeline.heatmap import cells_response, matrix, refined_rows
from tb_plugin.pages.timeline.marks import marks_of
from tb_plugin.pages.timeline.selection import (
    MatrixQuery,
    RankRows,
    chosen_ranks,
    extent,
    visible_range,
    x_axis,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tb_plugin.analysis.arrays import Floats
    from tb_plugin.analysis.series.rows import Rows
    from tb_plugin.api.base import RunSummary
    from tb_plugin.budget import Budget
    from tb_plugin.formats.recording.series import SeriesReader
    from tb_plugin.index.run import Run

MOST_PCT: Final = 1000.0
"""Cells are cut there, or one wild step would take all the shades."""


_PARTS: Final = (STEP, *PARTS, OTHER)
Part = Annotated[
    str,
    Meta(
        pattern=rf"^({'|'.join(_PARTS)})\Z",
        description="one of " + ", ".join(_PARTS),
    ),
]


class StepHeatmapQuery(MatrixQuery, frozen=True):
    """What is compared: the step's time, or one part of it."""

    part: Part = STEP


@of_run("step_heatmap", StepHeatmapQuery, prefetches="series", seconds=None)
def step_heatmap(
    reader: SeriesReader,
    run: Run,
    summary: RunSummary,
    query: StepHeatmapQuery,
    budget: Budget,
) -> StepHeatmapResponse:
    """Answer `/step_heatmap`."""
    cells = _cells(reader, run, summary, query, budget)
    return StepHeatmapResponse(part=query.part, cells=cells)


def _cells(
    reader: SeriesReader,
    run: Run,
    summary: RunSummary,
    query: StepHeatmapQuery,
    budget: Budget,
) -> HeatmapResponse:
    asked = chosen_ranks(run, query)
    phase = run.catalogue.phase(query.phase)
    axis = x_axis(run, "step")
    key = SeriesKey("step", STEP_TIME, phase)
    source = RankRows(reader, run, key, axis)
    found = [(rank, source.rollup(rank)) for rank in asked]
    ranks = [rank for rank, rows in found if rows is not None]
    rolled = [rows for _, rows in found if rows is not None]
    low, high = extent(rolled)
    x0, x1 = visible_range(query, low, high)
    num_rows, px = size_of(len(ranks), query.px, query.rows)
    rows = refined_rows(
        source, ranks, rolled, x0, x1, min(px, int(x1 - x0) + 1), budget
    )
    edges, per_column = step_edges(x0, x1, px)
    seconds = matrix(rows, edges)
    values = _values(reader, run, query, phase, ranks, seconds, edges, budget)
    pct = np.clip(relative_pct(values, seconds), -MOST_PCT, MOST_PCT)
    widest = max([1, *(row.width for row in rows if row is not None)])
    series = _series(query.part, len(ranks))
    cells = cells_response(
        *(summary, series, ranks, pct, edges, num_rows),
        x_low=low,
        x_high=high,
        exact=widest <= per_column and not run.unfinished,
        marks=marks_of(reader, run, axis, ranks),
    )
    return cells if cells.values.any() else replace(cells, series=None)


def _series(part: str, num_ranks: int) -> SeriesInfo:
    column = STEP_TIME if part == STEP else f"{part}_seconds"
    return SeriesInfo(
        key=f"step/{column}",
        unit="percent",
        group="timing",
        headline=True,
        num_ranks=num_ranks,
    )


def _values(
    reader: SeriesReader,
    run: Run,
    query: StepHeatmapQuery,
    phase: str,
    ranks: Sequence[int],
    seconds: Floats,
    edges: Floats,
    budget: Budget,
) -> Floats:
    """What is compared: the step's time, or a part of it, in the same cells."""
    part = query.part
    if part == STEP:
        return seconds
    if part != OTHER:
        return _of_part(reader, run, part, phase, ranks, edges, budget)
    parts = [_of_part(reader, run, name, phase, ranks, edges, budget) for name in PARTS]
    return other_part(seconds, np.stack(parts))


def _of_part(
    reader: SeriesReader,
    run: Run,
    part: str,
    phase: str,
    ranks: Sequence[int],
    edges: Floats,
    budget: Budget,
) -> Floats:
    key = SeriesKey("step", f"{part}_seconds", phase)
    source = RankRows(reader, run, key, x_axis(run, "step"))
    rolled: list[Rows | None] = [source.rollup(rank) for rank in ranks]
    low, high = float(edges[0]), float(edges[-1] - 1)
    rows = refined_rows(source, ranks, rolled, low, high, len(edges) - 1, budget)
    return matrix(rows, edges)
