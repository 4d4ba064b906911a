"""A dumped snapshot in any container, plain or gzipped, to the tables of a capture."""

from __future__ import annotations

import io
import json
import pickle
from typing import IO, TYPE_CHECKING, Any, Final

from memboard.collector.format.snapshots import tables_of
from memboard.collector.format.snapshots.encode import FLAT, has_entries
from memboard.collector.format.snapshots.interning import NotFramesError
from memboard.tb_plugin.formats.snapshots.event_tables import EventTables
from memboard.tb_plugin.formats.snapshots.files.containers import (
    JSON,
    PICKLE,
    container_of,
)
from memboard.tb_plugin.formats.snapshots.pickles.extent import Extent
from memboard.tb_plugin.formats.snapshots.pickles.machine import Machine
from memboard.tb_plugin.formats.snapshots.window import Window
from memboard.tb_plugin.worker.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from memboard.collector.format.records import CaptureTable
    from memboard.tb_plugin.formats.snapshots.files.containers import Container

MAX_BYTES: Final = 128 << 20
"""Of the text, which is whole in memory while it is read."""
_PROTOCOL: Final = 4
_PAIRS: Final = ("pool_id", "segment_pool_id")


def _from_json(window: Window) -> Any:
    text = window.data.decode()
    window.data = b""
    return json.loads(text, object_pairs_hook=_Objects().made, parse_constant=_refuse)


_DECODERS: Final[dict[str, Callable[[Window], Any]]] = {JSON.name: _from_json}
"""By the container, where that is no pickle: what decodes it whole, or raises ValueError."""


def as_pickle(window: Window, container: Container) -> io.BytesIO:
    """The pickle of a snapshot in another container.

    Raises:
        RefusedError: it does not decode, or is too long.
        OSError: the file cannot be read.
    """
    compression = container.name
    window.fill(0, MAX_BYTES + 1)
    if len(window.data) > MAX_BYTES:
        raise RefusedError(
            f"as {compression} it is longer than {MAX_BYTES:,} bytes",
            MAX_BYTES,
            remedy="Keep the pickle that torch.cuda.memory._dump_snapshot writes.",
        )
    pickled = io.BytesIO()
    try:
        pickle.dump(_DECODERS[compression](window), pickled, _PROTOCOL)
    except (ValueError, RecursionError) as error:
        position = getattr(error, "pos", 0)
        raise RefusedError(
            f"the {compression} does not decode: {error}", position
        ) from None
    pickled.seek(0)
    return pickled


class _Objects:
    """Makes each object of a JSON text as it ends."""

    def __init__(self) -> None:
        self._frames: dict[tuple[tuple[str, Any], ...], dict[str, Any]] = {}
        """Frames by content: equal ones are one object."""

    def made(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            raise ValueError("a key stands twice in one object")
        if "line" in fields and "filename" in fields:
            try:
                return self._frames.setdefault(tuple(pairs), fields)
            except TypeError:  # it holds a list or an object
                return fields
        for key in _PAIRS:
            pair = fields.get(key)
            if type(pair) is list and len(pair) == 2:
                fields[key] = tuple(pair)
        return fields


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")


def read_tables(
    file: IO[bytes], report: Callable[[float], None] | None = None
) -> Mapping[str, CaptureTable]:
    """The tables of an open file, as `memboard.collector.format.snapshots` has them.

    `report` is told the share that was read. Columns of events are not whole in memory;
    `numpy.asarray` makes them so.

    Raises:
        RefusedError: it is damaged, hostile or no snapshot.
        OSError: the file cannot be read.
    """
    window = Window(file, report)
    window.fill(0)
    if not window.data:
        raise RefusedError("the file is empty", 0)
    reader, root = _carried_out(window)
    if not _is_snapshot(root):
        raise RefusedError("there is no allocator snapshot in the file", 0)
    extent = Extent()
    extent.check(root)
    for frame in reader.stacks.frames.odd.values():
        extent.check(frame)
    _check_events(root, reader.spans)
    try:
        tables = EventTables(reader.events, reader.stacks, reader.spans)
        del reader  # what only reading needed takes no memory beside the tables
        return tables_of(root, tables)
    except NotFramesError:
        raise RefusedError("the stacks of events hold what are no frames", 0) from None


def imported(
    file: IO[bytes], report: Callable[[float], None]
) -> tuple[Mapping[str, CaptureTable], Mapping[str, Any]]:
    """For the worker process: the tables, and what is written with them.

    Raises:
        RefusedError: it is damaged, hostile or no snapshot.
        OSError: the file cannot be read.
    """
    return read_tables(file, report), {}


def _carried_out(window: Window) -> tuple[Machine, Any]:
    """What a pickle makes, or what another container would as one."""
    container = container_of(window.data)
    if container is None or container is PICKLE:
        machine = Machine(window)
        return machine, machine.run()
    machine = Machine(Window(as_pickle(window, container)))
    try:
        return machine, machine.run()
    except RefusedError as error:
        # Its offset is in a pickle that nobody has.
        raise RefusedError(error.what, 0, f"in the {container.name}") from None


def _is_snapshot(root: Any) -> bool:
    if type(root) is dict:
        return "segments" in root or "device_traces" in root
    return type(root) is list and all(
        type(segment) is dict and "blocks" in segment for segment in root
    )


def _check_events(root: Any, spans: Mapping[int, tuple[int, int]]) -> None:
    """Refuse events where a snapshot has none: they would be lost."""
    left = set(spans)
    for key in ("device_traces", "host_traces") if has_entries(root) else ():
        lists = root.get(key)
        if type(lists) is not list:
            continue
        if key in FLAT and id(lists) in spans:
            left.discard(id(lists))
        elif not any(lists) and all(type(entry) is list for entry in lists):
            left.difference_update(map(id, lists))
    if left:
        raise RefusedError("events stand where a snapshot has none", 0)
