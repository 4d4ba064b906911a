"""Time, memory and operations of each operator of a trace, added up over its calls.

- cpu, device: with all that is inside but the recorder's time, which is a row of its own;
  self_...: without the operators inside. One that calls itself, under another overload, is
  one call.
- Device time is that of kernels and copies, of the operator that launched them.
- Memory is what was allocated less what was released, by the innermost operator around
  it on the same thread. (torch's own table asks for no thread: there, another thread's
  allocations count as well.)

What belongs to no operator has rows of its own, so that own figures add up to the trace's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.own.frames import RECORDER
from memboard.collector.torch_profiler.digest.events import (
    CPU,
    KERNEL_CATEGORIES,
    MEMORY,
)
from memboard.collector.torch_profiler.digest.nesting import nested

if TYPE_CHECKING:
    from memboard.collector.format.records import CaptureTable, FloatArray, IntArray
    from memboard.collector.torch_profiler.digest.events import Events
    from memboard.collector.torch_profiler.digest.nesting import Nesting

MAX_ROWS: Final = 5000
"""Of the table; the rest, with the least time of its own, is one row."""

MAX_NAME: Final = 500
"""Letters of an operator's name."""

OUTSIDE: Final = "(outside operators)"
REST: Final = "(all others)"

COLUMNS: Final = (
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

_NUMBERED: Final = re.compile(r"^(ProfilerStep)#\d+$")


def operator_rows(events: Events) -> IntArray:
    """Events that are operators, the program's own names included, and allocations."""
    on_host = events.device_type == CPU
    for row, category in enumerate(events.categories):
        if category == "python_function":
            on_host &= events.category != row
    return np.flatnonzero(on_host | events.named(MEMORY))


def operators_table(events: Events) -> CaptureTable:
    """The table `operators` of a trace, the most time of its own first."""
    nesting = nested(events, operator_rows(events))
    is_memory = events.named(MEMORY)[nesting.rows]
    figures = _figures(events, nesting, is_memory)
    names, row = _by_name(events, nesting, is_memory)
    sums = {
        name: np.bincount(row, weights=values, minlength=len(names)).astype(np.int64)
        for name, values in figures.items()
    }
    sums["self_device_ns"][-1] += _unlaunched_ns(events)
    sums["device_ns"][-1] += _unlaunched_ns(events)
    return _table(names, sums)


def device_ns_by_launch(events: Events, nesting: Nesting) -> FloatArray:
    """By event of the nesting: time on the device of what it launched itself."""
    kernels = _kernels(events)
    launchers, known = events.launchers(events.linked[kernels])
    by_row = np.zeros(len(events))
    np.add.at(by_row, launchers, events.duration_ns[kernels][known].astype(np.float64))
    own: FloatArray = by_row[nesting.rows]
    return own


def _figures(
    events: Events, nesting: Nesting, is_memory: np.ndarray
) -> dict[str, FloatArray]:
    rows = nesting.rows
    duration = np.where(is_memory, 0, events.duration_ns[rows]).astype(np.float64)
    device = device_ns_by_launch(events, nesting)
    moved = np.where(is_memory, events.num_bytes[rows], 0).astype(np.float64)
    on_host = events.device_type[rows] == CPU
    host, other = np.where(on_host, moved, 0), np.where(on_host, 0, moved)
    again = _calls_of_itself(events, nesting)
    own = nesting.without_inner(duration)
    is_recorder = events.named(RECORDER)[rows]
    recorder = nesting.upwards(np.where(is_recorder, own, 0))
    whole = np.where(is_recorder, duration, np.maximum(duration - recorder, 0))
    figures = {
        "calls": (~is_memory & ~again).astype(np.float64),
        "cpu_ns": np.where(again, 0, whole),
        "self_cpu_ns": own,
        "device_ns": np.where(again, 0, nesting.upwards(device)),
        "self_device_ns": device,
        "flops": np.where(is_memory, 0, events.flops[rows]).astype(np.float64),
    }
    for name, values in (("cpu", host), ("device", other)):
        held = _handed_on(values, nesting)
        whole = np.where(again, 0, nesting.upwards(held))
        figures[f"{name}_memory_bytes"] = whole
        figures[f"self_{name}_memory_bytes"] = held
    return figures


def _calls_of_itself(events: Events, nesting: Nesting) -> np.ndarray:
    """A mask of operators right inside one of the same name: one overload of another."""
    name = events.name[nesting.rows]
    again: np.ndarray = (nesting.parent >= 0) & (name == name[nesting.parent])
    return again


def _handed_on(moved: FloatArray, nesting: Nesting) -> FloatArray:
    """Allocations counted by the operator around them, where there is one."""
    inside = (moved != 0) & (nesting.parent >= 0)
    held = np.where(inside, 0, moved)
    np.add.at(held, nesting.parent[inside], moved[inside])
    return held


def _by_name(
    events: Events, nesting: Nesting, is_memory: np.ndarray
) -> tuple[list[str], IntArray]:
    """Names of the table's rows, the last one being `OUTSIDE`, and each event's row."""
    rows: dict[str, int] = {}
    shown = [_NUMBERED.sub(r"\1*", name)[:MAX_NAME] for name in events.names]
    by_name = np.array(
        [rows.setdefault(name, len(rows)) for name in shown] or [0], np.int64
    )
    row = by_name[events.name[nesting.rows]]
    names = [*rows, OUTSIDE]
    return names, np.where(is_memory, len(names) - 1, row)


def _kernels(events: Events) -> IntArray:
    """What ran on a device, without what only names it."""
    on_device = (events.device_type != CPU) & ~events.named(MEMORY)
    if not any(events.categories):  # then what the program names is known by its name
        on_device &= ~np.isin(events.name, events.name[events.device_type == CPU])
    return np.flatnonzero(on_device & events.of_categories(KERNEL_CATEGORIES))


def _unlaunched_ns(events: Events) -> int:
    """Time on the device of what no operator is known to have launched."""
    kernels = _kernels(events)
    _, known = events.launchers(events.linked[kernels])
    return int(events.duration_ns[kernels][~known].sum())


def _table(names: list[str], sums: dict[str, IntArray]) -> CaptureTable:
    """Rows with anything in them, the busiest first, bounded."""
    busy = np.zeros(len(names), bool)
    for values in sums.values():
        busy |= values != 0
    weight = np.maximum(sums["self_cpu_ns"], sums["self_device_ns"])
    order = np.flatnonzero(busy)
    order = order[np.argsort(-weight[order], kind="stable")]
    kept, rest = order[:MAX_ROWS], order[MAX_ROWS:]
    table: dict[str, IntArray | tuple[str, ...]] = {}
    tail = (REST,) if len(rest) else ()
    table["name"] = (*(names[row] for row in kept), *tail)
    for column in COLUMNS:
        values = sums[column][kept]
        if tail:
            values = np.append(values, sums[column][rest].sum())
        table[column] = values
    return table
