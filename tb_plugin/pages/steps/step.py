"""Route `/step`: one step on every rank, the slowest first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.series.step_parts import OTHER, PARTS, other_part
from tb_plugin.api.steps import StepPart, StepResponse
from tb_plugin.contract.wire import f64, i32
from tb_plugin.formats.recording.series import TRAIN_PHASE, SeriesKey
from tb_plugin.pages.of_run import of_run
from tb_plugin.pages.steps.steps import memory_series
from tb_plugin.pages.steps.tables import StepTables, absent_parts
from tb_plugin.pages.timeline.selection import (
    RankRows,
    RanksQuery,
    chosen_ranks,
    x_axis,
)
from tb_plugin.server.errors import BadRequestError, NotFoundError
from tb_plugin.server.parameters import Count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tb_plugin.analysis.arrays import Floats
    from tb_plugin.analysis.series.step_parts import StepRows
    from tb_plugin.api.base import RunSummary
    from tb_plugin.budget import Budget
    from tb_plugin.formats.recording.series import SeriesReader
    from tb_plugin.index.run import Run

MAX_RANKS: Final = 1024


class StepQuery(RanksQuery, frozen=True):
    """One step."""

    step: Count | None = None


@of_run("step", StepQuery, prefetches="series")
def step(
    reader: SeriesReader,
    run: Run,
    summary: RunSummary,
    query: StepQuery,
    budget: Budget,
) -> StepResponse:
    """Answer `/step`.

    Raises:
        BadRequestError: no step was named.
        NotFoundError: no rank has it.
    """
    number = query.step
    if number is None:
        raise BadRequestError(
            "The parameter step must be the number of a step.",
            "step=",
            "Correct the address, or click a step in the picture.",
        )
    ranks = chosen_ranks(run, query)
    phase = run.catalogue.phase(query.phase)
    rows, num_unread = _rows_at(StepTables(reader, run, phase), ranks, number, budget)
    if not rows and num_unread == 0:
        raise NotFoundError(
            "No rank has recorded this step.",
            f"step={number}",
            "Choose another one: steps that ran again after a restart count once.",
        )
    seconds = np.array([one.high[0] for _, one in rows], np.float64)
    order = np.argsort(-np.nan_to_num(seconds, nan=-np.inf), kind="stable")[:MAX_RANKS]
    listed = [rows[int(at)] for at in order]
    names = [run.rank_files(rank)[-1][1].header.host for rank, _ in listed]
    hosts = tuple(dict.fromkeys(names))
    memory = memory_series(run, phase)
    parts = _parts(listed)
    return StepResponse(
        run=summary,
        step=number,
        num_ranks=len(rows),
        num_unread=num_unread,
        ranks=i32([rank for rank, _ in listed]),
        host=i32([hosts.index(name) for name in names]),
        hosts=hosts,
        seconds=f64(seconds[order]),
        start_ms=f64([one.end_ms[0] - 1e3 * _known(one.high[0]) for _, one in listed]),
        end_ms=f64([one.end_ms[0] for _, one in listed]),
        parts=parts,
        memory_series=memory,
        memory_bytes=f64(_memory(reader, run, memory, phase, listed, number, budget)),
        absent=absent_parts(
            run, listed[0][0] if listed else None, {part.name for part in parts}
        ),
    )


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


def _parts(listed: Sequence[tuple[int, StepRows]]) -> tuple[StepPart, ...]:
    if not listed:
        return ()
    stacked = np.stack([one.part_high[:, 0] for _, one in listed], axis=1)
    seconds = np.array([one.high[0] for _, one in listed], np.float64)
    known = {
        name: values
        for name, values in zip(PARTS, stacked, strict=True)
        if not np.isnan(values).all()
    }
    if known:
        known[OTHER] = other_part(seconds, stacked)
    return tuple(
        StepPart(name=name, seconds=f64(values)) for name, values in known.items()
    )


def _memory(
    reader: SeriesReader,
    run: Run,
    series: str | None,
    phase: str,
    listed: Sequence[tuple[int, StepRows]],
    number: int,
    budget: Budget,
) -> Floats:
    """The step's memory peak; of what was rolled up, the highest of its bucket."""
    values = np.full(len(listed), np.nan)
    if series is None:
        return values
    table, _, column = series.partition("/")
    key = SeriesKey(table, column, phase or TRAIN_PHASE)
    source = RankRows(reader, run, key, x_axis(run, "step"))
    for row, (rank, _) in enumerate(listed):
        rows = source.rollup(rank)
        if rows is not None and rows.width > 1:
            rows = source.refined(rank, rows, number, number, budget)
        if rows is None:
            continue
        at = int(np.searchsorted(rows.last, number, "left"))
        if at < len(rows) and rows.first[at] <= number:
            values[row] = rows.high[at]
    return values


def _known(value: float) -> float:
    return 0.0 if math.isnan(value) else value
