"""Composer's callbacks that measure memory and speed, and what each becomes.

They stand below a `callbacks`, as a mapping or a list, by names such as `memory_monitor` or
by their classes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from msgspec import Meta

from memboard.collector.config.imports.result import (
    UNPACKED,
    ConvertedKey,
    ImportedSettings,
    Key,
    NotConstant,
    mapping_at,
)
from memboard.collector.config.values import LocatedValue, Setting, checked
from memboard.collector.errors import ConfigError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.collector.config.documents import Document

NAME: Final = "Composer's callbacks for memory and speed"
SECTION: Final = "callbacks"


class _Callback(NamedTuple):
    """One of Composer's: what it becomes, and its arguments in their order.

    The default of `max_entries`, as large as ours, is left out.
    """

    leaves: Mapping[str, Any]
    note: str
    keys: Mapping[str, Key]


_Count = Annotated[int, Meta(ge=0)]
_IN_RECORDING: Final = "captures lie in the recording; `memboard export --history`"
_AT_ANY_TIME: Final = "report and snapshot of an error lie in the recording"
_ON_STEPS: Final = "Steps draws every step, and its median"
_OUTPUT: Final = ("folder", "filename", "remote_file_name", "overwrite")


def _output(note: str) -> dict[str, Key]:
    return {name: Key(Any, None, (), note) for name in _OUTPUT}


CALLBACKS: Final[dict[str, _Callback]] = {
    "MemoryMonitor": _Callback(
        {"scalars": "composer"},
        "its nine keys in Scalars, of rank 0",
        {
            "memory_keys": Key(
                Any, None, (), "Scalars have the nine, under their own names"
            ),
            "dist_aggregate_batch_interval": Key(
                _Count | None,
                None,
                (),
                "no _avg, _min and _max in Scalars: every rank's values are in its"
                " recording, and Memory compares the ranks",
            ),
        },
    ),
    "MemorySnapshot": _Callback(
        {"history.enabled": True},
        "captures of the steps that the schedule selects",
        {
            "skip_batches": Key(_Count, 1, ("schedule.warmup",)),
            "interval": Key(str | int, "3ba", ("schedule.active",)),
            "max_entries": Key(_Count | None, None, ("history.max_entries",)),
            **_output(_IN_RECORDING),
        },
    ),
    "OOMObserver": _Callback(
        {},
        "out-of-memory errors are reported by default",
        {
            "max_entries": Key(_Count | None, None, ("history.max_entries",)),
            **_output(_AT_ANY_TIME),
        },
    ),
    "SpeedMonitor": _Callback(
        {},
        "time, samples and tokens of every step are recorded by default",
        {
            "window_size": Key(int, 100, (), _ON_STEPS),
            "gpu_flops_available": Key(
                float | int | None, None, ("flops.device_peak",), "of the whole device"
            ),
            "time_unit": Key(str, "hours", (), _ON_STEPS),
        },
    ),
    "RuntimeEstimator": _Callback(
        {},
        "MemBoard estimates no remaining time: keep it",
        {
            "skip_batches": Key(int, 1, (), "of a callback to keep"),
            "time_unit": Key(str, "hours", (), "of a callback to keep"),
        },
    ),
    "SystemMetricsMonitor": _Callback(
        {},
        "process, host and GPU are sampled by default",
        {"log_all_data": Key(bool, False, (), "all of it is recorded")},
    ),
}


def class_of(name: str) -> str | None:
    """The class that a file's name for a callback means; None where it is none of these."""
    plain = name.rpartition(".")[2].replace("_", "").lower()
    return next((callback for callback in CALLBACKS if callback.lower() == plain), None)


def callbacks_of(document: Document) -> list[ImportedSettings]:
    """What becomes of each list of callbacks with one of these in it.

    Raises:
        ConfigError: a key or value of one is wrong.
    """
    nodes = document.mappings(lambda path, _: path.endswith(f"{SECTION}."))
    all_imported = []
    for above, node in nodes:
        if SECTION in node and not above.endswith(f"{SECTION}."):
            path = f"{above}{SECTION}."
            arguments_of = list(_given(node[SECTION], path))
            if any(class_of(name) for name, *_ in arguments_of):
                all_imported.append(_imported(document, arguments_of))
    return all_imported


def _given(node: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    """Name, path of the name, and arguments of each callback."""
    if isinstance(node, Mapping):
        for name, arguments in node.items():
            yield str(name), f"{path}{name}", arguments
    elif isinstance(node, (list, tuple)):
        for index, item in enumerate(node):
            if isinstance(item, str):
                yield item, f"{path}{index}", None
            elif isinstance(item, Mapping) and "class_path" not in item:
                yield from _given(item, f"{path}{index}.")


def _imported(
    document: Document, callbacks: list[tuple[str, str, Any]]
) -> ImportedSettings:
    entries: list[ConvertedKey] = []
    left_out: list[str] = []
    for name, path, arguments in callbacks:
        class_name = class_of(name)
        if class_name is None:
            left_out.append(name)
        else:
            entries += _entries(document, name, path, arguments, CALLBACKS[class_name])
    leaves = {
        leaf: LocatedValue(value, entry.place)
        for entry in entries
        for leaf, value in entry.leaves.items()
    }
    return ImportedSettings(
        NAME, document.place, leaves, tuple(entries), left_out=tuple(left_out)
    )


def _entries(
    document: Document, name: str, path: str, arguments: Any, callback: _Callback
) -> Iterator[ConvertedKey]:
    yield ConvertedKey(
        name, {}, document.at(path), True, callback.leaves, callback.note
    )
    arguments_by_key = dict(mapping_at(document, path, arguments))
    others = arguments_by_key.pop(UNPACKED, None)
    for key in arguments_by_key:
        if key not in callback.keys:
            near = nearest(str(key), callback.keys)
            raise ConfigError(
                f"unknown key '{name}.{key}' in {document.at(f'{path}.{key}')}: {near}"
                " Composer's callback has no such key; rename it or remove it."
            )
    for key, rule in callback.keys.items():
        shown, where = f"{name}.{key}", document.at(f"{path}.{key}")
        is_given = key in arguments_by_key or others is not None
        value = arguments_by_key.get(key, rule.default if others is None else others)
        if isinstance(value, NotConstant):
            yield ConvertedKey(shown, value, where, True, {}, value.advice(rule.leaves))
            continue
        if rule.hint is not Any and value is not None:
            value = checked(Setting(shown, rule.hint, rule.default), value, where)
        leaves, note = _leaves(key, rule, value)
        if is_given or leaves:
            yield ConvertedKey(shown, value, where, is_given, leaves, note)


def _leaves(key: str, rule: Key, value: Any) -> tuple[dict[str, Any], str]:
    """Our settings for an argument, and what is to be said of it."""
    if value is None:
        return {}, rule.note or "as by default"
    if key == "interval":
        batches = re.fullmatch(r"(\d+)(ba)?", str(value))
        if batches is None:
            return {}, "MemBoard counts steps; set schedule.active yourself"
        value = int(batches[1])
    return dict.fromkeys(rule.leaves, value), rule.note
