"""Tables of an error's report: its stack, the largest holders, bytes by category.

Files may hold anything: a column that is not of its type is taken as empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.own.frames import program_frames
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.categories.frames import frame_label, kind_of
from memboard.tb_plugin.analysis.categories.marks import python_marks
from memboard.tb_plugin.analysis.oom.holders import MAX_HOLDERS, Holder, heaviest
from memboard.tb_plugin.formats.recording.captures.meta import MAX_COUNT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memboard.collector.format.records import CaptureTable

    Tables: TypeAlias = Mapping[str, CaptureTable]

Frame: TypeAlias = tuple[str, str, int]
"""Function, file and line of a frame of Python."""

MAX_STACK: Final = 80
MAX_NAME: Final = 500


def stack_of(tables: Tables) -> list[Frame]:
    """Frames of the failing thread, innermost first."""
    rows = [row[1:] for row in _rows(tables, "stack") if row[0] == 0]
    return _without_own(rows)[:MAX_STACK]


def _without_own(frames: list[Frame]) -> list[Frame]:
    """As `analysis.categories.frames.without_own` leaves out of a stack what is ours."""
    kept = program_frames([filename for _, filename, _ in frames])
    return [frames[place] for place in kept]


def _rows(tables: Tables, table: str) -> list[tuple[int, str, str, int]]:
    """A table of frames: whose it is, function, file and line."""
    columns = tables.get(table, {})
    names, files = columns.get("name"), columns.get("filename")
    whose = _ints(columns, "thread" if table == "stack" else "holder")
    lines = _ints(columns, "line")
    if not (isinstance(names, tuple) and isinstance(files, tuple)):
        return []
    if not len(names) == len(files) == len(whose) == len(lines):
        return []
    return [
        (int(owner), function[:MAX_NAME], file[:MAX_NAME], int(line))
        for owner, function, file, line in zip(whose, names, files, lines, strict=True)
    ]


def holders_of(tables: Tables, live: int | None) -> tuple[Holder, ...]:
    """Lines that held most, stacks of one line together; shares of the `live` bytes."""
    columns = tables.get("holders", {})
    sizes, counts = _ints(columns, "num_bytes"), _ints(columns, "num_blocks")
    category = _ints(columns, "category")
    if not len(sizes) == len(counts) == len(category) or not live:
        return ()
    frames: dict[int, list[Frame]] = {}
    for row, function, filename, line in _rows(tables, "holder_frames"):
        frames.setdefault(row, []).append((function, filename, line))
    by_label: dict[str, list[int]] = {}
    for row in range(len(sizes)):
        label = label_of(_without_own(frames.get(row, [])))
        by_label.setdefault(label, []).append(row)
    holders = [
        Holder(
            label=label,
            num_bytes=int(sizes[rows].sum()),
            share=min(1.0, float(sizes[rows].sum()) / live),
            num_blocks=int(counts[rows].sum()),
            stack=NOTHING,
            category=_known(heaviest(category[rows], sizes[rows])),
        )
        for label, rows in by_label.items()
    ]
    holders.sort(key=lambda holder: -holder.num_bytes)
    return tuple(holders[:MAX_HOLDERS])


def label_of(frames: list[Frame]) -> str:
    """The frame that stands for a stack, as `analysis.frames.user_frames` chooses it."""
    if not frames:
        return ""
    kinds = [kind_of(filename) for _, filename, _ in frames]
    return frame_label(*frames[min(range(len(frames)), key=kinds.__getitem__)])


def marks_of(frames: list[Frame]) -> int:
    """The marks of a stack of Python."""
    marks = 0
    for function, filename, _ in frames:
        marks |= python_marks(function, filename)
    return marks


def bytes_by_category(tables: Tables) -> dict[str, int]:
    """Bytes of the tensors that the recorder knows, by category."""
    columns = tables.get("categories", {})
    category, sizes = _ints(columns, "category"), _ints(columns, "num_bytes")
    bytes_by_name: dict[str, int] = {}
    if len(category) == len(sizes):
        for which, size in zip(category.tolist(), sizes.tolist(), strict=True):
            number = _known(which)
            category_name = CATEGORIES[number] if number >= 0 else "other"
            bytes_by_name[category_name] = bytes_by_name.get(category_name, 0) + max(
                0, size
            )
    return bytes_by_name


def _known(category: int) -> int:
    return category if 0 <= category < len(CATEGORIES) else NOTHING


def _ints(columns: CaptureTable, key: str) -> Any:
    values = columns.get(key)
    if isinstance(values, np.ndarray) and values.dtype == np.int64:
        return np.clip(values, -1, MAX_COUNT)
    return np.empty(0, np.int64)
