"""A snapshot that somebody saved as JSON, to what the pickle machine makes of a pickle.

Pairs are lists there, and frames are spelled out in every stack; both become again what
torch had. Lists of events, segments and blocks are decoded some at a time.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tb_plugin.readers.imports.errors import RefusedError
from tb_plugin.readers.snapshots.events import Events
from tb_plugin.readers.snapshots.json_text import JsonText
from tb_plugin.readers.snapshots.machine import is_event
from tb_plugin.readers.snapshots.machine_stack import MAX_BYTES
from tb_plugin.readers.snapshots.stacks import Stacks

if TYPE_CHECKING:
    from tb_plugin.readers.snapshots.window import Window

_TRACES: Final = ("device_traces", "host_traces")
_LISTS: Final = ("segments", "host_segments", "external_annotations")
"""Of rows, that may be long."""
_PAIRS: Final = ("pool_id", "segment_pool_id")
_MAX_ENTRIES: Final = 1000
"""Keys of the snapshot itself."""
_MAX_TRACES: Final = 4096
_VALUE_BYTES: Final = 80
"""That a value takes with its key, about; a container somewhat more."""
_ROW_BYTES: Final = 200

_Rows = list[dict[str, msgspec.Raw]]


class JsonSnapshot:
    """Reads one; the counterpart of `Machine`."""

    def __init__(self, window: Window) -> None:
        self.stacks = Stacks()
        self.events = Events(self.stacks)
        self.spans: dict[int, tuple[int, int]] = {}
        """By id of a list: the rows of `events` that it held, from and to."""
        self._window = window
        self._text = JsonText(window)
        self._frames: dict[bytes, dict[str, Any]] = {}
        self._lists: dict[bytes, list[dict[str, Any]]] = {}
        """Frames and stacks by how they are spelled."""
        self._most = MAX_BYTES + window.num_bytes // 4
        self._spent = 0

    def run(self) -> Any:
        """The snapshot, without its events.

        Raises:
            RefusedError: it is damaged or hostile.
            OSError: the file cannot be read.
        """
        try:
            root = self._root()
        except RefusedError as error:
            raise RefusedError(error.what, self._window.offset(error.offset)) from None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            where = self._window.offset(self._text.at)
            what = f"the JSON does not decode: {error}"
            raise RefusedError(what, where) from None
        self.events.settle()
        return root

    def _root(self) -> Any:
        text = self._text
        if text.took(b"["):
            return self._rows()
        text.take(b"{")
        root: dict[str, Any] = {}
        while not text.took(b"}"):
            if root:
                text.take(b",")
            key = text.key()
            if len(root) >= _MAX_ENTRIES or key in root:
                raise RefusedError("the snapshot has too many entries", text.at)
            if key in _TRACES and text.took(b"["):
                root[key] = self._traces()
            elif key in _LISTS and text.took(b"["):
                root[key] = self._rows()
            else:
                root[key] = self._decoded(text.value())
        if text.peek():
            raise RefusedError("the JSON is more than one value", text.at)
        return root

    def _traces(self) -> list[Any]:
        """Lists of events, one per device, or the events of one themselves."""
        text = self._text
        if text.peek() == b"{":
            return self._trace()
        traces: list[Any] = []
        while not text.took(b"]"):
            if traces:
                text.take(b",")
            text.take(b"[")
            traces.append(self._trace())
            if len(traces) > _MAX_TRACES:
                raise RefusedError("more lists of events than devices", text.at)
        return traces

    def _trace(self) -> list[Any]:
        """A list of events, which become rows; behind its opening bracket."""
        trace: list[Any] = []
        start = self.events.num_rows
        for batch in self._text.batches():
            for event in self._dicts(batch, kept=False):
                if not is_event(event):
                    raise RefusedError(
                        "events are mixed with other things", self._text.at
                    )
                self.events.add(event, self._text.at)
        if self.events.num_rows > start:
            self.spans[id(trace)] = start, self.events.num_rows
        return trace

    def _rows(self) -> list[Any]:
        """Segments or annotations, as they are."""
        rows: list[Any] = []
        for batch in self._text.batches():
            rows += self._dicts(batch)
        return rows

    def _dicts(self, batch: bytes, *, kept: bool = True) -> list[dict[str, Any]]:
        """Events, segments or blocks of a text of them, separated by commas.

        `kept`: not only for now.
        """
        rows = msgspec.json.decode(b"[%b]" % batch, type=_Rows)
        if kept:
            self._spend(_ROW_BYTES * len(rows))
        apart = [
            {key: bytes(row.pop(key)) for key in ("frames", "blocks") if key in row}
            for row in rows
        ]
        raws = b",".join(bytes(raw) for row in rows for raw in row.values())
        values = iter(self._decoded(b"[%b]" % raws, kept=kept))
        found: list[dict[str, Any]] = []
        for row, other in zip(rows, apart, strict=True):
            entry = dict(zip(row, islice(values, len(row)), strict=True))
            for key in _PAIRS:
                if key in entry:
                    entry[key] = _as_pair(entry[key])
            if "frames" in other:
                entry["frames"] = self._stack(other["frames"])
            if "blocks" in other:
                entry["blocks"] = self._blocks(other["blocks"])
            found.append(entry)
        return found

    def _blocks(self, raw: bytes) -> Any:
        inner = raw.strip()
        if inner[:1] != b"[":
            return self._decoded(raw)
        return self._dicts(inner[1:-1])

    def _stack(self, raw: bytes) -> Any:
        """A list of frames; equal ones are one object."""
        known = self._lists.get(raw)
        if known is None:
            if raw.lstrip()[:1] != b"[":
                return self._decoded(raw)
            frames = msgspec.json.decode(raw, type=list[msgspec.Raw])
            known = [self._frame(bytes(frame)) for frame in frames]
            self._spend(2 * len(raw) + 8 * len(known))
            self._lists[raw] = known
        return known

    def _frame(self, raw: bytes) -> Any:
        known = self._frames.get(raw)
        if known is None:
            known = self._frames[raw] = self._decoded(raw)
        return known

    def _decoded(self, raw: bytes, *, kept: bool = True) -> Any:
        """A value, if there is room for it."""
        values = raw.count(b",") + raw.count(b"[") + raw.count(b"{") + 1
        before = self._spent
        self._spend(_VALUE_BYTES * values + len(raw))
        if not kept:
            self._spent = before
        return msgspec.json.decode(raw)

    def _spend(self, num_bytes: int) -> None:
        self._spent += num_bytes
        if self._spent > self._most:
            raise RefusedError("more values than a snapshot can have", self._text.at)


def _as_pair(value: Any) -> Any:
    if type(value) is list and len(value) == 2:
        first, second = value
        return (first, second)
    return value
