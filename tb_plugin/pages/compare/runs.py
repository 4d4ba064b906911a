"""Route `/compare_runs`: two runs, or ranks, by the numbers that every recording has.

Peaks, growth and step times are those of the Overview, throughput is that of Time, and
what modules hold that of Memory: one name is one number. All are made of digests and
roll-ups, so that thousands of ranks take no longer than the Overview does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.api.compare import CompareRunsResponse
from memboard.tb_plugin.contract.parameters import Query, Rank, Text
from memboard.tb_plugin.contract.wire import finite
from memboard.tb_plugin.facts.comparison.difference import (
    Figure,
    figures_of,
)
from memboard.tb_plugin.facts.comparison.run_sides import side_of, window_differences
from memboard.tb_plugin.facts.comparison.sentences import Pair, runs_sentence
from memboard.tb_plugin.server.routes import RouteRequest, route

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from memboard.tb_plugin.api.tables import ColumnUnit, TableRows
    from memboard.tb_plugin.facts.comparison.run_sides import Key, Side, Window

_TOGETHER: Final = "of all ranks together"
_FIGURES: Final[Mapping[Key, tuple[str, ColumnUnit, str]]] = {
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
        "Of the slowest rank, over the steps behind the warm-up that are not the profiler's",
    ),
    "samples": ("Samples per second", "count", f"Median over the steps, {_TOGETHER}"),
    "tokens": ("Tokens per second", "count", f"Median over the steps, {_TOGETHER}"),
    "ooms": ("Out-of-memory errors", "count", "Of the rank with the most"),
}
"""Label, unit and what it is."""


class CompareRunsQuery(Query, frozen=True):
    """Side A, and by `b_` side B."""

    rank: Rank | None = None
    b_run: Text | None = None
    """The run of A where none is named: two of its ranks."""
    b_rank: Rank | None = None


@route("compare_runs", CompareRunsQuery)
def compare_runs(asked: RouteRequest[CompareRunsQuery]) -> CompareRunsResponse:
    """Read one run after the other; hold one lock at a time."""
    query = asked.query
    a = side_of(asked.state, query.run, query.rank)
    b = side_of(asked.state, query.b_run or query.run, query.b_rank)
    asked.decided_by(a.version, b.version, a.goes_on, b.goes_on, a.summary, b.summary)
    figures = dict(_figures(a, b))
    tables = tuple(window_differences(a.window, b.window))
    return CompareRunsResponse(
        a=a.summary,
        b=b.summary,
        sentence=runs_sentence(a, b, figures, tables),
        figures=figures_of(
            "Numbers of the whole run",
            [_figure(key, figure) for key, figure in figures.items()],
        ),
        tables=tuple(table.sent() for table in tables),
        tables_of=_moments(a.window, b.window),
        moment_figures=_moment_figures(a.window, b.window),
        still_reading=a.goes_on or b.goes_on,
    )


def _moments(a: Window | None, b: Window | None) -> str:
    moment_by_name = {
        side: window.moment
        for side, window in (("A", a), ("B", b))
        if window is not None
    }
    if len(moment_by_name) == 2 and len(set(moment_by_name.values())) == 1:
        return moment_by_name["A"]
    return "; ".join(f"{side}: {moment}" for side, moment in moment_by_name.items())


def _moment_figures(a: Window | None, b: Window | None) -> TableRows:
    if a is None and b is None:
        return figures_of("", [])
    tensors = Figure(
        label="Tensors",
        unit="bytes",
        a=None if a is None else a.total_bytes,
        b=None if b is None else b.total_bytes,
        hint="All tensors at the peak of the tracked step, as in Modules",
    )
    return figures_of(f"At the peak of {_moments(a, b)}", [tensors])


def _figures(a: Side, b: Side) -> Iterator[tuple[Key, Pair]]:
    for key in _FIGURES:
        summed = key in a.totals and key in b.totals
        pair = Pair(
            (a.totals if summed else a.numbers).get(key),
            (b.totals if summed else b.numbers).get(key),
        )
        values = [number.value for number in pair if number is not None]
        if values and (key != "ooms" or any(values)):
            yield key, pair


def _figure(key: Key, pair: Pair) -> Figure:
    label, unit, hint = _FIGURES[key]
    if pair.ranks:
        hint = hint.replace(_TOGETHER, "of one rank")
    ranks = list(dict.fromkeys(pair.ranks))
    return Figure(
        label=label,
        unit=unit,
        a=None if pair.a is None else finite(pair.a.value),
        b=None if pair.b is None else finite(pair.b.value),
        hint=hint,
        note=f"· rank {' → '.join(map(str, ranks))}" if ranks else "",
    )
