"""One side of a comparison of runs: the numbers of a run, or of one of its ranks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.series.heatmap import step_edges
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.facts.comparison.difference import Difference
from memboard.tb_plugin.facts.modules.choice import WindowQuery, choose
from memboard.tb_plugin.facts.modules.tracked_peak import tracked_peak
from memboard.tb_plugin.facts.ranks.columns import ALLOCATED, RESERVED, RSS, STEP_TIME
from memboard.tb_plugin.facts.ranks.rank_numbers import RankNumbers
from memboard.tb_plugin.facts.ranks.rank_strip import standing_of, strip_of
from memboard.tb_plugin.facts.series.selection import (
    RankRows,
    RanksQuery,
    chosen_ranks,
    extent,
    x_axis,
)
from memboard.tb_plugin.facts.steps.rates import MAX_COLUMNS, run_rates
from memboard.tb_plugin.facts.steps.step_tables import StepTables
from memboard.tb_plugin.facts.view import View
from memboard.tb_plugin.index.store import REQUEST_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.compare import CompareBy
    from memboard.tb_plugin.facts.ranks.rank_strip import Strip
    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.formats.recording.series import SeriesReader
    from memboard.tb_plugin.index.run import Run

Key: TypeAlias = Literal[
    "peak_allocated",
    "peak_reserved",
    "rss_peak",
    "growth",
    "rss_growth",
    "step_time",
    "samples",
    "tokens",
    "ooms",
]

_MAX_SUMMED: Final = 64
"""Of more ranks the throughput of one is compared: a sum over all takes a second."""

_MAX_ROWS: Final = 200
"""Of a table of differences."""

_COLUMNS: Final[Mapping[Key, str]] = {
    "peak_allocated": ALLOCATED,
    "peak_reserved": RESERVED,
    "rss_peak": RSS,
    "step_time": STEP_TIME,
}


@dataclass(frozen=True, slots=True)
class Number:
    """A number, and the rank whose it is; None: the side's own."""

    value: float
    rank: int | None
    spread: float = 0.0
    """Noise of its steps: what differs by less is alike."""


@dataclass(frozen=True, slots=True)
class Window:
    """What a tracked step held at its peak."""

    moment: str
    by: Mapping[str, Mapping[str, float]]
    """By category, and by module."""

    @property
    def total_bytes(self) -> float:
        """All tensors, in modules or not."""
        return sum(self.by["category"].values())


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared of a run or a rank."""

    summary: RunSummary
    version: object
    rank: int | None
    numbers: Mapping[Key, Number]
    totals: Mapping[Key, Number]
    """Throughput of all ranks together, where that is known."""
    window: Window | None
    goes_on: bool


def side_of(readers: RunReaders, run_id: str, rank: int | None) -> Side:
    """A run's side; `rank` None: of all its ranks, the worst of each number."""
    with readers.reading(run_id, REQUEST_SECONDS, readers.facts.of_file) as reading:
        run, series = reading.run, readers.store.series
        budget = Budget(REQUEST_SECONDS)
        ranks = chosen_ranks(run, RanksQuery(run=run_id, rank=rank))
        rank_numbers = RankNumbers(readers.facts, run, budget)
        goes_on = reading.goes_on or rank_numbers.num_unread(ranks) > 0
        numbers: Mapping[Key, Number] = {}
        totals: Mapping[Key, Number] = {}
        if ranks and not goes_on:
            strip = strip_of(run, ranks, rank_numbers)
            numbers, totals = run_numbers(series, run, strip, rank_numbers)
        summary = readers.summary(run)
        view = View(series, run, summary, WindowQuery(run=run_id, rank=rank), budget)
        window = _window(readers, view)
        if goes_on:
            run.expect_more()  # what was read is kept: the next poll goes on
        return Side(summary, run.version, rank, numbers, totals, window, goes_on)


def run_numbers(
    series: SeriesReader, run: Run, strip: Strip, rank_numbers: RankNumbers
) -> tuple[Mapping[Key, Number], Mapping[Key, Number]]:
    """The worst of a strip's ranks; and the throughput of all of them together.

    Hold the run's lock, and read its ranks before.
    """
    ranks = strip.ranks
    numbers: dict[Key, Number] = {}
    totals: dict[Key, Number] = {}
    for key, column in _COLUMNS.items():
        highest = rank_numbers.highest(ranks, column).value
        worst = _worst(ranks, highest)
        if worst is not None:
            of_rank = ranks[0] if worst.rank is None else worst.rank
            spread = rank_numbers.spread(of_rank, column)
            numbers[key] = replace(worst, spread=spread)
    columns: dict[Key, Floats] = {
        "growth" if strip.peak == ALLOCATED else "rss_growth": strip.growth,
        "ooms": standing_of(run, strip, rank_numbers).num_ooms,
    }
    for name, values in columns.items():
        worst = _worst(ranks, values)
        if worst is not None:
            numbers[name] = worst
    _throughput(series, run, ranks, numbers, totals)
    return numbers, totals


def _worst(ranks: Sequence[int], values: Floats) -> Number | None:
    if np.isnan(values).all():
        return None
    row = int(np.nanargmax(values))
    return Number(float(values[row]), ranks[row] if len(ranks) > 1 else None)


def _throughput(
    series: SeriesReader,
    run: Run,
    ranks: Sequence[int],
    own: dict[Key, Number],
    totals: dict[Key, Number],
) -> None:
    """Median samples and tokens a second, as `/steps` has them."""
    phase = run.catalogue.phase(None)
    source = RankRows(
        series, run, StepTables(series, run, phase).key, x_axis(run, "step")
    )
    summed = ranks if len(ranks) <= _MAX_SUMMED else ranks[:1]
    rows = [(rank, source.rollup(rank)) for rank in summed]
    stepped = [rank for rank, row in rows if row is not None and len(row)]
    if not stepped:
        return
    edges, _ = step_edges(*extent(row for _, row in rows), MAX_COLUMNS)
    keys: tuple[Key, ...] = ("samples", "tokens")
    for rate in run_rates(series, run, phase, stepped, edges).rates:
        for key in keys:
            if rate.key != key or rate.median is None:
                continue
            is_all = len(ranks) == 1
            own[key] = Number(rate.median, None if is_all else stepped[0])
            total = rate.median if is_all else rate.summed_median
            if total is not None and len(stepped) == len(ranks):
                totals[key] = Number(total, None)


def _window(readers: RunReaders, view: View[WindowQuery]) -> Window | None:
    """The tracked step that Modules opens at."""
    choice = choose(readers.modules, view)
    if choice is None or choice.opened is None:
        return None
    peak = tracked_peak(choice.opened.memory, choice.device)
    if peak is None:
        return None
    modules = {module: sum(sizes.values()) for module, sizes in peak.by_module.items()}
    step = choice.ranks[choice.rank].step
    call = choice.key.function if step is None else f"step {step:,}"
    moment = f"{call}, rank {choice.rank}"
    return Window(moment, {"category": peak.by_category, "module": modules})


def window_differences(a: Window | None, b: Window | None) -> Iterator[Difference]:
    """By category and module, the largest first; NaN of a side that tracked nothing."""
    sides = (a, b)
    if a is None and b is None:
        return
    kinds: tuple[CompareBy, ...] = ("category", "module")
    for by in kinds:
        by_label = [{} if side is None else side.by[by] for side in sides]
        labels = list(dict.fromkeys((*by_label[0], *by_label[1])))
        sizes = np.array(
            [[of.get(label, 0.0) for of in by_label] for label in labels]
        ).reshape(-1, 2)
        size, change = sizes.max(axis=1), np.abs(sizes[:, 1] - sizes[:, 0])
        order = np.lexsort((-size, -change))[:_MAX_ROWS]
        order = order[size[order] > 0]
        sizes[:, [side is None for side in sides]] = np.nan
        names = [labels[row] for row in order.tolist()]
        yield Difference(by, names, sizes[order])
