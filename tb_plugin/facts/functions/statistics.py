"""The statistics of calls: both sides of each, what they are called, and what a call adds."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

import numpy as np

from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.analysis.series.functions import (
    HOOK_PREFIX,
    NO_STEP,
    NO_TIME,
    sides,
    unit_of,
)
from memboard.tb_plugin.analysis.series.labels import column_label, hook_label
from memboard.tb_plugin.api.base import Unit, f64, i32
from memboard.tb_plugin.api.memory.calls import (
    FunctionCalls,
    FunctionOverRanks,
    FunctionStat,
)
from memboard.tb_plugin.api.tables import ColumnUnit, TableRows
from memboard.tb_plugin.contract.table import Column
from memboard.tb_plugin.formats.recording.functions import KINDS, bit_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.analysis.series.functions import CallTable
    from memboard.tb_plugin.api.memory.calls import FunctionGroup
    from memboard.tb_plugin.facts.functions.choice import FunctionsQuery, ShownCalls
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.formats.recording.functions import FunctionsReader, Snaps

_UNITS: Final = frozenset(get_args(Unit))
_COLUMN_UNITS: Final = frozenset(get_args(ColumnUnit))
_USUAL: Final = re.compile(r"([a-z_]+)_bytes(?:\.all\.current)?")


class Sides(NamedTuple):
    """A stat of calls, both sides of each and the difference; NaN: not recorded."""

    stat: FunctionStat
    start: Floats
    end: Floats
    difference: Floats


def stats_of(snaps: Snaps, calls: CallTable) -> tuple[Sides, ...]:
    """Those that any of the calls has."""
    all_sides = []
    for statistic in snaps.table.stats:
        start, end, difference = sides(snaps.table, calls, statistic)
        if np.isnan(start).all() and np.isnan(end).all():
            continue
        column = snaps.columns.get(statistic)
        unit = unit_of(statistic) if column is None else column.unit
        stat = FunctionStat(
            name=statistic,
            label=label_of(statistic),
            unit=unit if unit in _UNITS else "count",  # type: ignore[arg-type]
            group=_group_of(statistic, None if column is None else column.group),
        )
        all_sides.append(Sides(stat, start, end, difference))
    return tuple(all_sides)


def label_of(stat: str) -> str:
    """`Allocated`, `RSS`: of the few that everyone reads; torch's names else stay."""
    match = _USUAL.fullmatch(stat)
    if match is None:
        return hook_label(stat.removeprefix(HOOK_PREFIX))
    return column_label(match[1])


def _help_name(stat: str, label: str) -> str:
    """As torch names it, of torch's; of others the label."""
    return stat if "." in stat else label


def growth_text(sides: Sides, function: str) -> str:
    """What one call adds, and what all do."""
    (stat, start, end, difference) = sides
    label, unit = stat.label, stat.unit
    each = difference[~np.isnan(difference)]
    if not len(each):
        return f"{label} was not measured on both sides of a call."

    def change(value: float) -> str:
        if value == 0:
            return "does not change"
        size = size_text(abs(value)) if unit == "bytes" else f"{abs(value):,.4g}"
        return f"{'grows' if value > 0 else 'shrinks'} by {size}"

    in_each = f"{label} {change(float(np.median(each)))} in a call of {function}"
    if len(each) == 1:
        return f"{in_each}."
    over_all = float(end[~np.isnan(end)][-1] - start[~np.isnan(start)][0])
    return (
        f"{in_each} (median of {len(each):,}); from the first call to the last it"
        f" {change(over_all)}."
    )


def call_columns(calls: CallTable) -> FunctionCalls:
    return FunctionCalls(
        attempt=i32(calls.attempt),
        iteration=i32(calls.iteration),
        step=f64(np.where(calls.step == NO_STEP, np.nan, calls.step)),
        start_ms=f64(_ms(calls.start_ns)),
        end_ms=f64(_ms(calls.end_ns)),
        collected=tuple(
            ", ".join(kind for kind in KINDS if kind != "snaps" and bits & bit_of(kind))
            for bits in calls.kinds.tolist()
        ),
    )


def _ms(ns: Ints) -> Floats:
    """Milliseconds; whole ones apart, because a float does not hold so many ns."""
    ms: Floats = np.where(ns == NO_TIME, np.nan, ns // 10**6 + ns % 10**6 / 1e6)
    return ms


_PLACE: Final = (
    Column(
        "iteration", "Iteration", help="A click on a row shows what was collected in it"
    ),
    Column("step", "Step", absent="not recorded"),
    Column(
        "took",
        "Took",
        unit="seconds",
        help="From the measurement at the start to the one at the end",
        absent="One side was not measured: the process died inside the call, is still in"
        " it, or its memory was not measured",
    ),
    Column(
        "collected",
        "Collected",
        unit="text",
        help="What was collected around the call, besides the numbers here",
        absent="nothing else",
    ),
)
_SIDES: Final = {
    "start": "at the start",
    "end": "at the end",
    "difference": "end less start",
}


def table_of_calls(
    calls: FunctionCalls, stats: Iterable[Sides], shown: Collection[str]
) -> TableRows:
    """Where and when each call was, what was collected, and some sides of some stats."""
    attempts = set(calls.attempt.tolist())
    notes = tuple(f"attempt {number}" for number in calls.attempt.tolist())
    hints = tuple(_began(ms) for ms in calls.start_ms.tolist())
    values: dict[str, Any] = {
        "iteration": calls.iteration,
        "step": calls.step,
        "took": (calls.end_ms - calls.start_ms) / 1e3,
        "collected": calls.collected,
    }
    # Imported files have neither steps nor times: such a column would be all dashes.
    is_known = {
        "step": not np.isnan(calls.step).all(),
        "took": not np.isnan(values["took"]).all(),
        "collected": len(set(calls.collected)) > 1,
    }
    more = {"iteration": {"hints": hints, "notes": notes if len(attempts) > 1 else ()}}
    columns = [
        column.sent(values[column.key], **more.get(column.key, {}))
        for column in _PLACE
        if is_known.get(column.key, True)
    ]
    for own in stats:
        statistic, label, unit = own.stat.name, own.stat.label, own.stat.unit
        for side, side_text in _SIDES.items():
            is_change = side == "difference"
            column = Column(
                f"{statistic}:{side}",
                f"{label} {'Δ' if is_change else side}" if side in shown else "",
                unit=_unit_of(unit, is_change=is_change),
                help=f"{_help_name(statistic, label)}, {side_text}",
                absent="not recorded on this side of the call",
                bar="change" if is_change else "",
            )
            columns.append(column.sent(getattr(own, side)))
    num = len(calls.iteration)
    files: dict[str, Ints | Floats] = {
        "call": np.arange(num),
        "attempt": calls.attempt,
        "start_ms": calls.start_ms,
        "end_ms": calls.end_ms,
    }
    columns += [Column(key).sent(own) for key, own in files.items()]
    return TableRows(columns=tuple(columns), num_rows=num, num_all=num, usual="call")


def _began(ms: float) -> str:
    if np.isnan(ms):
        return "When it began is not known"
    return (
        f"began {datetime.fromtimestamp(ms / 1e3, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    )


def _unit_of(unit: Unit, *, is_change: bool) -> ColumnUnit:
    if is_change:
        return "change_bytes" if unit == "bytes" else "change"
    return unit if unit in _COLUMN_UNITS else "ratio"  # type: ignore[return-value]


def _group_of(statistic: str, group: str | None) -> FunctionGroup:
    if statistic.startswith(HOOK_PREFIX):
        return "hook"
    of_process = statistic in ("rss_bytes", "vms_bytes") or group == "process"
    return "process" if of_process else "device"


def over_ranks_of(
    reader: FunctionsReader,
    view: View[FunctionsQuery],
    shown: ShownCalls,
    drawn: Sides | None,
) -> FunctionOverRanks | None:
    """The chosen stat of the chosen call, as far as the budget allows."""
    run, budget = view.run, view.budget
    call = shown.call
    if drawn is None or call is None:
        return None
    stat = drawn.stat
    ranks, values = [], []
    for rank in shown.ranks:
        if rank != shown.rank and not budget.allows():
            continue
        start, end = reader.stat_of_call(run, rank, shown.key, call, stat.name, budget)
        if not (np.isnan(start) and np.isnan(end)):
            ranks.append(rank)
            values.append((start, end))
    first, last = np.array(values, np.float64).reshape(-1, 2).T
    return FunctionOverRanks(
        stat=stat.name,
        unit=stat.unit,
        rank=i32(ranks),
        start=f64(first),
        end=f64(last),
        difference=f64(last - first),
        of_ranks=len(shown.ranks),
    )
