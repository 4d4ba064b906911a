"""One table of a profiler's trace against another trace's, row by row.

Operators, kernels and memory meet by name; calls and modules by their place in the tree.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.arrays import NOTHING, picked, place_of
from memboard.tb_plugin.analysis.operators.tree_match import (
    MatchedTrees,
    NamedTree,
    matched_trees,
)
from memboard.tb_plugin.analysis.time.slice_roles import ROLES, Role
from memboard.tb_plugin.contract.table import Column, titled
from memboard.tb_plugin.facts.comparison.difference import difference, side_columns
from memboard.tb_plugin.facts.traces.memory_table import (
    device_key,
    devices_of,
    memory_rows,
    usual_device,
)
from memboard.tb_plugin.facts.traces.module_table import module_rows
from memboard.tb_plugin.facts.traces.profiled import MS, TableQuery
from memboard.tb_plugin.facts.traces.time_tables import kernel_rows, operator_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.api.compare import TracePer, TraceTableName
    from memboard.tb_plugin.api.tables import ColumnUnit, TableRows
    from memboard.tb_plugin.facts.traces.profiled import ChosenTrace

MAX_ROWS: Final = 5_000
_OF_CALL: Final = ("Mean", "Max")


class _Rows(NamedTuple):
    """A table of one trace."""

    names: Sequence[str]
    columns: dict[str, Floats]
    device: str = ""
    """Whose memory it is; empty for the other tables."""
    parents: Sequence[int] = ()
    """By row that of the row around it; none: it is no tree."""
    order: Sequence[int] = ()
    """Of a tree as `NamedTree` has it."""


def _numbers(table: TableRows) -> dict[str, Floats]:
    return {column.key: column.numbers for column in table.columns}


def _named(table: TableRows) -> _Rows:
    (names,) = (column.texts for column in table.columns if column.key == "name")
    return _Rows(names, _numbers(table))


def _modules(profile: TraceProfile, _query: TableQuery) -> _Rows:
    rows = module_rows(profile)
    # A row is a module's first call; the last one may be what is in none.
    first = profile.modules.example[: len(rows.names)]
    order = profile.trace.slices.starts(first).tolist()
    order += [np.iinfo(np.int64).max] * (len(rows.names) - len(order))
    return _Rows(rows.names, _numbers(rows.table), "", rows.parents, order)


def _calls(profile: TraceProfile, _query: TableQuery) -> _Rows:
    tree = profile.calls
    columns: dict[str, Floats] = {"num_calls": tree.num_calls.astype(np.float64)}
    for key in ("host_self", "host_total", "device_self", "device_total"):
        if profile.has_devices or not key.startswith("device"):
            columns[f"{key}_ms"] = getattr(tree, f"{key}_ns") / MS
    return _Rows(tree.name, columns, "", tree.parent.tolist(), tree.first_ns.tolist())


def _memory(profile: TraceProfile, query: TableQuery) -> _Rows:
    devices = devices_of(profile)
    device = usual_device(devices)
    rows = _named(memory_rows(profile, query, device))
    if device is None:
        return rows
    names = {device.key: device.name for device in devices}
    return rows._replace(device=names[device_key(device)])


class ComparedTable(NamedTuple):
    read: Callable[[TraceProfile, TableQuery], _Rows]
    title: str
    lacks: str
    measures: dict[str, str]
    """Title by column, whose ending is its unit."""


TABLES: Final[dict[TraceTableName, ComparedTable]] = {
    "operators": ComparedTable(
        lambda profile, query: _named(operator_rows(profile, query)),
        "Operator",
        "operators",
        {
            "device_self_ms": "Device self",
            "device_total_ms": "Device total",
            "host_self_ms": "Host self",
            "host_total_ms": "Host total",
            "num_calls": "Calls",
        },
    ),
    "kernels": ComparedTable(
        lambda profile, query: _named(kernel_rows(profile, query)),
        "Kernel",
        "kernels: it was recorded without a device",
        {
            "total_ms": "Total",
            "mean_us": "Mean",
            "max_us": "Max",
            "num_calls": "Calls",
        },
    ),
    "calls": ComparedTable(
        _calls,
        "Call",
        "calls: it was recorded without the host",
        {
            "device_total_ms": "Device total",
            "device_self_ms": "Device self",
            "host_total_ms": "Host total",
            "host_self_ms": "Host self",
            "num_calls": "Calls",
        },
    ),
    "modules": ComparedTable(
        _modules,
        "Module",
        "modules: it was recorded without with_stack",
        {
            "device_ms": "Device total",
            "device_self_ms": "Device self",
            "host_ms": "Host total",
            "host_self_ms": "Host self",
            "backward_host_ms": "Backward host",
            "backward_host_self_ms": "Backward host self",
            "backward_device_ms": "Backward device",
            "backward_device_self_ms": "Backward device self",
            "num_calls": "Calls",
        },
    ),
    "memory": ComparedTable(
        _memory,
        "Operator",
        "memory events: it was recorded without profile_memory",
        {
            "self_increase_bytes": "Self increase",
            "increase_bytes": "Increase",
            "self_allocated_bytes": "Self allocated",
            "allocated_bytes": "Allocated",
            "self_num_allocations": "Self allocations",
            "num_calls": "Calls",
        },
    ),
}


class TraceSide(NamedTuple):
    rows: _Rows
    columns: dict[str, Floats]
    """Those of `rows` that can be compared."""
    roles: Floats
    """Seconds of a mean step, by `Role`."""
    num_steps: int
    """0: it marks none, and counts as one."""
    is_opening: bool = False
    """Nothing is known of it yet."""


def trace_side(chosen_trace: ChosenTrace, table: ComparedTable) -> TraceSide:
    profile = chosen_trace.profile
    if profile is None:
        opening = chosen_trace.opening
        is_opening = opening is not None and opening.failure is None
        return TraceSide(_Rows((), {}), {}, np.zeros(len(Role)), 0, is_opening)
    every_row = TableQuery(run=chosen_trace.run.id, top=len(profile.trace.slices))
    rows = table.read(profile, every_row)
    columns = {
        key: values for key, values in rows.columns.items() if key in table.measures
    }
    unknown = [key for key, values in columns.items() if np.isnan(values).all()]
    for key in unknown:
        del columns[key]
    parts_ns = profile.parts.parts_ns
    roles = parts_ns.sum(axis=0) / max(1, len(parts_ns)) / 1e9
    num_steps = len(profile.steps.number) if profile.steps.are_marked else 0
    return TraceSide(rows, columns, roles, num_steps)


def roles_table(a: TraceSide, b: TraceSide) -> TableRows:
    sides = [np.append(trace.roles, trace.roles.sum()) for trace in (a, b)]
    kept = np.flatnonzero(np.maximum(*sides))
    every = (*ROLES, ("", "whole step", "", ""))
    kept_rows = [every[row] for row in kept]
    table = difference(
        Column("role", "Role", unit="text", bar="row"),
        [label for _, label, _, _ in kept_rows],
        side_columns("seconds", "seconds", *(side[kept] for side in sides)),
        hints=tuple(about for *_, about in kept_rows),
    )
    steps = [
        f"{side}: mean of {counted(trace.num_steps, 'step')}"
        if trace.num_steps
        else f"{side} marks no steps: all of it counts as one"
        for side, trace in (("A", a), ("B", b))
        if not trace.is_opening
    ]
    colours = tuple(colour for _, _, colour, _ in kept_rows)
    table = replace(table, usual="", colours=colours)
    return titled(table, "Time per step", "; ".join(steps))


def joined(a: TraceSide, b: TraceSide) -> MatchedTrees:
    """Rows of both sides: by their place in a tree, else by name, without parents."""
    if not a.rows.parents and not b.rows.parents:
        return joined_by_name(a.rows.names, b.rows.names)
    return matched_trees(
        *(
            NamedTree(side.rows.names, side.rows.parents, side.rows.order)
            for side in (a, b)
        )
    )


def joined_by_name(a: Sequence[str], b: Sequence[str]) -> MatchedTrees:
    """Of rows with equal names the first meets the first, the second the second."""
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for row, name in enumerate(b):
        waiting[name].append(row)
    met = [waiting[name].popleft() if waiting[name] else NOTHING for name in a]
    alone = sorted(row for rows in waiting.values() for row in rows)
    return MatchedTrees(
        names=[*a, *(b[row] for row in alone)],
        parents=np.empty(0, np.int64),
        a=np.array([*range(len(a)), *([NOTHING] * len(alone))], np.int64),
        b=np.array([*met, *alone], np.int64),
    )


class Measure(NamedTuple):
    name: str
    title: str
    unit: ColumnUnit
    a: Floats
    b: Floats


def measures_of(
    table: ComparedTable,
    a: TraceSide,
    b: TraceSide,
    rows: Sequence[Ints],
    per: TracePer,
) -> Iterator[Measure]:
    """What at least one side has."""
    for key, title in table.measures.items():
        if key not in a.columns and key not in b.columns:
            continue
        unit, factor = _unit(key)
        values = []
        for side, of in zip((a, b), rows, strict=True):
            column = side.columns.get(key)
            scaled = np.full(len(of), np.nan)
            if column is not None:
                scaled[of >= 0] = column[of[of >= 0]] * factor
            if per == "step" and title not in _OF_CALL:
                scaled /= max(1, side.num_steps)
            values.append(scaled)
        measure_key = title.lower().replace(" ", "_")
        if unit != "count":
            measure_key = f"{measure_key}_{unit}"
        yield Measure(measure_key, title, unit, *values)


def _unit(key: str) -> tuple[ColumnUnit, float]:
    if key.endswith("_ms"):
        return "seconds", 1e-3
    if key.endswith("_us"):
        return "seconds", 1e-6
    return ("bytes" if key.endswith("_bytes") else "count"), 1.0


def _largest(by: Measure | None, num_rows: int, parents: Ints) -> Ints:
    """Rows that differ most by a measure, in the order they have; with those around them."""
    if num_rows <= MAX_ROWS or by is None:
        return np.arange(num_rows)
    change = np.abs(np.nan_to_num(by.b) - np.nan_to_num(by.a))
    order = np.argsort(-change, kind="stable").tolist()
    if not len(parents):
        return np.sort(order[:MAX_ROWS])
    kept: set[int] = set()
    for row in order:
        around = [row]
        while parents[around[-1]] != NOTHING:
            around.append(int(parents[around[-1]]))
        more = [row for row in around if row not in kept]
        if len(kept) + len(more) > MAX_ROWS:
            break
        kept.update(more)
    return np.array(sorted(kept), np.int64)


def rows_of_measures(
    name_column: Column,
    matched: MatchedTrees,
    measures: Sequence[Measure],
    chosen: Measure | None,
) -> tuple[TableRows, Ints]:
    """Both sides of every measure; of too many rows those that differ most by `chosen`.

    Measures other than the chosen one are in files alone.

    Returns:
        The rows, and by row of a tree its parent's.
    """
    names = matched.names
    kept = _largest(chosen, len(names), matched.parents)
    columns = (
        column
        for measure in sorted(measures, key=lambda measure: measure is not chosen)
        for column in side_columns(
            measure.name,
            measure.unit,
            measure.a[kept],
            measure.b[kept],
            hidden=measure is not chosen,
        )
    )
    place = place_of(kept, len(names))
    parents = matched.parents[kept] if len(matched.parents) else matched.parents
    table = difference(name_column, [names[row] for row in kept.tolist()], columns)
    return table, picked(place, parents)
