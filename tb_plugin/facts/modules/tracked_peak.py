"""What a tracked step held at its peak, by category and by module."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.facts.modules.columns import group_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memboard.tb_plugin.analysis.modules.log import ModuleMemory

OUTSIDE: Final = "outside modules"
_INDEX: Final = re.compile(r"(?<=\.)\d+(?=\.|$)|^\d+(?=\.|$)")


@dataclass(frozen=True, slots=True)
class TrackedPeak:
    """Bytes at the peak of a tracked step; both mappings have the same sum."""

    by_category: Mapping[str, float]
    by_module: Mapping[str, Mapping[str, float]]
    """By module, of which equal layers are one, and by category: without those below it."""
    input_bytes: float
    """Of the activations: what the model was given, which no module can recompute."""

    @property
    def num_bytes(self) -> float:
        return sum(self.by_category.values())


def tracked_peak(memory: ModuleMemory, device: int) -> TrackedPeak | None:
    """Of a device by its index; None where nothing is known of that moment."""
    if "window_peak" not in memory.states(device) or not len(memory.tree):
        return None
    table = memory.at("window_peak", device, None)
    own = memory.own(table, device)
    if own is None or np.isnan(own).all() or np.isnan(table.total_bytes[0]):
        return None
    by_category: dict[str, float] = {}
    input_bytes = 0.0
    names = [_INDEX.sub("*", fqn) for fqn in memory.tree.fqn]
    by_module: dict[str, dict[str, float]] = {OUTSIDE: {}, **{n: {} for n in names}}
    columns = zip(
        memory.categories, table.totals[:, 0], np.nan_to_num(own), strict=True
    )
    for category_name, total, of_modules in columns:
        category = group_of(category_name)
        _add(by_category, category, float(total))
        input_bytes += float(total) if category_name == "input" else 0.0
        _add(by_module[OUTSIDE], category, float(total - of_modules.sum()))
        for row in np.flatnonzero(of_modules).tolist():
            _add(by_module[names[row]], category, float(of_modules[row]))
    return TrackedPeak(by_category, by_module, input_bytes)


def _add(sums: dict[str, float], category: str, num_bytes: float) -> None:
    sums[category] = sums.get(category, 0.0) + num_bytes
