"""Annotations, settings and tensors of a snapshot, beside its events and blocks."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from memboard.collector.format.errors import CorruptError
from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.snapshots.plain_text import plain_value
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.snapshots.columns import MAX_LINE, Table, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from memboard.tb_plugin.analysis.arrays import Flags, Ints

    Frame: TypeAlias = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Tensors:
    """What the training knew of addresses when the snapshot was taken."""

    address: Ints
    num_bytes: Ints
    category: Ints  # Index in `memboard.collector.format.memory.CATEGORIES`
    name: Sequence[str]
    device: Ints
    """Number of the device; -1: not said."""


@dataclass(frozen=True, slots=True)
class Annotations:
    """`external_annotations`: begin and end of named spans, in order of time."""

    is_start: Flags
    name: Sequence[str]
    device: Ints
    time_us: Ints


def annotations_of(
    tables: Mapping[str, Mapping[str, Any]],
    texts: Sequence[str],
    note: Callable[[str, Flags], None],
) -> Annotations:
    """`external_annotations` in order of time.

    `note` is told what is of another type, and of which rows.
    """
    table = Table("annotations", tables, texts)
    time_us, is_other_time = table.checked("time_us", 0)
    device, is_other_device = table.checked("device", -1)
    names, is_other_name = _texts(table, "name")
    stage = table.coded("stage", ("END", "START"))
    note("annotations whose time is no whole number", is_other_time)
    note("annotations whose device is no whole number", is_other_device)
    note("annotations whose name is no text", is_other_name)
    is_other_stage = (stage == NOTHING) & ~table.lacks("stage")
    note("annotations that neither begin nor end", is_other_stage)
    order = np.argsort(time_us, kind="stable")
    return Annotations(
        is_start=(stage == 1)[order],
        name=tuple(names[row] for row in order.tolist()),
        device=device[order],
        time_us=time_us[order],
    )


def _texts(table: Table, column_name: str) -> tuple[Sequence[str], Flags]:
    """Texts, empty where there is none, and which rows have something else."""
    if table.kind(column_name) != "value":
        return table.texts(column_name), table.is_other(column_name, "text")
    rows, values = table.values(column_name)
    texts = [value if type(value) is str else "" for value in values]
    is_other = np.array([type(value) is not str for value in values] + [False])
    return [[*texts, ""][row] for row in rows.tolist()], is_other[rows]


def tensors_of(tables: Mapping[str, Mapping[str, Any]]) -> Tensors | None:
    """What the training knew of addresses; None where it said nothing."""
    if "tensors" not in tables:
        return None
    table = Table("tensors", tables, ())
    category = table.ints("category", len(CATEGORIES) - 1)
    unknown = (category < 0) | (category >= len(CATEGORIES))
    names = texts_of(tables, "tensors", "name")
    return Tensors(
        address=table.ints("address", 0),
        num_bytes=table.ints("num_bytes", 0),
        category=np.where(unknown, CATEGORIES.index("other"), category),
        name=names if len(names) == len(table) else ("",) * len(table),
        device=table.ints("device", -1),
    )


_SETTING_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "PYTORCH_CUDA_ALLOC_CONF": (str,),
    "last_allocator_settings": (str,),
    "max_split_size": (int,),
    "garbage_collection_threshold": (int, float),
    "expandable_segments": (bool,),
    "roundup_power2_divisions": (dict,),
}
"""As torch writes those that are read here."""


def settings_of(
    tables: Mapping[str, Mapping[str, Any]], leave_out: Callable[[str, int], None]
) -> Mapping[str, Any]:
    """`allocator_settings`; empty where the file has none.

    Those of another type than torch's are not among them, and `leave_out` is told.
    """
    keys = texts_of(tables, "root", "key")
    for key, value in zip(keys, texts_of(tables, "root", "value"), strict=True):
        if key == "allocator_settings":
            settings = None
            with suppress(CorruptError):
                settings = plain_value(value)
            if isinstance(settings, dict):
                wrong = [
                    setting
                    for setting in settings
                    if not _is_setting(setting, settings[setting])
                ]
                for setting in wrong:
                    leave_out(
                        f"`allocator_settings.{setting}`, which has another type", 1
                    )
                return {
                    setting: settings[setting]
                    for setting in settings
                    if setting not in wrong
                }
            leave_out("`allocator_settings`, which is no mapping", 1)
    return {}


def _is_setting(setting: Any, value: Any) -> bool:
    types = _SETTING_TYPES.get(setting)
    if types is None:
        return True
    if isinstance(value, bool):
        return bool in types
    if isinstance(value, dict):
        inner = [item for entry in value.items() for item in entry]
        texts, numbers = inner[::2], inner[1::2]
        is_plain = all(type(number) is int for number in numbers)
        return dict in types and is_plain and all(type(text) is str for text in texts)
    return isinstance(value, types)


_MAX_FRAMES: Final = 1024


@dataclass(frozen=True, slots=True)
class BlockHistories:
    """What the blocks' histories say, by block."""

    frames: Sequence[tuple[Frame, ...]]
    """Distinct stacks: name, filename and line of each frame, innermost first."""
    stack: Ints
    """Index in `frames`; -1: the block has no history."""
    requested_size: Ints  # -1: likewise


def block_histories(
    tables: Mapping[str, Mapping[str, Any]], texts: Sequence[str]
) -> BlockHistories | None:
    """The histories of all blocks; None where no block has one."""
    table = Table("blocks", tables, texts)
    rows, values = table.values("history")
    if not values:
        return None
    numbers: dict[tuple[Frame, ...], int] = {}
    # The last entry is for blocks without a history.
    stacks, sizes = np.full((2, len(values) + 1), NOTHING, np.int64)
    for place, value in enumerate(values):
        entry = value[0] if isinstance(value, list) and value else None
        if isinstance(entry, dict):
            stacks[place] = numbers.setdefault(_frames_of(entry), len(numbers))
            sizes[place] = _number(entry.get("real_size"), NOTHING)
    return BlockHistories(tuple(numbers), stacks[rows], sizes[rows])


def _frames_of(entry: dict[str, Any]) -> tuple[Frame, ...]:
    frames = entry.get("frames")
    dicts = frames if isinstance(frames, list) else ()
    return tuple(_frame(frame) for frame in dicts[:_MAX_FRAMES])


def _frame(frame: Any) -> Frame:
    fields = frame if isinstance(frame, dict) else {}
    return (
        str(fields.get("name", "")),
        str(fields.get("filename", "")),
        min(_number(fields.get("line"), 0), MAX_LINE),
    )


def _number(value: Any, otherwise: int) -> int:
    """A size or a line; what cannot be one is `otherwise`."""
    if not isinstance(value, int) or isinstance(value, bool):
        return otherwise
    return value if 0 <= value < 1 << 48 else otherwise
