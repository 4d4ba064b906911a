"""Module memory under the labels of torch's trackers, as rows and as plain data.

The labels are those of FSDPMemTracker for a model with FSDP, and of MemTracker for one
without. Sizes are exact bytes, and the peak is that of the window itself.
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
    from collections.abc import Iterator

    from tb_plugin.analysis.modules.states import ModuleMemory, StateTable

COLUMNS: Final = (
    "function",
    "iteration",
    "module",
    "depth",
    "state",
    "call",
    "device",
    "category",
    "bytes",
)
"""Of the table: `depth` counts the parts of the module's name, calls from 1."""

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
"""Of a module's states: peaks stand before what they are the peak of."""


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
    """Everything that is exported of that window.

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


def module_rows(
    report: WindowReport, function: str, iteration: int
) -> Iterator[tuple[str | int, ...]]:
    """Rows of `COLUMNS`; the window's peak stands first, at no module."""
    for device, sizes in report.peak:
        for label, size in sizes.items():
            yield function, iteration, "", 0, "Peak", 1, device, label, size
    for module in report.modules:
        depth = module.fqn.count(".") + 1
        for state, calls in module.states.items():
            for number, entries in enumerate(calls, start=1):
                for device, sizes in entries:
                    at = function, iteration, module.fqn, depth, state, number, device
                    yield from ((*at, label, size) for label, size in sizes.items())


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
