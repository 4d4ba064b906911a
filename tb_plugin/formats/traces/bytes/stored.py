"""The tables of a column file as a `Trace`."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

from memboard.tb_plugin.analysis.trace.build import no_rows
from memboard.tb_plugin.analysis.trace.details import (
    Collectives,
    DeviceWork,
    Launches,
    MemoryEvents,
    Operators,
    Synchronisations,
)
from memboard.tb_plugin.analysis.trace.trace import (
    Counters,
    Flows,
    Instants,
    Problem,
    Series,
    Slices,
    Trace,
    TraceFacts,
    Track,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.trace.trace import ArgsSource
    from memboard.tb_plugin.worker.columns import ColumnTables

    Ints: TypeAlias = npt.NDArray[Any]

Table = TypeVar("Table")
_WIDE: Final = frozenset({"start_ns", "duration_ns", "time_ns", "from_ns"})
"""Columns that are added to each other: 64 bits, whatever they hold."""


def trace_of(tables: ColumnTables, args: ArgsSource | None = None) -> Trace:
    """The trace; its columns lie in the mapped file where they are wide enough.

    Raises:
        KeyError: the tables are no trace's.
    """
    meta = tables.meta
    about = {
        name: json.loads(text)
        for name, text in zip(
            tables["about"]["name"], tables["about"]["json"], strict=True
        )
    }
    start_ns, end_ns = meta["window"]
    slices = _table(tables, "slices", Slices)
    return Trace(
        tracks=_tracks(tables, slices),
        strings=tables["strings"]["text"],
        slices=slices,
        instants=_table(tables, "instants", Instants),
        series=_series(tables),
        counters=_table(tables, "points", Counters),
        flows=_table(tables, "flows", Flows),
        operators=_table(tables, "operators", Operators),
        launches=_table(tables, "launches", Launches),
        device_work=_table(tables, "device_work", DeviceWork),
        synchronisations=_table(tables, "synchronisations", Synchronisations),
        collectives=_table(tables, "collectives", Collectives),
        memory=_table(tables, "memory", MemoryEvents),
        base_ns=meta["base_ns"],
        has_wall_clock=meta["has_wall_clock"],
        start_ns=start_ns,
        end_ns=end_ns,
        facts=_facts(about, meta["resolution_ns"]),
        problems=tuple(Problem(**problem) for problem in meta["problems"]),
        num_events=meta["num_events"],
        num_overlapping=meta["num_overlapping"],
        args=args,
    )


def _facts(about: Mapping[str, Any], resolution_ns: int) -> TraceFacts:
    field_names = {field.name for field in fields(TraceFacts)}
    facts = {name: value for name, value in about.items() if name in field_names}
    facts["devices"] = tuple(facts.get("devices", ()))
    return TraceFacts(**{**facts, "resolution_ns": resolution_ns})


def _table(tables: ColumnTables, table_name: str, kind: type[Table]) -> Table:
    """A table of columns; one without rows where there is none."""
    stored = tables.get(table_name) or {}
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # dataclasses
    if any(column not in stored for column in names):
        return no_rows(kind)
    return kind(*(_column(column, stored[column]) for column in names))


def _column(column_name: str, stored: Any) -> Ints:
    """At least 32 bits and signed, so that sums and products are what they should be."""
    column = np.asarray(stored)
    if column.dtype.kind == "f":
        return column
    if column_name in _WIDE or column.dtype == np.uint32:
        return column.astype(np.int64, copy=False)
    return column.astype(np.int32, copy=False) if column.itemsize < 4 else column


def _tracks(tables: ColumnTables, slices: Slices) -> tuple[Track, ...]:
    table = tables["tracks"]
    made = []
    for place in range(len(table["name"])):
        num = int(table["num_slices"][place])
        first = int(table["first_row"][place])
        levels = int(table["num_levels"][place])
        of_track = slices.level[first : first + num]
        rows = np.searchsorted(of_track, np.arange(levels + 1)) + first
        made.append(
            Track(
                name=table["name"][place],
                process=table["process"][place],
                kind=table["kind"][place],
                rank=int(table["rank"][place]),
                pid=table["pid"][place],
                tid=table["tid"][place],
                device=int(table["device"][place]),
                stream=int(table["stream"][place]),
                sort_index=int(table["sort_index"][place]),
                first_row=first,
                num_slices=num,
                level_rows=tuple(rows.tolist()),
            )
        )
    return tuple(made)


def _series(tables: ColumnTables) -> tuple[Series, ...]:
    table = tables.get("series") or {}
    all_series, first = [], 0
    for place, series_name in enumerate(table.get("name", ())):
        num = int(table["num_points"][place])
        all_series.append(Series(int(table["track"][place]), series_name, first, num))
        first += num
    return tuple(all_series)
