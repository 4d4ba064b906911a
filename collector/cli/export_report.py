"""Module memory as torch's trackers print it, and as plain data.

The text is what FSDPMemTracker prints of a model with FSDP, and MemTracker of one
without: the same labels, order and rounding, as lines or as tables. The peak is that of
the window itself, and one unit serves the whole report.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from collector.format.memory import (
    FSDP_CATEGORIES,
    FSDP_STATES,
    PLAIN_CATEGORIES,
    PLAIN_STATES,
    TORCH_TOTAL,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tb_plugin.analysis.module_states import ModuleMemory, StateTable

DIVISORS: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

_RULE: Final = "-" * 80
_PEAK: Final = "window_peak"

_ORDER: Final = (
    "peak_forward",
    "before_pre_forward",
    "after_pre_forward",
    "before_post_forward",
    "after_post_forward",
    "peak_backward",
    "before_pre_backward",
    "after_pre_backward",
    "pre_forward_ac",
    "post_forward_ac",
    "before_post_backward",
    "after_post_backward",
)
"""Of a module's states in the report: peaks stand before what they are the peak of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a report looks."""

    depth: int = 2
    """Modules whose name has at most so many parts are listed."""
    units: str = "MiB"
    tabulate: bool = False


Entry = tuple[str, dict[str, int]]
"""A device, and bytes by label, the total last."""


@dataclass(frozen=True, slots=True)
class ModuleReport:
    """One module: its states, of each the calls, of each the devices."""

    fqn: str
    states: dict[str, list[list[Entry]]]


@dataclass(frozen=True, slots=True)
class WindowReport:
    """One window on one rank, under torch's labels."""

    peak: list[Entry]
    modules: list[ModuleReport]

    def plain(self) -> dict[str, Any]:
        """Mappings and lists of bytes alone."""
        return {
            "peak": dict(self.peak),
            "modules": {
                module.fqn: {
                    state: [dict(call) for call in calls]
                    for state, calls in module.states.items()
                }
                for module in self.modules
            },
        }


def window_report(memory: ModuleMemory, *, fsdp: bool) -> WindowReport:
    """Everything a report of that window may hold.

    With `fsdp`, the modules that FSDP shards, as FSDPMemTracker lists them.
    """
    words = _Words(memory, fsdp=fsdp)
    peak = []
    for index, device in enumerate(memory.devices):
        if _PEAK in memory.states(index):
            table = memory.at(_PEAK, index, None)
            if len(memory.tree):
                peak.append((device, words.sizes(table, 0)))
    states = FSDP_STATES if fsdp else PLAIN_STATES
    tables = {
        states[name]: list(_calls(memory, name)) for name in _ORDER if name in states
    }
    modules = []
    for row in _listed(memory, fsdp=fsdp):
        found: dict[str, list[list[Entry]]] = {}
        for state, calls in tables.items():
            of_calls = []
            for devices in calls:
                entries = [
                    (device, words.sizes(table, row))
                    for device, table in devices
                    if table.call[row] >= 0
                ]
                if entries:
                    of_calls.append(entries)
            if of_calls:
                found[state] = of_calls
        modules.append(ModuleReport(memory.tree.fqn[row], found))
    return WindowReport(peak, modules)


def report_text(
    report: WindowReport, function: str, iteration: int, layout: Layout
) -> str:
    """The file that MemProfiler calls `fsdp_mem_rank_R_FUNCTION_ITERATION.log`."""
    call = f"Iteration {iteration} {function}"
    lines = [f"{call} Peak FSDP memory stats: ", _RULE]
    lines += _printed_peak(report.peak, layout)
    lines += [_RULE, f"{call} Modulewise FSDP memory stats: ", _RULE]
    for module in report.modules:
        if module.fqn.count(".") < layout.depth:
            lines.append(f"Module:  {module.fqn}")
            lines += _printed_states(module.states, layout)
    lines += [_RULE, ""]
    return "\n".join(lines)


class _Words:
    """Labels of categories, in torch's order; what torch has no word for comes last."""

    def __init__(self, memory: ModuleMemory, *, fsdp: bool) -> None:
        own, other = FSDP_CATEGORIES, PLAIN_CATEGORIES
        if not fsdp:
            own, other = other, own
        self._rows: dict[str, list[int]] = {label: [] for label in own.values()}
        for row, name in enumerate(memory.categories):
            # Of plain modules, torch counts the batch that it is given as other.
            known = "other" if name == "input" and not fsdp else name
            label = own.get(known) or other[known]
            self._rows.setdefault(label, []).append(row)

    def sizes(self, table: StateTable, module: int) -> dict[str, int]:
        """Bytes by label of one module's row, the total last."""
        values = np.nan_to_num(table.totals[:, module])
        sizes = {
            label: int(values[rows].sum()) if rows else 0
            for label, rows in self._rows.items()
        }
        sizes[TORCH_TOTAL] = int(np.nan_to_num(table.total_bytes[module]))
        return sizes


def _calls(memory: ModuleMemory, state: str) -> Iterator[list[tuple[str, StateTable]]]:
    """Call by call, the devices that have the state."""
    devices = [
        (index, device)
        for index, device in enumerate(memory.devices)
        if state in memory.states(index)
    ]
    for call in range(memory.max_calls(state) if devices else 0):
        yield [(device, memory.at(state, index, call)) for index, device in devices]


def _listed(memory: ModuleMemory, *, fsdp: bool) -> list[int]:
    tree = memory.tree
    rows = [row for row in range(len(tree)) if not fsdp or tree.is_fsdp[row]]
    return sorted(rows, key=lambda row: _natural(tree.fqn[row]))


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts `layers.10` behind `layers.9`."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part.lower())
        for part in re.split("([0-9]+)", name)
    ]


def _printed_peak(peak: Sequence[Entry], layout: Layout) -> list[str]:
    if not peak:
        return ["No memory tracked."]
    if not layout.tabulate:
        return [line for entry in peak for line in _lines_of(entry, layout)]
    rows = [
        [device, *_sizes(sizes, layout)]
        for device, sizes in peak
        if _rounded(sizes[TORCH_TOTAL], layout) > 0
    ]
    return _table(["Device", *peak[0][1]], rows)


def _printed_states(
    states: Mapping[str, list[list[Entry]]], layout: Layout
) -> list[str]:
    if layout.tabulate:
        return _state_table(states, layout)
    lines = []
    for state, calls in states.items():
        lines.append(state)
        for number, entries in enumerate(calls, start=1):
            lines.append(f"# {number}:")
            for entry in entries:
                lines += _lines_of(entry, layout)
    return [*lines, ""]


def _state_table(states: Mapping[str, list[list[Entry]]], layout: Layout) -> list[str]:
    rows: list[list[str]] = []
    head: list[str] = []
    for state, calls in states.items():
        for number, entries in enumerate(calls, start=1):
            name = f"{state} # {number}"
            for device, sizes in entries:
                if _rounded(sizes[TORCH_TOTAL], layout) > 0:
                    head = ["State & Call", "Device", *sizes]
                    rows.append([name, device, *_sizes(sizes, layout)])
                    name = ".."  # what rst takes for a cell that is left blank
    return _table(head, rows)


def _lines_of(entry: Entry, layout: Layout) -> list[str]:
    device, sizes = entry
    if _rounded(sizes[TORCH_TOTAL], layout) <= 0:
        return []
    return [
        f"Device: {device}",
        *(
            f"\t{label}: {_rounded(size, layout)} {layout.units}"
            for label, size in sizes.items()
        ),
    ]


def _sizes(sizes: Mapping[str, int], layout: Layout) -> Iterable[str]:
    return (f"{_rounded(size, layout)} {layout.units}" for size in sizes.values())


def _rounded(size: int, layout: Layout) -> float:
    divisor = DIVISORS[layout.units]
    return size if divisor == 1 else round(size / divisor, 2)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """An rst table in the widths that the `tabulate` package gives it."""
    if not head:
        return [""]
    widths = [
        max(len(title) + 2, *(len(row[index]) for row in rows), 0)
        for index, title in enumerate(head)
    ]
    border = "  ".join("=" * width for width in widths)
    lines = [
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in (head, *rows)
    ]
    return [border, lines[0], border, *lines[1:], border]
