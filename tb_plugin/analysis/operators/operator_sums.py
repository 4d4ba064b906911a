"""Operators of a whole trace by name, with their memory and FLOP: what outlives its file.

Times are those of `operator_times`, memory is that of `operator_memory` with what is freed
charged to who frees it, as torch's own table has it. Besides operators there is a row for
each annotation and each call of the runtime; memory of no operator and device time whose
launch is not known have one as well, so that own figures add up to the trace's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, places_in, sums

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile

OPERATOR_COLUMNS: Final = (
    "calls",
    "cpu_ns",
    "self_cpu_ns",
    "device_ns",
    "self_device_ns",
    "cpu_memory_bytes",
    "self_cpu_memory_bytes",
    "device_memory_bytes",
    "self_device_memory_bytes",
    "flops",
)

MAX_ROWS: Final = 5000
"""Of the table; the rest, with the least time of its own, is one row."""

MAX_NAME: Final = 500
"""Letters of an operator's name."""

OUTSIDE: Final = "(outside operators)"
REST: Final = "(all others)"

_NUMBERED: Final = re.compile(r"^(ProfilerStep)#\d+$")
_CPU: Final = 0  # torch's number of the device type


def operator_sums(
    profile: TraceProfile, flops: Mapping[int, int]
) -> dict[str, Ints | tuple[str, ...]]:
    """Columns `name` and `OPERATOR_COLUMNS`, the most time of its own first.

    `flops`: by external id of the operator.
    """
    names, row_of = _rows_of_names(profile.operator_names)
    figures = {column: np.zeros(len(names), np.int64) for column in OPERATOR_COLUMNS}
    _add_times(figures, profile, row_of)
    _add_memory(figures, profile, row_of)
    _add_flops(figures, profile, row_of, flops)
    return _busiest(names, figures)


def _rows_of_names(strings: Sequence[str]) -> tuple[list[str], Ints]:
    """Names of rows, the last one being `OUTSIDE`; and the row of each of the strings."""
    rows: dict[str, int] = {}
    shown = (_NUMBERED.sub(r"\1*", name)[:MAX_NAME] for name in strings)
    row_of = [rows.setdefault(name, len(rows)) for name in shown]
    return [*rows, OUTSIDE], np.array(row_of, np.int64)


def _add_times(figures: dict[str, Ints], profile: TraceProfile, row_of: Ints) -> None:
    times = profile.times
    slices = np.flatnonzero(times.tree.kept)
    row = row_of[profile.trace.slices.name[slices]]
    values = {
        "calls": np.ones(len(slices), np.int64),
        "cpu_ns": times.host_total_ns[slices],
        "self_cpu_ns": times.host_self_ns[slices],
        "device_ns": times.device_total_ns[slices],
        "self_device_ns": times.device_self_ns[slices],
    }
    for column, of_slice in values.items():
        figures[column] += sums(row, of_slice, len(figures[column]))
    unknown_ns = times.unknown_ns()["device_self_ns"]
    figures["device_ns"][-1] += unknown_ns
    figures["self_device_ns"][-1] += unknown_ns


def _add_memory(figures: dict[str, Ints], profile: TraceProfile, row_of: Ints) -> None:
    memory, events = profile.operator_memory("freeing"), profile.trace.memory
    row = row_of[memory.name]
    for where, is_there, is_event_there in (
        ("cpu", memory.device_type == _CPU, events.device_type == _CPU),
        ("device", memory.device_type != _CPU, events.device_type != _CPU),
    ):
        moved = int(events.num_bytes[is_event_there].sum())
        for column, num_bytes in (
            (f"{where}_memory_bytes", memory.increase_bytes),
            (f"self_{where}_memory_bytes", memory.self_increase_bytes),
        ):
            of_row = figures[column]
            of_row += sums(row[is_there], num_bytes[is_there], len(of_row))
            outside = moved - int(memory.self_increase_bytes[is_there].sum())
            of_row[-1] += outside


def _add_flops(
    figures: dict[str, Ints],
    profile: TraceProfile,
    row_of: Ints,
    flops: Mapping[int, int],
) -> None:
    operators = profile.trace.operators
    ids = np.array(sorted(flops), np.int64)
    if not len(operators) or not len(ids):
        return
    counted = np.array([flops[name] for name in ids.tolist()], np.int64)
    place = places_in(ids, operators.external_id.astype(np.int64))
    has = place != NOTHING
    row = row_of[profile.trace.slices.name[operators.row[has]]]
    figures["flops"] += sums(row, counted[place[has]], len(figures["flops"]))


def _busiest(
    names: list[str], figures: dict[str, Ints]
) -> dict[str, Ints | tuple[str, ...]]:
    """Rows with anything in them, the busiest first, bounded."""
    is_busy = np.any([values != 0 for values in figures.values()], axis=0)
    weight = np.maximum(figures["self_cpu_ns"], figures["self_device_ns"])
    order = np.flatnonzero(is_busy)
    order = order[np.argsort(-weight[order], kind="stable")]
    first, rest = order[:MAX_ROWS], order[MAX_ROWS:]
    tail = (REST,) if len(rest) else ()
    table: dict[str, Ints | tuple[str, ...]] = {
        "name": (*(names[row] for row in first), *tail)
    }
    for column, values in figures.items():
        remaining = [values[rest].sum()] if tail else []
        table[column] = np.append(values[first], remaining).astype(np.int64)
    return table
