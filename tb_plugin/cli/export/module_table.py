"""Module memory of a window under the labels of torch's trackers.

The labels are those of FSDPMemTracker for a model with FSDP, and of MemTracker for one
without. Sizes are exact bytes, and the peak is that of the window itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.format.memory import (
    FSDP_CATEGORIES,
    FSDP_STATES,
    PLAIN_CATEGORIES,
    PLAIN_STATES,
    TORCH_COUNTS_AS,
    TORCH_TOTAL,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.analysis.modules.log import ModuleMemory
    from memboard.tb_plugin.analysis.modules.states import StateTable

COLUMNS: Final = ("module", "depth", "state", "call", "device", "category", "bytes")
"""`depth` counts the parts of the module's name, calls from 1; the total comes last."""

Row = tuple[str, int, str, int, str, str, int]

_PEAK: Final = "window_peak"
_STATES: Final = (
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
"""Of a module: peaks stand before what they are the peak of."""


class WindowTable:
    """Module memory of one window on one rank."""

    def __init__(self, memory: ModuleMemory, *, is_fsdp: bool) -> None:
        """With FSDP, the modules that it shards, as FSDPMemTracker lists them."""
        self.is_fsdp = is_fsdp
        tree = memory.tree
        rows = [row for row in range(len(tree)) if not is_fsdp or tree.is_fsdp[row]]
        self._modules = sorted(rows, key=lambda row: _natural(tree.fqn[row]))
        self._memory = memory
        self._states = FSDP_STATES if is_fsdp else PLAIN_STATES
        own, other = FSDP_CATEGORIES, PLAIN_CATEGORIES
        if not is_fsdp:
            own, other = other, own
        self._categories: dict[str, list[int]] = {label: [] for label in own.values()}
        for row, category in enumerate(memory.categories):
            # Of plain modules, torch counts the batch that it is given as other.
            torch_category = TORCH_COUNTS_AS.get(category, category)
            torch_category = (
                "other" if category == "input" and not is_fsdp else torch_category
            )
            self._categories.setdefault(
                own.get(torch_category) or other[torch_category], []
            ).append(row)

    @property
    def rows(self) -> Iterator[Row]:
        """Rows of `COLUMNS`; the window's peak stands first, at no module."""
        memory = self._memory
        for index, device in enumerate(memory.devices):
            if _PEAK in memory.states(index) and len(memory.tree):
                table = memory.at(_PEAK, index, None)
                yield from self._sizes(table, 0, ("", 0, "Peak", 1, device))
        calls = {
            self._states[name]: list(_calls(memory, name))
            for name in _STATES
            if name in self._states
        }
        for row in self._modules:
            module_name = memory.tree.fqn[row]
            for state, tables in calls.items():
                number = 0
                for of_call in tables:
                    there = [(d, table) for d, table in of_call if table.call[row] >= 0]
                    number += bool(there)
                    for device, table in there:
                        place = (
                            module_name,
                            module_name.count(".") + 1,
                            state,
                            number,
                            device,
                        )
                        yield from self._sizes(table, row, place)

    def nested(self) -> dict[str, Any]:
        """The same as mappings and lists: peak by device, modules by state and call."""
        peak: dict[str, dict[str, int]] = {}
        names = self._memory.tree.fqn
        modules: dict[str, Any] = {names[row]: {} for row in self._modules}
        for module, _, state, call, device, category, size in self.rows:
            if not module:
                peak.setdefault(device, {})[category] = size
                continue
            calls = modules[module].setdefault(state, [])
            if len(calls) < call:
                calls.append({})
            calls[-1].setdefault(device, {})[category] = size
        return {"peak": peak, "modules": modules}

    def _sizes(
        self, table: StateTable, module: int, place: tuple[str, int, str, int, str]
    ) -> Iterator[Row]:
        """A row for each label, in torch's order; other labels and the total come last."""
        values = np.nan_to_num(table.totals[:, module])
        for label, rows in self._categories.items():
            yield (*place, label, int(values[rows].sum()) if rows else 0)
        yield (*place, TORCH_TOTAL, int(np.nan_to_num(table.total_bytes[module])))


def _calls(memory: ModuleMemory, state: str) -> Iterator[list[tuple[str, StateTable]]]:
    """Call by call, the devices that have the state."""
    devices = [
        (index, device)
        for index, device in enumerate(memory.devices)
        if state in memory.states(index)
    ]
    for call in range(memory.max_calls(state) if devices else 0):
        yield [(device, memory.at(state, index, call)) for index, device in devices]


def _natural(module_name: str) -> list[tuple[int, str]]:
    # Sorts `layers.10` behind `layers.9`
    return [
        (int(part), "") if part.isdecimal() else (-1, part.lower())
        for part in re.split("([0-9]+)", module_name)
    ]
