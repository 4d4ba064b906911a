"""The statistics of calls: both sides of each, what they are called, and what a call adds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, get_args

import numpy as np

from tb_plugin.analysis.findings.text import size_text
from tb_plugin.analysis.series.functions import HOOK_PREFIX, sides, unit_of
from tb_plugin.api.base import Unit
from tb_plugin.api.calls import FunctionStat
from tb_plugin.contract.wire import f64

if TYPE_CHECKING:
    from tb_plugin.analysis.series.functions import CallTable
    from tb_plugin.api.calls import FunctionGroup
    from tb_plugin.formats.recording.functions import Snaps

_UNITS: Final = frozenset(get_args(Unit))
_USUAL: Final = re.compile(r"([a-z_]+)_bytes(?:\.all\.current)?")
_ACRONYMS: Final = {"rss": "RSS", "uss": "USS", "pss": "PSS", "vms": "VMS"}


def stats_of(snaps: Snaps, calls: CallTable) -> tuple[FunctionStat, ...]:
    """Those that any of the calls has."""
    found = []
    for name in snaps.table.stats:
        start, end, difference = sides(snaps.table, calls, name)
        if np.isnan(start).all() and np.isnan(end).all():
            continue
        column = snaps.columns.get(name)
        unit = unit_of(name) if column is None else column.unit
        found.append(
            FunctionStat(
                name=name,
                label=label_of(name),
                unit=unit if unit in _UNITS else "count",  # type: ignore[arg-type]
                group=_group_of(name, None if column is None else column.group),
                start=f64(start),
                end=f64(end),
                difference=f64(difference),
            )
        )
    return tuple(found)


def label_of(stat: str) -> str:
    """`Allocated`, `RSS`: of the few that everyone reads; torch's names else stay."""
    match = _USUAL.fullmatch(stat)
    if match is None:
        return stat.removeprefix(HOOK_PREFIX)
    words = match[1].replace("_", " ")
    return _ACRONYMS.get(words, words.capitalize())


def growth_text(stat: FunctionStat, function: str) -> str:
    """What one call adds, and what all do."""
    label, unit, start, end = stat.label, stat.unit, stat.start, stat.end
    each = stat.difference[~np.isnan(stat.difference)]
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


def _group_of(name: str, group: str | None) -> FunctionGroup:
    if name.startswith(HOOK_PREFIX):
        return "hook"
    of_process = name in ("rss_bytes", "vms_bytes") or group == "process"
    return "process" if of_process else "device"
