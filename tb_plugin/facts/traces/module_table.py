"""The table of a trace's modules: their times, and the device's time in none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.api.tables import TableRows
from memboard.tb_plugin.contract.table import Column
from memboard.tb_plugin.facts.traces.profiled import MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.analysis.operators.module_times import ModuleTimes
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile

MAX_MODULES: Final = 5_000
"""Rows that are sent; a parent's row comes before its own, so these are a whole tree."""
_MAX_MODULE: Final = 500
_KNOWN: Final = ("arrows", "sequence_numbers")
_OF_ALL: Final = "of all modules"
_OF_DEVICES: Final = "of the device's time"
_IN_NO_MODULE: Final = "in no module"


def _is_of_device(key: str) -> bool:
    return "device" in key


def _part_of(key: str) -> str:
    return "backward" if key.startswith("backward") else "forward"


_CALLS: Final = (
    Column(
        "num_calls",
        "Calls",
        help="Calls of the module's forward at this place in the model, while the profiler"
        " ran",
    ),
    Column(
        "num_operators",
        "Operators",
        help="Operators that the module called itself: those called by other operators, and"
        " by modules in it, do not count",
    ),
)
_TIMES: Final = tuple(
    Column(
        key,
        title,
        unit="ms",
        help=help_text,
        bar=_part_of(key),
        share_of=_OF_DEVICES if _is_of_device(key) else _OF_ALL,
    )
    for key, title, help_text in (
        (
            "host_ms",
            "Host\ntotal",
            (
                "Sum of the durations of its forward on the host, with the modules in it."
                " Python's tracer, which shows modules, makes them slower."
            ),
        ),
        (
            "host_self_ms",
            "Host\nself",
            "Host total less the modules and operators in it: its own Python",
        ),
        (
            "device_ms",
            "Device\ntotal",
            (
                "Sum of the durations of what was launched in it on the device, by operators"
                " and outside them, with the modules in it; what ran at the same time counts"
                " each"
            ),
        ),
        (
            "device_self_ms",
            "Device\nself",
            "Sum of the durations of what was launched in it, and in no module in it",
        ),
        (
            "backward_host_ms",
            "Backward\nhost",
            (
                "Sum on the host of the operators of backward whose forward operator lies in"
                " the module or below it. What names no forward operator counts for no module."
            ),
        ),
        (
            "backward_host_self_ms",
            "Backward\nhost self",
            "Backward host less that of the modules in it: of operators that it called itself",
        ),
        (
            "backward_device_ms",
            "Backward\ndevice",
            "Sum of the durations of what those launched on the device",
        ),
        (
            "backward_device_self_ms",
            "Backward\ndevice self",
            "Backward device less that of the modules in it",
        ),
    )
)


class ModuleRows(NamedTuple):
    """The first modules of a trace; parents come before what is in them."""

    names: Sequence[str]
    paths: Sequence[str]
    """Names with those of the modules around them."""
    parents: Sequence[int]
    """By row that of the module around it; -1: none is."""
    table: TableRows


def module_rows(profile: TraceProfile) -> ModuleRows:
    """Modules of the model with their times; backward's where they are known.

    The last row is the device work in none of them: with it the device's columns of self,
    of forward and of backward, add up to all that devices did.
    """
    table = profile.modules
    parents = table.parent[:MAX_MODULES].tolist()
    names = [name[:_MAX_MODULE] for name in table.name[:MAX_MODULES]]
    outside_ns = table.outside_device_ns if names else 0
    if outside_ns:
        names.append(_IN_NO_MODULE)
        parents.append(NOTHING)
    columns = [column.sent(_values(column, table, outside_ns)) for column in _CALLS]
    device_ms = float(profile.times.work_ns.sum()) / MS if names else 0.0
    for column in _TIMES:
        is_known = column.bar == "forward" or table.backward_by in _KNOWN
        if not is_known or not (profile.has_devices or not _is_of_device(column.key)):
            continue
        values = _values(column, table, outside_ns)
        total = device_ms
        if not _is_of_device(column.key):
            # Those with the modules inside are summed over the outermost.
            is_self = "self" in column.key
            summed = values if is_self else values[np.array(parents) < 0]
            total = float(np.nansum(summed))
        columns.append(column.sent(values, sum=total, longest=total))
    return ModuleRows(
        names,
        paths(names, parents),
        parents,
        TableRows(
            columns=tuple(columns),
            num_rows=len(parents),
            num_all=len(table) + bool(outside_ns),
            usual="device_ms" if profile.has_devices else "host_ms",
        ),
    )


def _values(column: Column, table: ModuleTimes, outside_ns: int) -> Floats:
    """Of the modules, and behind them of what is in none where anything is."""
    values = column.numbers(getattr(table, column.attribute)[:MAX_MODULES])
    if not outside_ns:
        return values
    is_its_own = column.key in ("device_ms", "device_self_ms")
    return np.append(values, column.numbers(outside_ns) if is_its_own else np.nan)


def paths(names: Sequence[str], parents: Sequence[int]) -> list[str]:
    """Names of modules with those of their parents, which come before them."""
    full_names: list[str] = []
    for module_name, parent in zip(names, parents, strict=True):
        above = full_names[parent] if parent >= 0 else None
        # Lightning names a module by its whole path.
        is_whole = above is None or module_name.startswith(f"{above}.")
        full_names.append(module_name if is_whole else f"{above} / {module_name}")
    return full_names
