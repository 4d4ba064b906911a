"""Route `/compare_runs`: two runs, or ranks, by the numbers that every recording has.

Peaks, growth and step times are those of the Overview, throughput is that of Time, and
what modules hold that of Memory: one name is one number. All are made of digests and
roll-ups, so that thousands of ranks take no longer than the Overview does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from tb_plugin.analysis.findings.text import duration_text, size_text
from tb_plugin.analysis.series.heatmap import step_edges
from tb_plugin.analysis.series.profiler_steps import usual_columns
from tb_plugin.api.compare import (
    ComparedNumber,
    CompareRunsResponse,
    CompareTable,
    RunSide,
)
from tb_plugin.budget import Budget
from tb_plugin.contract.parameters import Query, Rank, Text
from tb_plugin.contract.routes import Asked, route
from tb_plugin.contract.wire import f64, finite, i32
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
    from tb_plugin.formats.recording.series import SeriesReader
    from tb_plugin.index.run import Run
    from tb_plugin.server.state import State

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

_TOGETHER: Final = "of all ranks together"
_FIGURES: Final[Mapping[Key, tuple[str, Unit, str]]] = {
    "peak_allocated": (
        "Peak",
        "bytes",
        "Highest allocated bytes of the run, as on the Overview",
    ),
    "peak_reserved": (
        "Reserved peak",
        "bytes",
        "Highest bytes that the allocator held of the device",
    ),
    "rss_peak": ("Peak RSS", "bytes", "Highest resident memory of the process"),
    "growth": ("Growth per step", "bytes", "Of allocated memory, after the warm-up"),
    "rss_growth": (
        "RSS growth per step",
        "bytes",
        "Of resident memory, after the warm-up",
    ),
    "step_time": (
        "Step time (median)",
        "seconds",
        "Over the steps, of the slowest rank",
    ),
    "samples": ("Samples per second", "count", f"Median over the steps, {_TOGETHER}"),
    "tokens": ("Tokens per second", "count", f"Median over the steps, {_TOGETHER}"),
    "ooms": ("Out-of-memory errors", "count", "Of the rank with the most"),
}
"""Label, unit and what it is."""
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

_OUTSIDE: Final = "outside modules"
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
    numbers: Mapping[Key, _Number]
    totals: Mapping[Key, _Number]
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
    figures = dict(_figures(a, b))
    tables = tuple(_tables(a.window, b.window))
    return CompareRunsResponse(
        a=_described(a),
        b=_described(b),
        sentence=_sentence(a, b, figures, tables),
        figures=tuple(_number(key, one) for key, one in figures.items()),
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
        numbers: dict[Key, _Number] = {}
        totals: dict[Key, _Number] = {}
        if ranks and not goes_on:
            strip = strip_of(run, ranks, found, RSS if key is None else key.column)
            columns: dict[Key, Floats] = {
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
    own: dict[Key, _Number],
    totals: dict[Key, _Number],
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
    keys: tuple[Key, ...] = ("samples", "tokens")
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
    modules = {_OUTSIDE: float(table.total_bytes[0])}
    of_module = np.nan_to_num(own.sum(axis=0)).tolist()
    for fqn, num_bytes in zip(memory.tree.fqn, of_module, strict=True):
        label = _INDEX.sub("*", fqn)
        modules[label] = modules.get(label, 0.0) + num_bytes
        modules[_OUTSIDE] -= num_bytes
    step = choice.ranks[choice.rank].step
    words = choice.key.function if step is None else f"step {step:,}"
    moment = f"{words}, rank {choice.rank}"
    return _Window(moment, {"category": groups, "module": modules})


def _moments(a: _Window | None, b: _Window | None) -> str:
    found = {name: one.moment for name, one in (("A", a), ("B", b)) if one is not None}
    if len(found) == 2 and len(set(found.values())) == 1:
        return found["A"]
    return "; ".join(f"{name}: {moment}" for name, moment in found.items())


class _Pair(NamedTuple):
    """The numbers of both sides; None: unknown."""

    a: _Number | None
    b: _Number | None

    @property
    def known(self) -> tuple[float, float] | None:
        """A and B, where both are known."""
        if self.a is None or self.b is None:
            return None
        of_a, of_b = finite(self.a.value), finite(self.b.value)
        return None if of_a is None or of_b is None else (of_a, of_b)

    @property
    def ranks(self) -> list[int]:
        """Whose they are; of all ranks together nobody's."""
        found = [None if one is None else one.rank for one in self]
        return [rank for rank in found if rank is not None]


def _figures(a: _Side, b: _Side) -> Iterator[tuple[Key, _Pair]]:
    for key in _FIGURES:
        summed = key in a.totals and key in b.totals
        pair = _Pair(
            (a.totals if summed else a.numbers).get(key),
            (b.totals if summed else b.numbers).get(key),
        )
        known = [one.value for one in pair if one is not None]
        if known and (key != "ooms" or any(known)):
            yield key, pair


def _number(key: Key, pair: _Pair) -> ComparedNumber:
    label, unit, hint = _FIGURES[key]
    if pair.ranks:
        hint = hint.replace(_TOGETHER, "of one rank")
    ranks = list(dict.fromkeys(pair.ranks))
    return ComparedNumber(
        label=label,
        unit=unit,
        a=None if pair.a is None else finite(pair.a.value),
        b=None if pair.b is None else finite(pair.b.value),
        hint=hint,
        note=f"· rank {' → '.join(map(str, ranks))}" if ranks else "",
    )


def _tables(a: _Window | None, b: _Window | None) -> Iterator[CompareTable]:
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
        yield CompareTable(
            by=by,
            labels=tuple(labels[row] for row in order.tolist()),
            a_bytes=f64(held[order, 0]),
            b_bytes=f64(held[order, 1]),
            a_blocks=i32([]),
            b_blocks=i32([]),
        )


def _sentence(
    a: _Side,
    b: _Side,
    figures: Mapping[Key, _Pair],
    tables: Sequence[CompareTable],
) -> str:
    """What differs, by B's view: it is the side that was chosen."""
    known = {key: one for key, one in figures.items() if one.known is not None}
    one, other = _names(a, b)
    key: Key = "peak_allocated" if "peak_allocated" in known else "rss_peak"
    peak = known.get(key)
    if peak is None or peak.known is None:
        if a.goes_on or b.goes_on:
            return "The runs are still being read."
        return f"No peak was recorded of both {one[:1].lower()}{one[1:]} and {other}."
    of_a, of_b = peak.known
    by = of_b - of_a
    if key == "rss_peak":
        one = f"The resident memory of {one[:1].lower()}{one[1:]}"
        other = f"that of {other}"
    against = f"{size_text(of_b)} against {size_text(of_a)}{_ranks(peak)}"
    if abs(by) <= _ALIKE * max(of_a, of_b):
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


def _ranks(peak: _Pair) -> str:
    if len(peak.ranks) < 2:
        return ""
    of_a, of_b = peak.ranks
    if of_a == of_b:
        return f", rank {of_a}"
    return f", rank {of_b} against rank {of_a}"


def _mostly(by: float, tables: Sequence[CompareTable]) -> str:
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
    return words if found[1] in {"", _OUTSIDE} else f"{words} of {found[1]}"


def _pace(time: _Pair | None) -> str:
    if time is None or time.known is None or not time.known[0]:
        return ""
    of_a, of_b = time.known
    by = of_b / of_a - 1
    if abs(by) < _SLOWER:
        return ""
    took = f"{duration_text(of_b)} against {duration_text(of_a)}"
    way = "longer" if by > 0 else "less time"
    return f"; a step takes {100 * abs(by):.0f} % {way} ({took})"
