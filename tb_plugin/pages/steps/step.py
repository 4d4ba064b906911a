"""Routes `/step` and `/step_heatmap`: one step, or all, on every rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta
from msgspec.structs import replace

from memboard.tb_plugin.analysis.series.labels import part_words
from memboard.tb_plugin.analysis.series.step_parts import (
    OTHER,
    PARTS,
    STEP,
)
from memboard.tb_plugin.api.time.steps import StepHeatmapResponse, StepResponse
from memboard.tb_plugin.api.timeline import SeriesInfo
from memboard.tb_plugin.contract.errors import BadRequestError, NotFoundError
from memboard.tb_plugin.contract.parameters import Count
from memboard.tb_plugin.contract.table import Column, table_of, titled
from memboard.tb_plugin.facts.ranks.columns import STEP_TIME
from memboard.tb_plugin.facts.series.marks import marks_of
from memboard.tb_plugin.facts.series.matrix import cells_response
from memboard.tb_plugin.facts.series.selection import (
    MatrixQuery,
    RanksQuery,
    chosen_ranks,
    x_axis,
)
from memboard.tb_plugin.facts.steps.one_step import relative_step_cells, step_on_ranks
from memboard.tb_plugin.facts.steps.step_tables import memory_series
from memboard.tb_plugin.server.views.run import of_run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memboard.tb_plugin.facts.view import View

MAX_RANKS: Final = 1024

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
    series = memory_series(run, phase)
    on_ranks = step_on_ranks(view, ranks, phase, number, series, MAX_RANKS)
    if not on_ranks.num_ranks and not on_ranks.num_unread:
        raise NotFoundError(
            "No rank has recorded this step.",
            f"step={number}",
            "Choose another one: steps that ran again after a restart count once.",
        )
    values: dict[str, Iterable[Any]] = {
        "rank": on_ranks.ranks,
        "host": [run.rank_files(rank)[-1][1].header.host for rank in on_ranks.ranks],
        "seconds": on_ranks.seconds,
        **{f"{part.name}_seconds": part.seconds for part in on_ranks.parts},
        "start_ms": on_ranks.start_ms,
        "end_ms": on_ranks.end_ms,
    }
    columns = [*_RANKS, *(_part_column(part.name) for part in on_ranks.parts)]
    if series is not None:
        title = "Allocated peak" if "allocated" in series else "RSS"
        columns.append(Column(series.rpartition("/")[2], title, unit="bytes"))
        values[columns[-1].key] = on_ranks.memory_bytes
    longest = {"longest": on_ranks.longest_seconds}
    return StepResponse(
        run=view.summary,
        step=number,
        num_ranks=on_ranks.num_ranks,
        num_unread=on_ranks.num_unread,
        ranks=titled(
            table_of(
                [*columns, *_TIMES],
                values,
                "seconds",
                on_ranks.num_ranks,
                more={column.key: longest for column in columns if column.bar},
            ),
            f"Step {number:,} on every rank",
            "",
            "No rank has this step.",
        ),
    )


def _part_column(part: str) -> Column:
    title, _ = part_words(part)
    help_text = f"{title}; the bar is its share of the longest step"
    return Column(f"{part}_seconds", title, unit="seconds", help=help_text, bar=part)


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
    run = view.run
    cells = relative_step_cells(view, view.query.part)
    ranks, steps = cells.ranks, cells.steps
    response = cells_response(
        StepHeatmapResponse,
        view.summary,
        _series(view.query.part, len(ranks)),
        ranks,
        steps.values,
        steps.edges,
        cells.num_rows,
        x_low=steps.low,
        x_high=steps.high,
        exact=steps.is_exact and not run.unfinished,
        marks=marks_of(view.series, run, x_axis(run, "step"), ranks),
    )
    return response if response.values.any() else replace(response, series=None)


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
