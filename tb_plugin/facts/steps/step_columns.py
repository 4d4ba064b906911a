"""Columns of whole steps, each with the slowest step inside it and the parts of that.

It is the slowest of one rank, of the rank that was slowest there, or of the rank in the
middle there. On axes of time a column reaches from the end of the one before it to the
end of its own last step, by the clock of one rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.series.buckets import windows
from memboard.tb_plugin.analysis.series.heatmap import step_edges
from memboard.tb_plugin.analysis.series.step_parts import (
    PARTS,
    median_ranks,
    slowest_in,
    slowest_parts,
    worst_ranks,
)
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.facts.series.matrix import matrix, refined_rows
from memboard.tb_plugin.facts.series.selection import (
    RankRows,
    chosen_ranks,
    extent,
    x_axis,
)
from memboard.tb_plugin.facts.steps.rates import MAX_COLUMNS
from memboard.tb_plugin.facts.steps.step_tables import StepTables

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Floats, Indices
    from memboard.tb_plugin.analysis.series.step_parts import StepRows
    from memboard.tb_plugin.api.time.steps import StepsOf
    from memboard.tb_plugin.facts.series.selection import DrawnQuery
    from memboard.tb_plugin.facts.view import View

_STEP_SECONDS: Final = 0.4
"""Time for reading steps one by one, where buckets would do."""


@dataclass(frozen=True, slots=True, eq=False)
class StepColumns:
    """One value per column of the picture."""

    of: StepsOf
    ranks: Sequence[int]
    """Those with steps; the clock of the first places the columns."""
    x_low: float
    """Where the steps of all ranks begin and end on the axis."""
    x_high: float
    edges: Floats
    """First step of each column, and the one after the last."""
    edges_x: Floats
    """The same on the axis; of steps halfway between two."""
    per_column: int
    slowest: SlowestSteps


@dataclass(frozen=True, slots=True, eq=False)
class SlowestSteps:
    """The slowest step of each column."""

    step: Floats
    rank: npt.NDArray[np.int64]
    """-1 where nothing was recorded."""
    seconds: Floats
    parts: Floats  # (parts, columns)
    is_exact: bool
    """False: some are the slowest of a bucket of steps."""


def step_columns(view: View[DrawnQuery], of: StepsOf | None) -> StepColumns | None:
    """The query's steps; None where no rank has any."""
    reader, run, query, budget = view.series, view.run, view.query, view.budget
    phase = run.catalogue.phase(query.phase)
    tables = StepTables(reader, run, phase, x_axis(run, query.x))
    source = RankRows(reader, run, tables.key, x_axis(run, "step"))
    rows_by_rank = {
        rank: rows
        for rank in chosen_ranks(run, query)
        if (rows := source.rollup(rank)) is not None and len(rows)
    }
    ranks, rolled = list(rows_by_rank), list(rows_by_rank.values())
    own = tables.rollup(ranks[0], keep=True) if ranks else None
    if own is None:
        return None
    low, high = extent(rolled)
    first, last = _visible(query, own, low, high)
    edges, per_column = step_edges(first, last, min(query.px, MAX_COLUMNS))
    of = "rank" if len(ranks) == 1 else (of or "worst")
    if of == "rank":
        row_of_column = np.zeros(len(edges) - 1, np.intp)
    else:
        refined = refined_rows(source, ranks, rolled, first, last, query.px, budget)
        values = matrix(refined, edges)
        row_of_column = worst_ranks(values) if of == "worst" else median_ranks(values)
    is_steps = query.x == "step"
    cheap = Budget(_STEP_SECONDS, budget)
    return StepColumns(
        of=of,
        ranks=ranks,
        x_low=low if is_steps else min(own.start_x, float(own.end_x[0])),
        x_high=high if is_steps else float(own.end_x[-1]),
        edges=edges,
        edges_x=_edges_on(own, edges, query),
        per_column=per_column,
        slowest=_slowest(tables, own, ranks, row_of_column, edges, cheap),
    )


def _visible(
    query: DrawnQuery, own: StepRows, low: float, high: float
) -> tuple[float, float]:
    """The query's steps, inside those there are."""
    if query.x == "step":
        x0 = low if query.x0 is None else float(np.ceil(query.x0))
        x1 = high if query.x1 is None else float(np.floor(query.x1))
    else:
        end_x = own.end_x
        x0, x1 = low, high
        if query.x0 is not None:
            first = min(int(np.searchsorted(end_x, query.x0, "left")), len(end_x) - 1)
            x0 = float(own.first[first])
        if query.x1 is not None:
            last = min(int(np.searchsorted(end_x, query.x1, "left")), len(end_x) - 1)
            x1 = float(own.last[last])
    x0, x1 = min(max(x0, low), high), min(max(x1, low), high)
    return (x0, x1) if x0 <= x1 else (x1, x0)


def _edges_on(own: StepRows, edges: Floats, query: DrawnQuery) -> Floats:
    """Borders of the columns on the axis; of steps, halfway between two."""
    if query.x == "step":
        return edges - 0.5
    last_steps = own.last.astype(np.float64)
    placed = np.interp(edges - 1, last_steps, own.end_x)
    if edges[0] <= own.first[0]:
        placed[0] = min(own.start_x, float(placed[0]))
    result: Floats = np.maximum.accumulate(placed)
    return result


def _slowest(
    tables: StepTables,
    own: StepRows,
    ranks: Sequence[int],
    row_of_column: Indices,
    edges: Floats,
    cheap: Budget,
) -> SlowestSteps:
    """The slowest step of each column, of the rank chosen there."""
    num = len(edges) - 1
    step, seconds = edges[:-1].copy(), np.full(num, np.nan)
    parts = np.full((len(PARTS), num), np.nan)
    shown_rank = np.full(num, -1, np.int64)
    exact = True
    for row in np.unique(row_of_column[row_of_column >= 0]):
        rank = ranks[int(row)]
        table = own if row == 0 else tables.rollup(rank)
        if table is None:
            continue
        if table.width > 1:
            finer = tables.between(rank, edges[0], edges[-1] - 1, cheap)
            table = table if finer is None else finer
        columns = np.flatnonzero(row_of_column == row)
        start, stop = windows(table.first, table.last, edges)
        slowest_rows = slowest_in(table.high, start[columns], stop[columns])
        columns, slowest_rows = (
            columns[slowest_rows >= 0],
            slowest_rows[slowest_rows >= 0],
        )
        seconds[columns] = table.high[slowest_rows]
        parts[:, columns] = slowest_parts(table)[:, slowest_rows]
        step[columns] = np.fmax(table.first[slowest_rows], edges[columns])
        shown_rank[columns] = rank
        exact &= table.width == 1
    return SlowestSteps(step, shown_rank, seconds, parts, exact)
