"""The operators of a trace as text: a table for each wish, cut to size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.collector.format.records import CaptureTable

SORTED_BY: Final = ("self_cpu_ns", "self_device_ns")
"""Columns of the operators; the summary has a table sorted by each."""

NUM_ROWS: Final = 20
NAME_WIDTH: Final = 55
"""Letters of an operator's name; longer ones are cut."""

_HEADS: Final = {
    "self_cpu_ns": "self CPU",
    "cpu_ns": "CPU",
    "self_device_ns": "self device",
    "device_ns": "device",
    "self_cpu_memory_bytes": "self CPU memory",
    "cpu_memory_bytes": "CPU memory",
    "self_device_memory_bytes": "self device memory",
    "device_memory_bytes": "device memory",
    "flops": "flops",
    "calls": "calls",
}

_GAP: Final = "  "

MAX_TEXT: Final = 500_000
"""Letters of one trace's summary."""


def summary(operators: CaptureTable, *, rank: int) -> str:
    """The tables of one trace, each headed by what it is sorted by.

    Columns without any figure are left out, and so is a table that is sorted by one.
    """
    columns = [name for name in _HEADS if np.any(np.asarray(operators[name]))]
    tables = []
    for column in SORTED_BY:
        if column in columns:
            order = np.argsort(-np.asarray(operators[column]), kind="stable")
            head = f"rank {rank}, by {_HEADS[column]}"
            if len(order) > NUM_ROWS:
                head += f": {NUM_ROWS} of {len(order)}"
            lines = _lines(operators, order[:NUM_ROWS], columns, column)
            tables.append("\n".join([head, *lines]))
    text = "\n\n".join(tables)
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "\n..."


def _lines(
    operators: CaptureTable,
    order: Any,
    columns: Sequence[str],
    sorted_by: str,
) -> list[str]:
    names = operators["name"]
    share_of = max(1, int(np.abs(np.asarray(operators[sorted_by])).sum()))
    is_own = sorted_by.startswith("self_") or sorted_by in ("calls", "flops")
    rows = [["operator", *(_HEADS[column] for column in columns)]]
    if is_own:
        rows[0].append("share")
    for row_index in order:
        row = [_cut(str(names[row_index]), NAME_WIDTH)]
        row += [_shown(column, int(operators[column][row_index])) for column in columns]
        if is_own:
            row.append(f"{100 * int(operators[sorted_by][row_index]) / share_of:.1f} %")
        rows.append(row)
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        _GAP.join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _cut(operator: str, width: int) -> str:
    plain = " ".join(operator.split())
    return plain if len(plain) <= width else plain[: width - 3] + "..."


def _shown(column: str, value: int) -> str:
    if column.endswith("_ns"):
        return _time(value)
    if column.endswith("_bytes"):
        return _scaled(value, ("B", "KiB", "MiB", "GiB", "TiB"), 1024)
    if column == "flops":
        return _scaled(value, ("", "K", "M", "G", "T", "P"), 1000) if value else "-"
    return str(value)


def _time(value_ns: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6)):
        if abs(value_ns) >= size:
            return f"{value_ns / size:.3f} {unit}"
    return f"{value_ns / 1000:.3f} us"


def _scaled(value: int, units: Sequence[str], base: int) -> str:
    scaled, unit = float(value), units[0]
    for unit in units:
        if abs(scaled) < base or unit == units[-1]:
            break
        scaled /= base
    number = f"{scaled:.0f}" if unit == units[0] else f"{scaled:.2f}"
    return f"{number} {unit}".rstrip()
