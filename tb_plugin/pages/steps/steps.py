"""Route `/steps`: the steps' time by part, and the throughput, over one x axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memboard.collector.format.sizes import capitalized
from memboard.tb_plugin.api.base import f64, i32
from memboard.tb_plugin.api.time.steps import StepsOf, StepsResponse
from memboard.tb_plugin.facts.series.marks import marks_of
from memboard.tb_plugin.facts.series.selection import DrawnQuery, x_axis
from memboard.tb_plugin.facts.steps.profiler_steps import MAX_SHOWN
from memboard.tb_plugin.facts.steps.rates import run_rates, step_flops
from memboard.tb_plugin.facts.steps.step_columns import step_columns
from memboard.tb_plugin.facts.steps.step_tables import (
    absent_parts,
    memory_series,
    parts_of,
)
from memboard.tb_plugin.pages.steps.rate_words import worded
from memboard.tb_plugin.server.views.run import of_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.api.time.steps import AbsentPart
    from memboard.tb_plugin.facts.view import View


class StepsQuery(DrawnQuery, frozen=True):
    """The parts of steps: of one rank, of the mean, or of the worst."""

    of: StepsOf | None = None


@of_run("steps", StepsQuery, prefetches="series", seconds=None)
def steps(view: View[StepsQuery]) -> StepsResponse:
    # Answer `/steps`
    reader, run, query = view.series, view.run, view.query
    phase = run.catalogue.phase(query.phase)
    columns = step_columns(view, query.of)
    if columns is None:
        return StepsResponse(
            run=view.summary,
            x=query.x,
            of=query.of or "worst",
            absent=absent_parts(run, None, set()),
            memory_series=memory_series(run, phase),
            phases=run.catalogue.phases,
        )
    ranks, slowest = columns.ranks, columns.slowest
    rates = run_rates(reader, run, phase, ranks, columns.edges)
    parts = parts_of(slowest.seconds, slowest.parts)
    flops = step_flops(reader, run, phase, ranks[0])
    absent = absent_parts(run, ranks[0], {part.name for part in parts})
    return StepsResponse(
        run=view.summary,
        x=query.x,
        of=columns.of,
        rank=ranks[0],
        x_low=columns.x_low,
        x_high=columns.x_high,
        edges=f64(columns.edges_x),
        steps_per_column=columns.per_column,
        first_step=f64(columns.edges[:-1]),
        shown_step=f64(slowest.step),
        column_rank=i32(slowest.rank),
        seconds=f64(slowest.seconds),
        parts=parts,
        exact=slowest.is_exact,
        num_ranks=len(ranks),
        num_summed=rates.num_summed,
        rates=worded(rates.rates, flops, ranks[0], rates.num_summed),
        flops=flops,
        grain=_grain(
            columns.per_column,
            absent,
            exact=slowest.is_exact,
            has_parts=bool(parts),
        ),
        profiler_steps=rates.profiled[:MAX_SHOWN],
        absent=absent,
        memory_series=memory_series(run, phase),
        marks=marks_of(reader, run, x_axis(run, query.x), ranks),
        phases=run.catalogue.phases,
    )


def _grain(
    per_column: int, absent: Sequence[AbsentPart], *, exact: bool, has_parts: bool
) -> str:
    """What a column stands for; and why it has no parts."""
    sentence = "Every step is drawn"
    if per_column > 1:
        sentence = f"Each column is the slowest of {per_column:,} steps"
    if not exact:
        sentence += "; its parts are estimated: zoom in for the steps"
    if has_parts or not absent:
        return f"{sentence}."
    reasons = {(part.reason, part.remedy) for part in absent}
    why = "The end of the page lists how to record each of them"
    if len(reasons) == 1:
        why = ". ".join(capitalized(text) for text in reasons.pop() if text)
    return f"{sentence}. The parts of steps were not recorded. {why}."
