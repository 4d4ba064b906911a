"""Route `/compare_runs`: two runs, or ranks, by the numbers that every recording has.

Peaks, growth and step times are those of the Overview, throughput is that of Time, and
what modules hold that of Memory: one name is one number. All are made of digests and
roll-ups, so that thousands of ranks take no longer than the Overview does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.findings.text import duration_text, size_text
from tb_plugin.analysis.series.heatmap import step_edges
from tb_plugin.analysis.series.profiler_steps import usual_columns
from tb_plugin.api.compare import CompareRunsResponse, RunFigure, RunSide, RunTable
from tb_plugin.budget import Budget
from tb_plugin.contract.parameters import Query, Rank, Text
from tb_plugin.contract.routes import Asked, route
from tb_plugin.contract.wire import f64, finite
from tb_plugin.index.store import REQUEST_SECONDS
from tb_plugin.pages.modules.choice import WindowQuery, choose, readers
from tb_plugin.pages.modules.columns import group_of
from tb_plugin.pages.of_run import View
from tb_plugin.pages.overview.facts import ALLOCATED, RESERVED, RSS, STEP_TIME
from tb_plugin.pages.overview.rank_numbers import RankNumbers, standing_of, strip_of
from tb_plugin.pages.steps.profiler_steps import profiler_steps
from tb_plugin.pages.steps.rates import Rates, as_rates
from tb_plugin.pages.steps.steps import MAX_COLUMNS, summed_rates
from tb_plugin.pages.steps.tables import StepTables
from tb_plugin.pages.timeline.selection import (
    RankRows,
    RanksQuery,
    chosen_ranks,
    extent,
    x_axis,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tb_plugin.analysis.arrays import Floats
    from tb_plugin.api.base import RunSummary, Unit
    from tb_plugin.api.compare import FigureKey
    from tb_plugin.formats.recording.series import SeriesReader
    from tb_plugin.index.run import Run
    from tb_plugin.server.state import State

_FIGURES: Final[tuple[tuple[FigureKey, Unit], ...]] = (
    ("peak_allocated", "bytes"),
    ("peak_reserved", "bytes"),
    ("rss_peak", "bytes"),
    ("growth", "bytes_per_step"),
    ("rss_growth", "bytes_per_step"),
    ("step_time", "seconds"),
    ("samples", "per_second"),
    ("tokens", "per_second"),
    ("ooms", "count"),
)
_MAX_ROWS: Final = 200
_MAX_SUMMED: Final = 64
"""Of more ranks the throughput of one is compared: a sum over all takes a second."""
_RATE_SECONDS: Final = 0.4
_ALIKE: Final = 0.005
"""Peaks that differ by less of the larger one are about the same."""
_SLOWER: Final = 0.02
"""Of the other's step time: a smaller difference is noise."""
_MOST: Final = 0.5
"""Share of a difference that "mostly" means."""

_INDEX: Final = re.compile(r"(?<=\.)\d+(?=\.|$)|^\d+(?=\.|$)")
_CATEGORIES: Final = {
    "param": "parameters",
    "grad": "gradients",
    "optimizer": "optimizer states",
    "activation": "activations",
    "comm": "communication buffers",
    "temp": "temporary tensors",
}
"""Without the one that is unknown: it explains nothing."""


@dataclass(frozen=True, slots=True)
class _Number:
    value: float
    rank: int | None


@dataclass(frozen=True, slots=True)
class _Window:
    """What a tracked step held at its peak."""

    moment: str
    by: Mapping[str, Mapping[str, float]]
    """By category, and by module."""


@dataclass(frozen=True, slots=True)
class _Side:
    summary: RunSummary
    version: object
    rank: int | None
    num_ranks: int
    numbers: Mapping[FigureKey, _Number]
    totals: Mapping[FigureKey, _Number]
    """Throughput of all ranks together, where that is known."""
    window: _Window | None
    goes_on: bool


class CompareRunsQuery(Query, frozen=True):
    """Side A, and by `b_` side B."""

    rank: Rank | None = None
    b_run: Text | None = None
    """The run of A where none is named: two of its ranks."""
    b_rank: Rank | None = None


@route("compare_runs", CompareRunsQuery)
def compare_runs(asked: Asked[CompareRunsQuery]) -> CompareRunsResponse:
    """Read one run after the other; hold one lock at a time."""
    query = asked.query
    a = _side(asked.state, query.run, query.rank)
    b = _side(asked.state, query.b_run or query.run, query.b_rank)
    asked.decided_by(a.version, b.version, a.goes_on, b.goes_on, a.summary, b.summary)
    figures = tuple(_figures(a, b))
    tables = tuple(_tables(a.window, b.window))
    return CompareRunsResponse(
        a=_described(a),
        b=_described(b),
        sentence=_sentence(a, b, figures, tables),
        figures=figures,
        tables=tables,
        tables_of=_moments(a.window, b.window),
        still_reading=a.goes_on or b.goes_on,
    )


def _described(side: _Side) -> RunSide:
    return RunSide(run=side.summary, rank=side.rank, num_ranks=side.num_ranks)


def _side(state: State, run_id: str, rank: int | None) -> _Side:
    with state.reading(run_id, REQUEST_SECONDS, state.facts.of_file) as reading:
        run, series = reading.run, state.store.series
        budget = Budget(REQUEST_SECONDS)
        ranks = chosen_ranks(run, RanksQuery(run=run_id, rank=rank))
        phase = run.catalogue.phase(None)
        key = run.catalogue.find(ALLOCATED, phase)
        found = RankNumbers(state.facts, run, budget)
        goes_on = reading.goes_on or found.num_unread(ranks) > 0
        numbers: dict[FigureKey, _Number] = {}
        totals: dict[FigureKey, _Number] = {}
        if ranks and not goes_on:
            strip = strip_of(run, ranks, found, RSS if key is None else key.column)
            columns: dict[FigureKey, Floats] = {
                "peak_allocated": found.highest(ranks, ALLOCATED).value,
                "peak_reserved": found.highest(ranks, RESERVED).value,
                "rss_peak": found.highest(ranks, RSS).value,
                "growth" if key is not None else "rss_growth": strip.growth,
                "step_time": found.highest(ranks, STEP_TIME).value,
                "ooms": standing_of(run, strip, found).num_ooms,
            }
            for name, values in columns.items():
                worst = _worst(ranks, values)
                if worst is not None:
                    numbers[name] = worst
            _throughput(series, run, ranks, numbers, totals)
        summary = state.summary(run)
        view = View(series, run, summary, WindowQuery(run=run_id, rank=rank), budget)
        window = _window(state, view)
        if goes_on:
            run.expect_more()  # what was read is kept: the next poll goes on
        return _Side(
            summary,
            run.version,
            rank,
            len(ranks),
            numbers,
            totals,
            window,
            goes_on,
        )


def _worst(ranks: Sequence[int], values: Floats) -> _Number | None:
    if np.isnan(values).all():
        return None
    at = int(np.nanargmax(values))
    return _Number(float(values[at]), ranks[at] if len(ranks) > 1 else None)


def _throughput(
    series: SeriesReader,
    run: Run,
    ranks: Sequence[int],
    own: dict[FigureKey, _Number],
    totals: dict[FigureKey, _Number],
) -> None:
    """Median samples and tokens a second, as `/steps` has them."""
    phase = run.catalogue.phase(None)
    source = RankRows(
        series, run, StepTables(series, run, phase).key, x_axis(run, "step")
    )
    summed = ranks if len(ranks) <= _MAX_SUMMED else ranks[:1]
    rows = [(rank, source.rollup(rank)) for rank in summed]
    stepped = [rank for rank, one in rows if one is not None and len(one)]
    if not stepped:
        return
    edges, _ = step_edges(*extent(one for _, one in rows), MAX_COLUMNS)
    rates = Rates(series, run, phase, edges)
    of_first = rates.of_rank(stepped[0], Budget(_RATE_SECONDS))
    _, of_all = summed_rates(run, rates, stepped, of_first)
    profiled = profiler_steps(series, run, ranks, phase, Budget(_RATE_SECONDS))
    keys: tuple[FigureKey, ...] = ("samples", "tokens")
    for rate in as_rates(of_first, of_all, usual_columns(profiled, edges)):
        for key in keys:
            if rate.key != key or rate.median is None:
                continue
            is_all = len(ranks) == 1
            own[key] = _Number(rate.median, None if is_all else stepped[0])
            total = rate.median if is_all else rate.summed_median
            if total is not None and len(stepped) == len(ranks):
                totals[key] = _Number(total, None)


def _window(state: State, view: View[WindowQuery]) -> _Window | None:
    """The tracked step that Modules opens at."""
    choice = choose(readers(state)[0], view)
    if choice is None or choice.opened is None:
        return None
    memory, device = choice.opened.memory, choice.device
    if "window_peak" not in memory.states(device) or not len(memory.tree):
        return None
    table = memory.at("window_peak", device, None)
    own = memory.own(table, device)
    if own is None or np.isnan(table.total_bytes[0]):
        return None
    groups: dict[str, float] = {}
    for name, num_bytes in zip(memory.categories, table.totals[:, 0], strict=True):
        group = group_of(name)
        groups[group] = groups.get(group, 0.0) + float(num_bytes)
    modules = {"": float(table.total_bytes[0])}
    of_module = np.nan_to_num(own.sum(axis=0)).tolist()
    for fqn, num_bytes in zip(memory.tree.fqn, of_module, strict=True):
        label = _INDEX.sub("*", fqn)
        modules[label] = modules.get(label, 0.0) + num_bytes
        modules[""] -= num_bytes
    step = choice.ranks[choice.rank].step
    words = choice.key.function if step is None else f"step {step:,}"
    moment = f"{words}, rank {choice.rank}"
    return _Window(moment, {"category": groups, "module": modules})


def _moments(a: _Window | None, b: _Window | None) -> str:
    found = {name: one.moment for name, one in (("A", a), ("B", b)) if one is not None}
    if len(found) == 2 and len(set(found.values())) == 1:
        return found["A"]
    return "; ".join(f"{name}: {moment}" for name, moment in found.items())


def _figures(a: _Side, b: _Side) -> Iterator[RunFigure]:
    for key, unit in _FIGURES:
        summed = key in a.totals and key in b.totals
        of_a = (a.totals if summed else a.numbers).get(key)
        of_b = (b.totals if summed else b.numbers).get(key)
        known = [one.value for one in (of_a, of_b) if one is not None]
        if not known or (key == "ooms" and not any(known)):
            continue
        yield RunFigure(
            key=key,
            unit=unit,
            a=None if of_a is None else finite(of_a.value),
            b=None if of_b is None else finite(of_b.value),
            a_rank=None if of_a is None else of_a.rank,
            b_rank=None if of_b is None else of_b.rank,
        )


def _tables(a: _Window | None, b: _Window | None) -> Iterator[RunTable]:
    """Largest difference first; NaN of a side that tracked nothing."""
    sides = (a, b)
    if a is None and b is None:
        return
    for by in ("category", "module"):
        known = [{} if one is None else one.by[by] for one in sides]
        labels = list(dict.fromkeys((*known[0], *known[1])))
        held = np.array(
            [[of.get(label, 0.0) for of in known] for label in labels]
        ).reshape(-1, 2)
        size, change = held.max(axis=1), np.abs(held[:, 1] - held[:, 0])
        order = np.lexsort((-size, -change))[:_MAX_ROWS]
        order = order[size[order] > 0]
        held[:, [one is None for one in sides]] = np.nan
        yield RunTable(
            by=by,
            labels=tuple(labels[row] for row in order.tolist()),
            a_bytes=f64(held[order, 0]),
            b_bytes=f64(held[order, 1]),
        )


def _sentence(
    a: _Side, b: _Side, figures: Sequence[RunFigure], tables: Sequence[RunTable]
) -> str:
    """What differs, by B's view: it is the side that was chosen."""
    known = {one.key: one for one in figures if None not in (one.a, one.b)}
    one, other = _names(a, b)
    peak = known.get("peak_allocated") or known.get("rss_peak")
    if peak is None or peak.a is None or peak.b is None:
        if a.goes_on or b.goes_on:
            return "The runs are still being read."
        return f"No peak was recorded of both {one[:1].lower()}{one[1:]} and {other}."
    by = peak.b - peak.a
    if peak.key == "rss_peak":
        one = f"The resident memory of {one[:1].lower()}{one[1:]}"
        other = f"that of {other}"
    against = f"{size_text(peak.b)} against {size_text(peak.a)}{_ranks(peak)}"
    if abs(by) <= _ALIKE * max(peak.a, peak.b):
        said = f"{one} peaks about as high as {other} ({against})"
    else:
        way = "lower" if by < 0 else "higher"
        said = (
            f"{one} peaks {size_text(abs(by))} {way} than {other} ({against})"
            f"{_mostly(by, tables)}"
        )
    return f"{said}{_pace(known.get('step_time'))}."


def _names(a: _Side, b: _Side) -> tuple[str, str]:
    """B, which begins the sentence, and A."""
    if a.summary.id == b.summary.id:
        of_b = "The worst rank" if b.rank is None else f"Rank {b.rank}"
        return of_b, "the worst rank" if a.rank is None else f"rank {a.rank}"
    if a.rank == b.rank:
        return "This run", a.summary.name
    of_b = "This run" if b.rank is None else f"Rank {b.rank} of this run"
    return (
        of_b,
        a.summary.name if a.rank is None else f"rank {a.rank} of {a.summary.name}",
    )


def _ranks(peak: RunFigure) -> str:
    if peak.a_rank is None or peak.b_rank is None:
        return ""
    if peak.a_rank == peak.b_rank:
        return f", rank {peak.a_rank}"
    return f", rank {peak.b_rank} against rank {peak.a_rank}"


def _mostly(by: float, tables: Sequence[RunTable]) -> str:
    """The category that makes most of the difference, and of which modules."""
    found = []
    for table in tables:
        change = (table.b_bytes - table.a_bytes) * np.sign(by)
        at = int(np.argmax(change)) if len(change) else 0
        # Of a side that tracked nothing all are NaN.
        is_most = len(change) and change[at] > max(0.0, _MOST * float(change.sum()))
        found.append(table.labels[at] if is_most else "")
    category = _CATEGORIES.get(found[0]) if found else None
    if category is None:
        return ""
    words = f": mostly {category}"
    return f"{words} of {found[1]}" if found[1] else words


def _pace(time: RunFigure | None) -> str:
    if time is None or not time.a or time.b is None:
        return ""
    by = time.b / time.a - 1
    if abs(by) < _SLOWER:
        return ""
    took = f"{duration_text(time.b)} against {duration_text(time.a)}"
    way = "longer" if by > 0 else "less time"
    return f"; a step takes {100 * abs(by):.0f} % {way} ({took})"
