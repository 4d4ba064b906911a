"""The band of many ranks over steps or time, and the ranks that stand out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import astuple

from memboard.tb_plugin.analysis.arrays import median
from memboard.tb_plugin.analysis.ranks.spread import extremes, spread
from memboard.tb_plugin.analysis.series.heatmap import step_edges
from memboard.tb_plugin.facts.series.matrix import matrix, refined_rows
from memboard.tb_plugin.facts.series.selection import extent, visible_range

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.analysis.series.rows import Rows
    from memboard.tb_plugin.api.timeline import RankBand
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.series.selection import DrawnQuery, RankRows
    from memboard.tb_plugin.rank_set import RankSet

Why: TypeAlias = Literal["selected", "pinned", "high", "low", "oom"]

MAX_LINES_WITH_BAND: Final = 32
_NUM_HIGH: Final = 3
_NUM_LOW: Final = 1
_MAX_OOM: Final = 8


class RankSpread(NamedTuple):
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


def rank_spread(
    source: RankRows,
    ranks: Sequence[int],
    query: DrawnQuery,
    pinned: RankSet,
    out_of_memory: Sequence[int],
    budget: Budget,
) -> RankSpread:
    """The band of ranks over a range of x, and those that stand out of it."""
    rolled = [source.rollup(rank) for rank in ranks]
    low, high = extent(rolled)
    x0, x1 = visible_range(query, low, high)
    rows = refined_rows(source, ranks, rolled, x0, x1, query.px, budget)
    edges = _edges(rows, x0, x1, query)
    values = matrix(rows, edges)
    x = edges[:-1] if query.x == "step" else (edges[:-1] + edges[1:]) / 2
    return RankSpread(
        band=spread(values, ranks, x),
        named=tuple(_standing_out(ranks, values, pinned, out_of_memory)),
        low=low,
        high=high,
        x0=x0,
        x1=x1,
        rows_per_point=max([1, *(row.width for row in rows if row is not None)]),
        is_final=not budget.exhausted,
    )


def _edges(
    rows: Sequence[Rows | None], x0: float, x1: float, query: DrawnQuery
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
    pinned: RankSet,
    out_of_memory: Sequence[int],
) -> list[tuple[int, Why]]:
    """Which ranks also have a line, and why; no rank twice, at most 32."""
    filled = np.where(np.isnan(values), -np.inf, values)
    peaks = filled.max(axis=1, initial=-np.inf)
    high, low = extremes(np.where(np.isinf(peaks), np.nan, peaks), _NUM_HIGH, _NUM_LOW)
    chosen: dict[int, Why] = {}
    for rank in ranks:
        if rank in pinned and len(chosen) < MAX_LINES_WITH_BAND:
            chosen[rank] = "pinned"
    in_view = set(ranks)
    for rank in [rank for rank in out_of_memory if rank in in_view][:_MAX_OOM]:
        chosen.setdefault(rank, "oom")
    for index in high:
        chosen.setdefault(ranks[index], "high")
    for index in low:
        chosen.setdefault(ranks[index], "low")
    return list(chosen.items())[:MAX_LINES_WITH_BAND]
