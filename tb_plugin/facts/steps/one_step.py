"""One step, or all, on every rank.

Cells of the picture are per cent of the middle rank's step time, so that 0 is "as the
others". Of a cell that covers several ranks or steps, the one that is furthest behind is
shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.collector.format.columns import STEP_TABLE
from memboard.tb_plugin.analysis.series.heatmap import size_of
from memboard.tb_plugin.analysis.series.step_parts import (
    OTHER,
    PARTS,
    STEP,
    other_part,
    relative_pct,
)
from memboard.tb_plugin.facts.ranks.columns import STEP_TIME
from memboard.tb_plugin.facts.series.matrix import (
    StepMatrix,
    matrix,
    refined_rows,
    step_matrix,
)
from memboard.tb_plugin.facts.series.selection import (
    MatrixQuery,
    RankRows,
    chosen_ranks,
    x_axis,
)
from memboard.tb_plugin.facts.steps.step_tables import StepTables, parts_of
from memboard.tb_plugin.formats.recording.series import TRAIN_PHASE, SeriesKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.analysis.series.rows import Rows
    from memboard.tb_plugin.analysis.series.step_parts import StepRows
    from memboard.tb_plugin.api.time.steps import StepPart
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.series.selection import RanksQuery
    from memboard.tb_plugin.facts.view import View

MOST_PERCENT: Final = 1000.0
"""Cells are cut there, or one wild step would take all the shades."""


@dataclass(frozen=True, slots=True, eq=False)
class StepOnRanks:
    """One step on the ranks that have it, the slowest first; a value per rank."""

    num_ranks: int
    """All that have it, listed or not."""
    num_unread: int
    """Ranks that could not be read in time."""
    ranks: Sequence[int]
    seconds: Floats
    parts: tuple[StepPart, ...]
    start_ms: Sequence[float]
    end_ms: Sequence[float]
    memory_bytes: Floats
    """The step's memory peak; of what was rolled up, the highest of its bucket."""

    @property
    def longest_seconds(self) -> float:
        """0 where no rank's time is known."""
        return float(np.nan_to_num(self.seconds).max(initial=0.0))


def step_on_ranks(
    view: View[RanksQuery],
    ranks: Sequence[int],
    phase: str,
    step: int,
    memory_series: str | None,
    most: int,
) -> StepOnRanks:
    """A step on some ranks, of which at most so many are listed."""
    tables = StepTables(view.series, view.run, phase)
    rows, num_unread = _rows_at(tables, ranks, step, view.budget)
    seconds = np.array([row.high[0] for _, row in rows], np.float64)
    order = np.argsort(-np.nan_to_num(seconds, nan=-np.inf), kind="stable")[:most]
    listed = [rows[int(place)] for place in order]
    parts: tuple[StepPart, ...] = ()
    if listed:
        stacked = np.stack([row.part_high[:, 0] for _, row in listed], axis=1)
        parts = parts_of(seconds[order], stacked)
    listed_ranks = [rank for rank, _ in listed]
    return StepOnRanks(
        num_ranks=len(rows),
        num_unread=num_unread,
        ranks=listed_ranks,
        seconds=seconds[order],
        parts=parts,
        start_ms=[
            row.end_ms[0] - 1e3 * np.nan_to_num(row.high[0]) for _, row in listed
        ],
        end_ms=[row.end_ms[0] for _, row in listed],
        memory_bytes=np.full(len(listed), np.nan)
        if memory_series is None
        else _memory(view, memory_series, phase, listed_ranks, step),
    )


def _rows_at(
    tables: StepTables, ranks: Sequence[int], number: int, budget: Budget
) -> tuple[list[tuple[int, StepRows]], int]:
    """The step on each rank that has it, and how many could not be read in time."""
    rows, num_unread = [], 0
    for rank in ranks:
        table = tables.rollup(rank) if budget.allows() else None
        if table is None:
            num_unread += budget.exhausted
            continue
        index = int(np.searchsorted(table.last, number, "left"))
        if index >= len(table) or table.first[index] > number:
            continue
        row: StepRows | None = table.take(np.array([index]))
        if table.width > 1:
            row = tables.between(rank, number, number, budget)
            if row is None:
                num_unread += budget.exhausted
                continue
        if row is not None:
            rows.append((rank, row))
    return rows, num_unread


def _memory(
    view: View[RanksQuery],
    series: str,
    phase: str,
    ranks: Sequence[int],
    number: int,
) -> Floats:
    values = np.full(len(ranks), np.nan)
    table, _, column = series.partition("/")
    key = SeriesKey(table, column, phase or TRAIN_PHASE)
    source = RankRows(view.series, view.run, key, x_axis(view.run, "step"))
    for place, rank in enumerate(ranks):
        rows = source.rollup(rank)
        if rows is not None and rows.width > 1:
            rows = source.refined(rank, rows, number, number, view.budget)
        if rows is None:
            continue
        row = rows.row_at(number)
        if row is not None:
            values[place] = rows.high[row]
    return values


class RelativeSteps(NamedTuple):
    """Steps, or a part of them, beside those of the middle rank."""

    ranks: Sequence[int]
    steps: StepMatrix
    """Its values are per cent of the middle rank's step time."""
    num_rows: int
    """Rows of the picture, which may each be of several ranks."""


def relative_step_cells(view: View[MatrixQuery], part: str) -> RelativeSteps:
    """The steps' time, or one `part` of it, of every rank that has steps."""
    run, query = view.run, view.query
    phase = run.catalogue.phase(query.phase)
    source = _source(view, STEP_TIME, phase)
    rows_by_rank = {
        rank: rows
        for rank in chosen_ranks(run, query)
        if (rows := source.rollup(rank)) is not None
    }
    ranks, rolled = list(rows_by_rank), list(rows_by_rank.values())
    num_rows, px = size_of(len(ranks), query.px, query.rows)
    steps = step_matrix(source, ranks, rolled, query, px, view.budget)
    values = _values(view, part, phase, ranks, steps)
    percent = np.clip(relative_pct(values, steps.values), -MOST_PERCENT, MOST_PERCENT)
    return RelativeSteps(ranks, steps._replace(values=percent), num_rows)


def _source(view: View[MatrixQuery], column: str, phase: str) -> RankRows:
    key = SeriesKey(STEP_TABLE, column, phase)
    return RankRows(view.series, view.run, key, x_axis(view.run, "step"))


def _values(
    view: View[MatrixQuery],
    part: str,
    phase: str,
    ranks: Sequence[int],
    steps: StepMatrix,
) -> Floats:
    """What is compared: the step's time, or a part of it, in the same cells."""
    if part == STEP:
        return steps.values
    if part != OTHER:
        return _part_values(view, part, phase, ranks, steps.edges)
    parts = [_part_values(view, part, phase, ranks, steps.edges) for part in PARTS]
    return other_part(steps.values, np.stack(parts))


def _part_values(
    view: View[MatrixQuery],
    part: str,
    phase: str,
    ranks: Sequence[int],
    edges: Floats,
) -> Floats:
    source = _source(view, f"{part}_seconds", phase)
    rolled: list[Rows | None] = [source.rollup(rank) for rank in ranks]
    low, high = float(edges[0]), float(edges[-1] - 1)
    rows = refined_rows(source, ranks, rolled, low, high, len(edges) - 1, view.budget)
    return matrix(rows, edges)
