"""Finds the ranks that others wait for, and the parts that slow their steps down."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import structs

from memboard.collector.format.sizes import agreeing, part_of
from memboard.tb_plugin.analysis.findings.steps import (
    growing,
    slow_every,
    waiting_for_data,
)
from memboard.tb_plugin.analysis.findings.stragglers import straggling
from memboard.tb_plugin.analysis.findings.text import duration_text
from memboard.tb_plugin.analysis.ranks.stragglers import (
    StepTimes,
    median_known,
    middle_of,
    middle_rank,
    stragglers,
    usual_parts,
)
from memboard.tb_plugin.analysis.series.buckets import windows
from memboard.tb_plugin.analysis.series.heatmap import step_edges
from memboard.tb_plugin.analysis.series.labels import part_words
from memboard.tb_plugin.analysis.series.profiler_steps import usual_columns
from memboard.tb_plugin.analysis.series.step_parts import (
    OTHER,
    PARTS,
    STEP,
    other_part,
    pooled_means,
)
from memboard.tb_plugin.api.time.steps import StepPartMean, StragglersResponse
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.wire import finite
from memboard.tb_plugin.facts.ranks.columns import STEP_TIME
from memboard.tb_plugin.facts.ranks.overload import overloaded
from memboard.tb_plugin.facts.ranks.rank_numbers import RankNumbers
from memboard.tb_plugin.facts.series.selection import (
    RankRows,
    RanksQuery,
    chosen_ranks,
    extent,
    x_axis,
)
from memboard.tb_plugin.facts.steps.profiler_steps import profiler_steps
from memboard.tb_plugin.facts.steps.step_tables import StepTables
from memboard.tb_plugin.facts.steps.straggler_table import straggler_table
from memboard.tb_plugin.facts.view import loader_workers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.analysis.ranks.stragglers import Straggler
    from memboard.tb_plugin.analysis.series.step_parts import StepRows
    from memboard.tb_plugin.api.findings import Finding
    from memboard.tb_plugin.api.time.steps import ProfilerStep
    from memboard.tb_plugin.facts.ranks.rank_facts import FactsReader
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.index.run import Run

_NAMED: Final = 3
"""Parts of a step in a sentence."""
_STAMP: Final = "step times"
_COLUMNS: Final = 1024
_PART_COLUMNS: Final = 256
"""Parts are compared in means over so many stretches: all of them are held at once."""
_NEWEST_STEPS: Final = 4096
"""Single steps of one rank among which slow ones are counted."""


class StragglersReader:
    """What slows the steps of runs down, cached of a whole run until that changes."""

    def __init__(self, facts: FactsReader) -> None:
        """`facts` tell how long a step of each rank takes."""
        self._facts = facts
        self._cached: WeakKeyDictionary[Run, tuple[object, StragglersResponse]] = (
            WeakKeyDictionary()
        )

    def of(self, view: View[RanksQuery]) -> StragglersResponse:
        """Ranks by what they cost the others, parts of a step, and findings about both.

        Hold the run's lock.
        """
        run, budget = view.run, view.budget
        stamp = run.version, view.summary
        stamped = self._cached.get(run)
        is_all = structs.replace(view.query, run="") == RanksQuery()
        if is_all and stamped is not None and stamped[0] == stamp:
            return stamped[1]
        response = _stragglers_of(view, self._facts)
        if is_all and not (budget.exhausted or budget.put_off or run.unfinished):
            self._cached[run] = stamp, response
        return response


def _stragglers_of(view: View[RanksQuery], facts: FactsReader) -> StragglersResponse:
    reader, run, query = view.series, view.run, view.query
    wanted = chosen_ranks(run, query)
    tables = StepTables(reader, run, run.catalogue.phase(query.phase))
    source = RankRows(reader, run, tables.key, x_axis(run, "step"))
    steps = {rank: source.rollup(rank) for rank in wanted}
    low, high = (int(step) for step in extent(steps.values()))
    edges, per_column = step_edges(low, high, _COLUMNS)
    coarse, _ = step_edges(low, high, _PART_COLUMNS)
    read: dict[int, Floats] = {}
    widest = 1
    for rank, rows in steps.items():
        if rows is None or not view.budget.allows():
            continue
        # Kept, so that a run of thousands of ranks comes to an end over a few polls.
        key = (_STAMP, source.stamps([rank]), low, high)
        pooled = reader.derived(key, partial(_pooled, tables, rank, edges, coarse))
        if pooled is not None:
            read[rank] = pooled
            widest = max(widest, rows.width)
    if not read:
        return StragglersResponse(run=view.summary, num_left_out=len(wanted))
    profiled = profiler_steps(
        reader, run, read, tables.key.phase, Budget(0.5, view.budget)
    )
    times = _times(read, len(edges) - 1, len(coarse) - 1)
    usual_steps = usual_columns(profiled, edges, widest)
    times.seconds[:, ~usual_steps] = np.nan
    left_out = ~usual_columns(profiled, coarse, widest)
    for values in (times.coarse_seconds, *times.parts.values()):
        values[:, left_out] = np.nan
    ordered = stragglers(times)
    own_seconds = _own_seconds(view, facts, tables.key.phase, times)
    usual = middle_of(own_seconds)
    hosts = {rank: run.rank_files(rank)[-1][1].header.host for rank in read}
    standing_out = [straggler for straggler in ordered if straggler.stands_out]
    findings: list[Finding] = []
    if view.summary.virtual_gpu:
        standing_out = []  # its times are not real
    elif (overload := overloaded(reader, run, hosts)) is not None:
        standing_out, findings = [], [overload]
    else:
        made = _findings(
            run, tables, times, edges, standing_out, hosts, usual, profiled
        )
        findings = [finding for finding in made if finding is not None]
    first = ordered[0].rank if ordered else None
    parts = _part_means(times, own_seconds, usual, first)
    num_steps = high - low + 1
    num_profiled = _num_left_out(profiled, low, high, usual_steps)
    return StragglersResponse(
        run=view.summary,
        num_ranks=len(read),
        num_steps=num_steps,
        sentence=_sentence(usual, len(read), parts, num_profiled, num_steps),
        step_seconds=finite(usual),
        parts=parts,
        ranks=straggler_table(
            ordered,
            hosts,
            num_standing_out=len(standing_out),
            num_read=len(read),
            num_left_out=len(wanted) - len(read),
            num_per_column=max(per_column, widest),
        ),
        late=tuple(straggler.rank for straggler in standing_out),
        num_left_out=len(wanted) - len(read),
        part=standing_out[0].part if standing_out and standing_out[0].by_part else STEP,
        findings=tuple(
            sorted(findings, key=lambda finding: finding.cost or 0.0, reverse=True)
        ),
    )


def _pooled(
    tables: StepTables, rank: int, edges: Floats, coarse: Floats
) -> Floats | None:
    """Means of a rank's steps over `edges`; then of its parts, and steps, over `coarse`.

    One flat array of float32: thousands of them are kept.
    """
    rows = tables.rollup(rank)
    if rows is None:
        return None
    seconds = pooled_means(rows.mean, *windows(rows.first, rows.last, edges))
    together = np.concatenate([rows.part_mean, rows.mean[None]])
    parts = pooled_means(together, *windows(rows.first, rows.last, coarse))
    return np.concatenate([seconds, parts.ravel()]).astype(np.float32)


def _times(read: Mapping[int, Floats], num_columns: int, num_coarse: int) -> StepTimes:
    """Means of all ranks on the same columns; parts on fewer ones."""
    rows = np.stack(list(read.values()))
    parts = rows[:, num_columns:].reshape(len(read), len(PARTS) + 1, num_coarse)
    return StepTimes(
        ranks=tuple(read),
        seconds=rows[:, :num_columns].astype(np.float64),
        parts={
            part: parts[:, index].astype(np.float64)
            for index, part in enumerate(PARTS)
            if not np.isnan(parts[:, index]).all()
        },
        coarse_seconds=parts[:, -1].astype(np.float64),
    )


def _own_seconds(
    view: View[RanksQuery], facts: FactsReader, phase: str, times: StepTimes
) -> Floats:
    """(ranks,): seconds of each rank's step, as Overview and Compare have them.

    Of another phase than theirs, and of a rank that is not read yet, the median of what
    was read here.
    """
    of_columns = np.array([median_known(seconds) for seconds in times.seconds])
    if phase != view.run.catalogue.phase(None):
        return of_columns
    numbers = RankNumbers(facts, view.run, view.budget)
    seconds = numbers.highest(times.ranks, STEP_TIME).value
    return np.where(np.isnan(seconds), of_columns, seconds)


def _num_left_out(
    profiled: Sequence[ProfilerStep], low: int, high: int, usual: npt.NDArray[np.bool_]
) -> int:
    """Steps of the profiler's own between two; 0 where they had to be counted."""
    if usual.all():
        return 0
    steps = {
        step
        for profiler_step in profiled
        for step in range(
            max(profiler_step.first, low), min(profiler_step.last, high) + 1
        )
    }
    return len(steps)


def _part_means(
    times: StepTimes, own_seconds: Floats, usual: float, first: int | None
) -> tuple[StepPartMean, ...]:
    """Parts that sum to the step: of all ranks in the mean, and of single ranks.

    `own_seconds`: (ranks,) of each rank's step; `usual`: the middle one of them; `first`:
    the rank of the first row.
    """
    if not times.parts:
        return ()
    stacked = np.stack(list(times.parts.values()))
    other = other_part(times.coarse_seconds, stacked)
    parts = {**times.parts, OTHER: other}
    is_known = ~np.isnan(other) & (times.coarse_seconds > 0)
    if not is_known.any():
        return ()
    whole = float(times.coarse_seconds[is_known].mean())
    middle = middle_rank(own_seconds, is_known)
    of_usual = usual_parts(times, parts, middle, usual)
    of_first: Mapping[str, float] = {}
    if first is not None:
        row = times.ranks.index(first)
        of_first = usual_parts(times, parts, row, float(own_seconds[row]))
    return tuple(
        StepPartMean(
            part,
            *part_words(part),
            seconds=(
                mean := float(np.nansum(values[is_known])) / np.count_nonzero(is_known)
            ),
            share=mean / whole,
            usual=of_usual.get(part),
            of_first=of_first.get(part),
        )
        for part, values in parts.items()
        if not np.isnan(values[is_known]).all()
    )


def _findings(
    run: Run,
    tables: StepTables,
    times: StepTimes,
    edges: Floats,
    late: Sequence[Straggler],
    hosts: Mapping[int, str],
    usual: float,
    profiled: Sequence[ProfilerStep],
) -> Iterator[Finding | None]:
    if not usual > 0:
        return
    yield waiting_for_data(times, usual, partial(loader_workers, run))
    yield straggling(late, hosts, usual, len(times.ranks))
    rank = times.ranks[0]
    single = _single_steps(tables, rank)
    if single is not None:
        parts = {
            part: values
            for part, values in zip(PARTS, single.part_high, strict=True)
            if not np.isnan(values).all()
        }
        edges_of = np.append(single.first, single.last[-1] + 1).astype(np.float64)
        counted = usual_columns(profiled, edges_of)
        high = np.where(counted, single.high, np.nan)
        collected = tables.collected(rank, single.first, Budget(0.5))
        yield slow_every(single.first, high, parts, rank, collected)
    yield growing(edges[:-1].astype(np.int64), times)


def _single_steps(tables: StepTables, rank: int) -> StepRows | None:
    """The newest steps of a rank one by one; None where they cannot be read in time."""
    rows = tables.rollup(rank)
    if rows is None or rows.width == 1:
        return rows
    last = int(rows.last[-1])
    return tables.between(rank, last - _NEWEST_STEPS + 1, last, Budget(0.5))


def _sentence(
    usual: float,
    num_ranks: int,
    parts: Sequence[StepPartMean],
    num_profiled: int,
    num_steps: int,
) -> str:
    """How long a step takes, the parts that take most of it, and what was left out."""
    most = sorted(((part.usual or 0.0, part.name) for part in parts), reverse=True)
    parts_text = ", ".join(
        f"{part} {duration_text(took)}" for took, part in most[:_NAMED] if took > 0
    )
    whose = " on the median rank" if num_ranks > 1 else ""
    took = "an unknown time" if math.isnan(usual) else duration_text(usual)
    first = f"A step takes {took}{whose}{f': {parts_text}' if parts_text else ''}."
    if not num_profiled:
        return first
    return (
        f"{first} {part_of(num_profiled, num_steps, 'step')}"
        f" {agreeing(num_profiled, 'is', 'are')} not counted:"
        f" {agreeing(num_profiled, 'a trace or a capture', 'traces or captures')} took"
        f" {agreeing(num_profiled, 'its', 'their')} time."
    )
