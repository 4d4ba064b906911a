"""Routes `/step` and `/step_heatmap`: one step, or all, on every rank.

Cells of the picture are per cent of the middle rank's step time, so that 0 is "as the
others". Of a cell that covers several ranks or steps, the one that is furthest behind is
shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from memboard.tb_plugin.analysis.series.heatmap import (
    size_of,
    step_edges,
)
from memboard.tb_plugin.analysis.series.labels import part_words
from memboard.tb_plugin.analysis.series.step_parts import (
    OTHER,
    PARTS,
    STEP,
    other_part,
    relative_pct,
)
from memboard.tb_plugin.api.steps import StepHeatmapResponse, StepPart, StepResponse
from memboard.tb_plugin.api.timeline import SeriesInfo
from memboard.tb_plugin.contract.errors import BadRequestError, NotFoundError
from memboard.tb_plugin.contract.parameters import Count
from memboard.tb_plugin.contract.table import Column, table_of, titled
from memboard.tb_plugin.facts.ranks.rank_facts import STEP_TIME
from memboard.tb_plugin.facts.series.marks import marks_of
from memboard.tb_plugin.facts.series.matrix import cells_response, matrix, refined_rows
from memboard.tb_plugin.facts.series.selection import (
    MatrixQuery,
    RankRows,
    RanksQuery,
    chosen_ranks,
    extent,
    visible_range,
    x_axis,
)
from memboard.tb_plugin.facts.steps.step_tables import StepTables, parts_of
from memboard.tb_plugin.facts.view import of_run
from memboard.tb_plugin.formats.recording.series import TRAIN_PHASE, SeriesKey
from memboard.tb_plugin.pages.steps.steps import memory_series

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.analysis.series.rows import Rows
    from memboard.tb_plugin.analysis.series.step_parts import StepRows
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.view import View

MAX_RANKS: Final = 1024

MOST_PCT: Final = 1000.0
"""Cells are cut there, or one wild step would take all the shades."""
_RANKS: Final = (
    Column("rank", "Rank", unit="rank"),
    Column("host", "Host", unit="text"),
    Column("seconds", "Step time", unit="seconds", bar="row"),
)
_TIMES: Final = (
    Column("start_ms", help="When the step began, since the epoch"),
    Column("end_ms", help="When it ended"),
)
_COMPARED: Final = (STEP, *PARTS, OTHER)


class StepQuery(RanksQuery, frozen=True):
    step: Count | None = None


@of_run("step", StepQuery, prefetches="series")
def step(view: View[StepQuery]) -> StepResponse:
    """Answer `/step`.

    Raises:
        BadRequestError: no step was named.
        NotFoundError: no rank has it.
    """
    run, query = view.run, view.query
    number = query.step
    if number is None:
        raise BadRequestError(
            "The parameter step must be the number of a step.",
            "step=",
            "Correct the address, or click a step in the picture.",
        )
    ranks = chosen_ranks(run, query)
    phase = run.catalogue.phase(query.phase)
    rows, num_unread = _rows_at(
        StepTables(view.series, run, phase), ranks, number, view.budget
    )
    if not rows and num_unread == 0:
        raise NotFoundError(
            "No rank has recorded this step.",
            f"step={number}",
            "Choose another one: steps that ran again after a restart count once.",
        )
    seconds = np.array([one.high[0] for _, one in rows], np.float64)
    order = np.argsort(-np.nan_to_num(seconds, nan=-np.inf), kind="stable")[:MAX_RANKS]
    listed = [rows[int(at)] for at in order]
    parts: tuple[StepPart, ...] = ()
    if listed:
        stacked = np.stack([one.part_high[:, 0] for _, one in listed], axis=1)
        parts = parts_of(seconds[order], stacked)
    start_ms = [one.end_ms[0] - 1e3 * np.nan_to_num(one.high[0]) for _, one in listed]
    values: dict[str, Iterable[Any]] = {
        "rank": [rank for rank, _ in listed],
        "host": [run.rank_files(rank)[-1][1].header.host for rank, _ in listed],
        "seconds": seconds[order],
        **{f"{part.name}_seconds": part.seconds for part in parts},
        "start_ms": start_ms,
        "end_ms": [one.end_ms[0] for _, one in listed],
    }
    columns = [*_RANKS, *(_part_column(part.name) for part in parts)]
    series = memory_series(run, phase)
    if series is not None:
        title = "Allocated peak" if "allocated" in series else "RSS"
        columns.append(Column(series.rpartition("/")[2], title, unit="bytes"))
        values[columns[-1].key] = _memory(view, series, phase, listed, number)
    longest = {"longest": float(np.nan_to_num(seconds).max(initial=0.0))}
    return StepResponse(
        run=view.summary,
        step=number,
        num_ranks=len(rows),
        num_unread=num_unread,
        ranks=titled(
            table_of(
                [*columns, *_TIMES],
                values,
                "seconds",
                len(rows),
                more={one.key: longest for one in columns if one.bar},
            ),
            f"Step {number:,} on every rank",
            "",
            "No rank has this step.",
        ),
    )


def _part_column(name: str) -> Column:
    title, _ = part_words(name)
    words = f"{title}; the bar is its share of the longest step"
    return Column(f"{name}_seconds", title, unit="seconds", help=words, bar=name)


def _rows_at(
    tables: StepTables, ranks: Sequence[int], number: int, budget: Budget
) -> tuple[list[tuple[int, StepRows]], int]:
    """The step on each rank that has it, and how many could not be read in time."""
    found, num_unread = [], 0
    for rank in ranks:
        held = tables.rollup(rank) if budget.allows() else None
        if held is None:
            num_unread += budget.exhausted
            continue
        at = int(np.searchsorted(held.last, number, "left"))
        if at >= len(held) or held.first[at] > number:
            continue
        row: StepRows | None = held.take(np.array([at]))
        if held.width > 1:
            row = tables.between(rank, number, number, budget)
            if row is None:
                num_unread += budget.exhausted
                continue
        if row is not None:
            found.append((rank, row))
    return found, num_unread


def _memory(
    view: View[StepQuery],
    series: str,
    phase: str,
    listed: Sequence[tuple[int, StepRows]],
    number: int,
) -> Floats:
    """The step's memory peak; of what was rolled up, the highest of its bucket."""
    values = np.full(len(listed), np.nan)
    table, _, column = series.partition("/")
    key = SeriesKey(table, column, phase or TRAIN_PHASE)
    source = RankRows(view.series, view.run, key, x_axis(view.run, "step"))
    for row, (rank, _) in enumerate(listed):
        rows = source.rollup(rank)
        if rows is not None and rows.width > 1:
            rows = source.refined(rank, rows, number, number, view.budget)
        if rows is None:
            continue
        at = int(np.searchsorted(rows.last, number, "left"))
        if at < len(rows) and rows.first[at] <= number:
            values[row] = rows.high[at]
    return values


Part = Annotated[
    str,
    Meta(
        pattern=rf"^({'|'.join(_COMPARED)})\Z",
        description="one of " + ", ".join(_COMPARED),
    ),
]


class StepHeatmapQuery(MatrixQuery, frozen=True):
    """What is compared: the step's time, or one part of it."""

    part: Part = STEP


@of_run("step_heatmap", StepHeatmapQuery, prefetches="series", seconds=None)
def step_heatmap(view: View[StepHeatmapQuery]) -> StepHeatmapResponse:
    # Answer `/step_heatmap`
    reader, run, query = view.series, view.run, view.query
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
        source, ranks, rolled, x0, x1, min(px, int(x1 - x0) + 1), view.budget
    )
    edges, per_column = step_edges(x0, x1, px)
    seconds = matrix(rows, edges)
    values = _values(view, phase, ranks, seconds, edges)
    pct = np.clip(relative_pct(values, seconds), -MOST_PCT, MOST_PCT)
    widest = max([1, *(row.width for row in rows if row is not None)])
    series = _series(query.part, len(ranks))
    cells = cells_response(
        StepHeatmapResponse,
        view.summary,
        series,
        ranks,
        pct,
        edges,
        num_rows,
        x_low=low,
        x_high=high,
        exact=widest <= per_column and not run.unfinished,
        marks=marks_of(reader, run, axis, ranks),
    )
    return cells if cells.values.any() else replace(cells, series=None)


def _series(part: str, num_ranks: int) -> SeriesInfo:
    column = STEP_TIME if part == STEP else f"{part}_seconds"
    label, _ = part_words(part)
    return SeriesInfo(
        label=label,
        key=f"step/{column}",
        unit="percent",
        group="timing",
        headline=True,
        num_ranks=num_ranks,
    )


def _values(
    view: View[StepHeatmapQuery],
    phase: str,
    ranks: Sequence[int],
    seconds: Floats,
    edges: Floats,
) -> Floats:
    """What is compared: the step's time, or a part of it, in the same cells."""
    part = view.query.part
    if part == STEP:
        return seconds
    if part != OTHER:
        return _of_part(view, part, phase, ranks, edges)
    parts = [_of_part(view, name, phase, ranks, edges) for name in PARTS]
    return other_part(seconds, np.stack(parts))


def _of_part(
    view: View[StepHeatmapQuery],
    part: str,
    phase: str,
    ranks: Sequence[int],
    edges: Floats,
) -> Floats:
    key = SeriesKey("step", f"{part}_seconds", phase)
    source = RankRows(view.series, view.run, key, x_axis(view.run, "step"))
    rolled: list[Rows | None] = [source.rollup(rank) for rank in ranks]
    low, high = float(edges[0]), float(edges[-1] - 1)
    rows = refined_rows(source, ranks, rolled, low, high, len(edges) - 1, view.budget)
    return matrix(rows, edges)
