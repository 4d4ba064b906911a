"""Ranks by columns: what bands and heatmaps are made of."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np

from memboard.tb_plugin.analysis.series.buckets import pooled, windows
from memboard.tb_plugin.analysis.series.heatmap import (
    pooled_ranks,
    quantized,
    step_edges,
)
from memboard.tb_plugin.analysis.series.step_parts import noise_of_times
from memboard.tb_plugin.api.base import i32, u16
from memboard.tb_plugin.api.timeline import HeatmapResponse
from memboard.tb_plugin.facts.series.selection import extent, visible_range

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.analysis.series.rows import Rows
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.timeline import SeriesInfo
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.series.selection import DrawnQuery, RankRows


_NUM_PROBES: Final = 3
"""Ranks whose reading tells what all would take."""

_FEW: Final = 32
"""Of so many ranks, a few at each poll, all are read before long."""

_AT_ONCE: Final = 256
"""Ranks stacked at a time; more would only hold more memory."""


def matrix(rows: Sequence[Rows | None], edges: Floats) -> Floats:
    """Highest value of each rank in each column; NaN where there is none."""
    result = np.full((len(rows), len(edges) - 1), np.nan)
    groups: dict[tuple[int, int], list[int]] = {}
    row_by_index = {index: row for index, row in enumerate(rows) if row is not None}
    for index, row in row_by_index.items():
        if len(row):
            groups.setdefault((id(row.first), id(row.last)), []).append(index)
    for members in groups.values():
        shared = row_by_index[members[0]]
        start, stop = windows(shared.first, shared.last, edges)
        for first in range(0, len(members), _AT_ONCE):
            part = members[first : first + _AT_ONCE]
            values = np.stack([row_by_index[index].high for index in part])
            result[part] = pooled(values, start, stop)
    return result


def refined_rows(
    source: RankRows,
    ranks: Sequence[int],
    rows: Sequence[Rows | None],
    low: float,
    high: float,
    px: int | None,
    budget: Budget,
) -> list[Rows | None]:
    """Rows themselves in place of buckets wider than a pixel, if that can be paid for.

    Without `px`, in place of all buckets.

    All ranks or none, judged by what a few take: a picture half of which is
    finer than the other half would show differences that are not there.
    """
    wide = [
        index
        for index, row in enumerate(rows)
        if row is not None
        and row.width > 1
        and (px is None or _num_visible(row, low, high) < px)
    ]
    result = list(rows)
    # Drawn by lot: the first ranks would be cached from the last time they were tried.
    probes = random.sample(wide, min(_NUM_PROBES, len(wide)))
    costs = []
    for index in probes:
        began = time.monotonic()
        result[index] = source.refined(ranks[index], rows[index], low, high, budget)
        costs.append(time.monotonic() - began)
    others = [index for index in wide if index not in probes]
    if others and not budget.allows(sorted(costs)[len(costs) // 2] * len(others)):
        if len(wide) <= _FEW:
            budget.come_back()  # what was read is kept: soon the others cost less
        return list(rows)
    for index in others:
        result[index] = source.refined(ranks[index], rows[index], low, high, budget)
    return result


class StepMatrix(NamedTuple):
    """Highest values of ranks in columns of whole steps."""

    values: Floats  # (ranks, columns)
    edges: Floats
    """First step of each column, and the one after the last."""
    low: float
    """First and last step of all ranks, in sight or not."""
    high: float
    is_exact: bool
    """Whether no bucket is wider than a column."""


def step_matrix(
    source: RankRows,
    ranks: Sequence[int],
    rolled: Sequence[Rows | None],
    query: DrawnQuery,
    px: int,
    budget: Budget,
) -> StepMatrix:
    """Rows of ranks, one each of `rolled`, in at most `px` columns of the range shown."""
    low, high = extent(rolled)
    x0, x1 = visible_range(query, low, high)
    num_columns = min(px, int(x1 - x0) + 1)
    rows = refined_rows(source, ranks, rolled, x0, x1, num_columns, budget)
    edges, per_column = step_edges(x0, x1, px)
    widest = max([1, *(row.width for row in rows if row is not None)])
    return StepMatrix(matrix(rows, edges), edges, low, high, widest <= per_column)


def _num_visible(rows: Rows, low: float, high: float) -> int:
    start = int(np.searchsorted(rows.last, low, "left"))
    return max(0, int(np.searchsorted(rows.first, high, "right")) - start)


_Response = TypeVar("_Response", bound=HeatmapResponse)


def cells_response(
    made: type[_Response],
    run: RunSummary,
    series: SeriesInfo,
    ranks: Sequence[int],
    values: Floats,
    edges: Floats,
    num_rows: int,
    pooled: Callable[[Floats, int], Floats] = pooled_ranks,
    **more: Any,
) -> _Response:
    """A picture of at most `num_rows` rows, of the `values` of ranks between edges.

    `pooled` makes one row of several ranks; `more`: fields of the response.
    """
    ranks_per_row = max(1, -(-len(ranks) // num_rows))
    cells = quantized(pooled(values, ranks_per_row))
    return made(
        run=run,
        series=series,
        x0=float(edges[0]),
        steps_per_column=float(edges[1] - edges[0]),
        num_rows=cells.values.shape[0],
        num_columns=cells.values.shape[1],
        ranks_per_row=ranks_per_row,
        row_rank=i32(np.asarray(ranks, np.int64)[::ranks_per_row]),
        values=u16(cells.values),
        value_low=cells.low,
        value_high=cells.high,
        noise=noise_of_times(values) if series.unit == "seconds" else 0.0,
        **more,
    )
