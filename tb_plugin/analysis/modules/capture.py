"""The tables of a `modules` capture to a `ModuleLog`, whatever the file claimed.

What means something is kept, what does not is set right and counted: indices out of
range, times that go back, blocks larger than any memory. Only a log without its columns
is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.format.memory import CATEGORIES, STATES
from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.modules.log import Boundaries, ModuleLog
from memboard.tb_plugin.analysis.modules.states import WINDOW_STATES
from memboard.tb_plugin.analysis.modules.tree import ModuleTree, module_tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Ints

MAX_EVENTS: Final = (1 << 24) - 1
MAX_DELTA_BYTES: Final = 1 << 39
"""No block is larger (512 GiB), and so many of them stay within 63 bits."""

MAX_MODULES: Final = 1 << 20
MAX_DEVICES: Final = 64

NEEDED: Final = {
    "modules": (
        "fqn",
        "path",
        "type",
        "parent",
        "is_fsdp",
        "param_bytes",
        "buffer_bytes",
    ),
    "events": ("time_us", "delta_bytes", "category", "device", "module"),
    "boundaries": ("time_us", "event", "module", "state", "call"),
}
"""Columns by table that are read at all; a capture may hold more."""

_OTHER: Final = CATEGORIES.index("other")
_MAX_CALL: Final = 1 << 31
_FAR: Final = 1 << 62
_MAX_TEXT: Final = 100


class LogError(ValueError):
    """The tables are not those of an event log; says what is missing or wrong."""


def module_log(tables: Mapping[str, Mapping[str, Any]], devices: Any) -> ModuleLog:
    """The log of a capture's tables; `devices` is its meta's list of names.

    Raises:
        LogError: a table or column is missing, or is not what it has to be.
    """
    tree = _tree(_Columns("modules", tables, MAX_MODULES))
    names = _device_names(devices)
    events = _Columns("events", tables, MAX_EVENTS)
    time_us, late = _ascending(events.ints("time_us"), _FAR)
    delta = events.ints("delta_bytes")
    huge = (delta > MAX_DELTA_BYTES) | (delta < -MAX_DELTA_BYTES)
    device = events.ints("device")
    elsewhere = (device < 0) | (device >= len(names))
    # What is left out counts as nothing: boundaries number the events.
    delta = _with(delta, huge | elsewhere, 0)
    category = events.ints("category")
    unknown = (category < 0) | (category >= len(CATEGORIES))
    category = _with(category, unknown, _OTHER)
    owner, lost = _rows_of(events.ints("module"), tree)
    occurring = np.flatnonzero(np.bincount(category[delta != 0]))
    place = np.zeros(len(CATEGORIES), np.uint8)
    place[occurring] = np.arange(len(occurring))
    bounds, skipped = _boundaries(_Columns("boundaries", tables), tree, len(delta))
    wrong = np.count_nonzero(huge) + np.count_nonzero(elsewhere | unknown)
    log = ModuleLog(
        tree=tree,
        devices=names,
        categories=tuple(CATEGORIES[index] for index in occurring.tolist()),
        time_us=time_us,
        delta_bytes=delta,
        category=place[category],
        device=_with(device, elsewhere, 0).astype(np.uint8) if device.any() else None,
        owner=owner.astype(np.int32),
        boundaries=bounds,
        peaks=(),
        num_repaired=late + int(wrong) + lost + skipped + tree.num_repaired,
        num_negative=0,
    )
    return _with_peaks(log)


class _Columns:
    """One table's columns, each of the table's length and the expected type."""

    def __init__(
        self,
        table: str,
        tables: Mapping[str, Mapping[str, Any]],
        most: int = MAX_EVENTS,
    ) -> None:
        columns = tables.get(table)
        if columns is None:
            raise LogError(f"the table {table} is missing")
        self._table = table
        self._columns = columns
        self._num = max((len(column) for column in columns.values()), default=0)
        if self._num > most:
            raise LogError(
                f"the table {table} has {counted(self._num, 'row')}, more than {most}"
            )

    def __contains__(self, column_name: str) -> bool:
        return column_name in self._columns

    def ints(self, column_name: str) -> Ints:
        column = self._get(column_name)
        values = np.asarray(column)
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise LogError(f"{self._table}.{column_name} does not hold whole numbers")
        return values.astype(np.int64, copy=False)

    def texts(self, column_name: str) -> tuple[str, ...]:
        column = self._get(column_name)
        if isinstance(column, np.ndarray) or not all(
            isinstance(text, str) for text in column
        ):
            raise LogError(f"{self._table}.{column_name} does not hold texts")
        return tuple(column)

    def _get(self, column_name: str) -> Any:
        column = self._columns.get(column_name)
        if column is None:
            raise LogError(f"{self._table}.{column_name} is missing")
        if len(column) != self._num:
            raise LogError(
                f"{self._table}.{column_name} has {counted(len(column), 'row')}, others {self._num}"
            )
        return column


def _tree(modules: _Columns) -> ModuleTree:
    def optional(column_name: str) -> Ints | None:
        return modules.ints(column_name) if column_name in modules else None

    return module_tree(
        modules.texts("fqn"),
        modules.ints("parent"),
        path=modules.texts("path") if "path" in modules else None,
        type_=modules.texts("type") if "type" in modules else None,
        is_fsdp=optional("is_fsdp"),
        param_bytes=optional("param_bytes"),
        buffer_bytes=optional("buffer_bytes"),
    )


def _device_names(devices: Any) -> tuple[str, ...]:
    names = devices if isinstance(devices, (list, tuple)) else ()
    if not names:
        return ("device 0",)
    return tuple(str(device_name)[:_MAX_TEXT] for device_name in names[:MAX_DEVICES])


def _ascending(values: Ints, most: int) -> tuple[Ints, int]:
    """Values that never go back, from 0 to `most`; and how many had to be changed."""
    fixed = np.maximum.accumulate(np.clip(values, 0, most)) if len(values) else values
    return fixed, int(np.count_nonzero(fixed != values))


def _with(values: Ints, where: npt.NDArray[np.bool_], value: int) -> Ints:
    return np.where(where, value, values) if where.any() else values


def _rows_of(modules: Ints, tree: ModuleTree) -> tuple[Ints, int]:
    """Rows of the tree for a file's indices; -1 for none. And how many mean nothing."""
    outside = (modules < -1) | (modules >= len(tree))
    # The last entry is what the index -1 finds.
    row_of = np.append(tree.row_of, -1)
    return row_of[_with(modules, outside, -1)], int(np.count_nonzero(outside))


def _boundaries(
    columns: _Columns, tree: ModuleTree, num_events: int
) -> tuple[Boundaries, int]:
    time_us, late = _ascending(columns.ints("time_us"), _FAR)
    event, moved = _ascending(columns.ints("event"), num_events)
    module, _ = _rows_of(columns.ints("module"), tree)
    state, call = columns.ints("state"), columns.ints("call")
    kept = (state >= 0) & (state < len(STATES)) & (call >= 0) & (call < _MAX_CALL)
    # Those of the whole window have no module, all others have one.
    whole = np.isin(state, [STATES.index(s) for s in WINDOW_STATES if s in STATES])
    kept &= whole | (module >= 0)
    if not kept.all():
        time_us, event, module = time_us[kept], event[kept], module[kept]
        state, call, whole = state[kept], call[kept], whole[kept]
    bounds = Boundaries(time_us, event, _with(module, whole, -1), state, call)
    return bounds, late + moved + int(np.count_nonzero(~kept))


def _with_peaks(log: ModuleLog) -> ModuleLog:
    peaks, num_negative = [], 0
    for device in range(len(log.devices)):
        total = log.total(device)
        moment = int(np.argmax(total))
        peaks.append((int(total[moment]), moment))
        num_negative += int(np.count_nonzero(total < 0))
    return replace(log, peaks=tuple(peaks), num_negative=num_negative)
