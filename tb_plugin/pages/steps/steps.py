"""Route `/steps`: the steps' time by part, and the throughput, over one x axis.

Columns hold whole steps, and each shows the slowest step inside it: of one rank, of the
rank that was slowest there, or of the rank in the middle there. On axes of time a
column reaches from the end of the one before it to the end of its own last step, by the
clock of one rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.series.buckets import windows
from memboard.tb_plugin.analysis.series.heatmap import step_edges
from memboard.tb_plugin.analysis.series.profiler_steps import usual_columns
from memboard.tb_plugin.analysis.series.step_parts import (
    PARTS,
    median_ranks,
    slowest_in,
    slowest_parts,
    worst_ranks,
)
from memboard.tb_plugin.api.steps import StepsOf, StepsResponse
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.wire import f64, i32
from memboard.tb_plugin.facts.ranks.rank_facts import ALLOCATED, RSS
from memboard.tb_plugin.facts.series.marks import marks_of
from memboard.tb_plugin.facts.series.matrix import matrix, refined_rows
from memboard.tb_plugin.facts.series.selection import (
    DrawnQuery,
    RankRows,
    chosen_ranks,
    extent,
    x_axis,
)
from memboard.tb_plugin.facts.steps.profiler_steps import MAX_SHOWN, profiler_steps
from memboard.tb_plugin.facts.steps.rates import Rates, as_rates, summed_rates
from memboard.tb_plugin.facts.steps.step_tables import (
    StepTables,
    absent_parts,
    parts_of,
)
from memboard.tb_plugin.facts.view import of_run
from memboard.tb_plugin.pages.steps.rate_words import worded

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Floats, Indices
    from memboard.tb_plugin.analysis.series.step_parts import StepRows
    from memboard.tb_plugin.api.steps import AbsentPart
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.index.run import Run

MAX_COLUMNS: Final = 1000
"""Twenty columns of so many numbers stay below 200 KB."""

_STEP_SECONDS: Final = 0.4
"""Time for reading steps one by one, where buckets would do."""


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """One value per column of the picture."""

    step: Floats
    rank: npt.NDArray[np.int64]
    seconds: Floats
    parts: Floats
    exact: bool


class StepsQuery(DrawnQuery, frozen=True):
    """The parts of steps: of one rank, of the mean, or of the worst."""

    of: StepsOf | None = None


@of_run("steps", StepsQuery, prefetches="series", seconds=None)
def steps(view: View[StepsQuery]) -> StepsResponse:
    # Answer `/steps`
    reader, run, query, budget = view.series, view.run, view.query, view.budget
    wanted = chosen_ranks(run, query)
    phase = run.catalogue.phase(query.phase)
    axis = x_axis(run, query.x)
    tables = StepTables(reader, run, phase, axis)
    source = RankRows(reader, run, tables.key, x_axis(run, "step"))
    found = [(rank, source.rollup(rank)) for rank in wanted]
    ranks = [rank for rank, rows in found if rows is not None and len(rows)]
    rolled = [rows for _, rows in found if rows is not None and len(rows)]
    own = tables.rollup(ranks[0], keep=True) if ranks else None
    if own is None:
        return StepsResponse(
            run=view.summary,
            x=query.x,
            of=query.of or "worst",
            absent=absent_parts(run, None, set()),
            memory_series=memory_series(run, phase),
            phases=run.catalogue.phases,
        )
    low, high = extent(rolled)
    s0, s1 = _visible(query, own, low, high)
    edges, per_column = step_edges(s0, s1, min(query.px, MAX_COLUMNS))
    of: StepsOf = "rank" if len(ranks) == 1 else (query.of or "worst")
    if of == "rank":
        rows_of = np.zeros(len(edges) - 1, np.intp)
    else:
        refined = refined_rows(source, ranks, rolled, s0, s1, query.px, budget)
        values = matrix(refined, edges)
        rows_of = worst_ranks(values) if of == "worst" else median_ranks(values)
    cheap = Budget(_STEP_SECONDS, budget)
    shown = _columns(tables, own, ranks, rows_of, edges, cheap)
    rates = Rates(reader, run, phase, edges)
    own_rates = rates.of_rank(ranks[0], Budget(_STEP_SECONDS, budget))
    num_summed, together = summed_rates(run, rates, ranks, own_rates)
    profiled = profiler_steps(reader, run, ranks, phase, Budget(_STEP_SECONDS, budget))
    parts = parts_of(shown.seconds, shown.parts)
    flops = rates.flops(ranks[0], Budget(_STEP_SECONDS, budget))
    own_words = as_rates(own_rates, together, usual_columns(profiled, edges))
    absent = absent_parts(run, ranks[0], {part.name for part in parts})
    return StepsResponse(
        run=view.summary,
        x=query.x,
        of=of,
        rank=ranks[0],
        x_low=low if query.x == "step" else min(own.start_x, float(own.end_x[0])),
        x_high=high if query.x == "step" else float(own.end_x[-1]),
        edges=f64(_edges_on(own, edges, query)),
        steps_per_column=per_column,
        first_step=f64(edges[:-1]),
        shown_step=f64(shown.step),
        column_rank=i32(shown.rank),
        seconds=f64(shown.seconds),
        parts=parts,
        exact=shown.exact,
        num_ranks=len(ranks),
        num_summed=num_summed,
        rates=worded(own_words, flops, ranks[0], num_summed),
        flops=flops,
        grain=_grain(per_column, absent, exact=shown.exact, has_parts=bool(parts)),
        profiler_steps=profiled[:MAX_SHOWN],
        absent=absent,
        memory_series=memory_series(run, phase),
        marks=marks_of(reader, run, axis, ranks),
        phases=run.catalogue.phases,
    )


def _grain(
    per_column: int, absent: Sequence[AbsentPart], *, exact: bool, has_parts: bool
) -> str:
    """What a column stands for; and why it has no parts."""
    words = "Every step is drawn"
    if per_column > 1:
        words = f"Each column is the slowest of {per_column:,} steps"
    if not exact:
        words += "; its parts are estimated: zoom in for the steps"
    if has_parts or not absent:
        return f"{words}."
    reasons = {(one.reason, one.remedy) for one in absent}
    why = "The end of the page lists how to record each of them"
    if len(reasons) == 1:
        why = ". ".join(f"{one[:1].upper()}{one[1:]}" for one in reasons.pop() if one)
    return f"{words}. The parts of steps were not recorded. {why}."


def memory_series(run: Run, phase: str) -> str | None:
    """The step's memory peak: of the device, else resident."""
    key = run.catalogue.find(ALLOCATED, phase) or run.catalogue.find(RSS, phase)
    return None if key is None else key.text


def _visible(
    query: StepsQuery, own: StepRows, low: float, high: float
) -> tuple[float, float]:
    """The steps that were asked for, inside those there are."""
    if query.x == "step":
        x0 = low if query.x0 is None else float(np.ceil(query.x0))
        x1 = high if query.x1 is None else float(np.floor(query.x1))
    else:
        at = own.end_x
        x0, x1 = low, high
        if query.x0 is not None:
            first = min(int(np.searchsorted(at, query.x0, "left")), len(at) - 1)
            x0 = float(own.first[first])
        if query.x1 is not None:
            last = min(int(np.searchsorted(at, query.x1, "left")), len(at) - 1)
            x1 = float(own.last[last])
    x0, x1 = min(max(x0, low), high), min(max(x1, low), high)
    return (x0, x1) if x0 <= x1 else (x1, x0)


def _edges_on(own: StepRows, edges: Floats, query: StepsQuery) -> Floats:
    """Borders of the columns on the axis; of steps, halfway between two."""
    if query.x == "step":
        return edges - 0.5
    known = own.last.astype(np.float64)
    placed = np.interp(edges - 1, known, own.end_x)
    if edges[0] <= own.first[0]:
        placed[0] = min(own.start_x, float(placed[0]))
    result: Floats = np.maximum.accumulate(placed)
    return result


def _columns(
    tables: StepTables,
    own: StepRows,
    ranks: Sequence[int],
    rows_of: Indices,
    edges: Floats,
    cheap: Budget,
) -> _Columns:
    """The slowest step of each column, of the rank chosen there."""
    num = len(edges) - 1
    step, seconds = edges[:-1].copy(), np.full(num, np.nan)
    parts = np.full((len(PARTS), num), np.nan)
    shown_rank = np.full(num, -1, np.int64)
    exact = True
    for row in np.unique(rows_of[rows_of >= 0]):
        rank = ranks[int(row)]
        held = own if row == 0 else tables.rollup(rank)
        if held is None:
            continue
        if held.width > 1:
            finer = tables.between(rank, edges[0], edges[-1] - 1, cheap)
            held = held if finer is None else finer
        columns = np.flatnonzero(rows_of == row)
        start, stop = windows(held.first, held.last, edges)
        at = slowest_in(held.high, start[columns], stop[columns])
        columns, at = columns[at >= 0], at[at >= 0]
        seconds[columns] = held.high[at]
        parts[:, columns] = slowest_parts(held)[:, at]
        step[columns] = np.fmax(held.first[at], edges[columns])
        shown_rank[columns] = rank
        exact &= held.width == 1
    return _Columns(step, shown_rank, seconds, parts, exact)
