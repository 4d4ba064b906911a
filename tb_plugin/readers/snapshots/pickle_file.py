"""A dumped snapshot, pickled, plain or gzipped, to the tables of a capture."""

from __future__ import annotations

import gzip
import mmap
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from collector.format.snapshots import HeldColumn, HeldEvents, tables_of
from collector.format.snapshots.encode import FLAT
from tb_plugin.readers.snapshots.errors import RefusedError
from tb_plugin.readers.snapshots.machine import MAX_DEPTH, Machine

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from collector.format.records import CaptureTable
    from tb_plugin.readers.snapshots.events import Events

MAX_INFLATED: Final = 4 << 30
_MAX_RATIO: Final = 200
"""Snapshots deflate 20 to 60 times; what deflates more is no snapshot."""
_READ: Final = 1 << 24
_GZIP: Final = b"\x1f\x8b"
_MAX_VALUES: Final = 20_000_000
"""Entries of everything but events, each counted as often as it is referred to."""


def read_snapshot(path: Path) -> Mapping[str, CaptureTable]:
    """The tables of a snapshot's file; see `collector.format.snapshots`.

    Raises:
        RefusedError: it is damaged, hostile or no snapshot.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        if file.read(len(_GZIP)) == _GZIP:
            return tables_in(_inflated(path))
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise RefusedError("the file is empty", 0) from None
        with data:
            return tables_in(data)


def tables_in(data: Any) -> Mapping[str, CaptureTable]:
    """The tables of a pickle in memory or mapped.

    Raises:
        RefusedError: it is damaged, hostile or no snapshot.
    """
    machine = Machine(data)
    root = machine.run()
    if not _is_snapshot(root):
        raise RefusedError("there is no allocator snapshot in the pickle", 0)
    _check_size(root)
    if not machine.spans.keys() <= _lists_of_events(root):
        raise RefusedError("events stand where a snapshot has none", 0)
    events = machine.events
    events.pad()
    held = HeldEvents(
        columns={key: _held(events, key) for key in events.columns},
        texts=list(events.texts),
        stacks=machine.stacks.lists,
        spans=machine.spans,
    )
    return tables_of(root, held)


def _held(events: Events, key: str) -> HeldColumn:
    column = events.columns[key]
    arrays = [column.values, *([column.second] if column.kind == "pair" else [])]
    return HeldColumn(column.kind, tuple(_as_numbers(array) for array in arrays))


def _as_numbers(values: Any) -> Any:
    numbers = np.frombuffer(values, values.typecode) if len(values) else np.empty(0)
    return numbers if numbers.dtype == np.float64 and len(values) else _wide(numbers)


def _wide(numbers: Any) -> Any:
    return numbers.astype(np.int64, copy=False)


def _is_snapshot(root: Any) -> bool:
    if type(root) is dict:
        return "segments" in root or "device_traces" in root
    return type(root) is list and all(
        type(segment) is dict and "blocks" in segment for segment in root
    )


def _lists_of_events(root: Any) -> set[int]:
    """Ids of the lists that may hold events."""
    found: set[int] = set()
    for key in ("device_traces", "host_traces") if type(root) is dict else ():
        lists = root.get(key)
        if type(lists) is list:
            found |= {id(entry) for entry in lists if type(entry) is list}
            found |= {id(lists)} if key in FLAT else set()
    return found


def _check_size(root: Any) -> None:
    """Refuse what would grow when walked: a few references can stand for billions."""
    sizes: dict[int, int] = {}
    under_way: set[int] = set()
    stack = [(root, False)]
    while stack:
        value, done = stack.pop()
        children = _children(value)
        if children is None or (not done and id(value) in sizes):
            continue
        if done:
            under_way.discard(id(value))
            sizes[id(value)] = 1 + sum(sizes.get(id(child), 1) for child in children)
            if sizes[id(value)] > _MAX_VALUES:
                raise RefusedError("the pickle stands for far more than it holds", 0)
            continue
        if id(value) in under_way:
            raise RefusedError("the pickle holds something that holds itself", 0)
        if len(under_way) > MAX_DEPTH:
            raise RefusedError("lists and dicts are nested too deep", 0)
        under_way.add(id(value))
        stack.append((value, True))
        stack.extend((child, False) for child in children)


def _children(value: Any) -> Any:
    """What a container holds; None where it is none."""
    if type(value) is dict:
        # Stacks are shared by design, and are looked at once each.
        return [child for key, child in value.items() if key != "frames"]
    return value if type(value) in (list, tuple) else None


def _inflated(path: Path) -> bytes:
    """Raises RefusedError beyond `MAX_INFLATED`, or where nothing is worth so little."""
    most = min(MAX_INFLATED, max(1 << 20, path.stat().st_size * _MAX_RATIO))
    parts, size = [], 0
    try:
        with gzip.open(path) as file:
            while part := file.read(_READ):
                parts.append(part)
                size += len(part)
                if size > most:
                    raise RefusedError("the file inflates to more than a snapshot", 0)
    except (EOFError, gzip.BadGzipFile, OSError) as error:
        raise RefusedError(f"the file does not inflate: {error}", size) from error
    return b"".join(parts)
