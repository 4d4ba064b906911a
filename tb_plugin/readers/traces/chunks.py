"""Runs of whole events of a trace, cut between events without parsing them.

A trace is an object with `traceEvents`, or a list. The bytes are cut at the last `}, {`
of each block. If that lies inside an event or a text the chunk does not decode, and is
walked: see `pieces`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tb_plugin.readers.imports.errors import RefusedError
from tb_plugin.readers.imports.limits import ensure_room
from tb_plugin.readers.traces.events import (
    ANY,
    EXACT,
    FAST,
    FAULTS,
    AnyEvent,
    Event,
    ExactEvent,
)
from tb_plugin.readers.traces.exact_times import from_digits, from_floats, needs_digits
from tb_plugin.readers.traces.pieces import BOUNDARY, repairs, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from tb_plugin.readers.traces.inflated import Inflated

    AnyShape: TypeAlias = Event | ExactEvent | AnyEvent

_START: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_END: Final = re.compile(rb"\}\s*\](?=\s*(?:[,}]|\Z))")
_MAX_TRIES: Final = 4
_LATE: Final = 1 << 14
"""Bytes at the end of a block in which a boundary is looked for first."""
_COUNTER: Final = re.compile(rb'"ph"\s*:\s*"C"')
_REMEDY: Final = "Open what a profiler wrote as a Chrome trace, .json or .json.gz."
_MAX_HEAD: Final = 64 << 20
_MAX_TAIL: Final = 16 << 20
_LONG: Final = 1 << 20
"""Bytes without a boundary that are taken as they are."""
_ROOM: Final = 48
"""Bytes that one of a block may become: `{},` is an object of ten fields."""
_WHITE: Final = b" \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Chunk:
    """Some whole events."""

    offset: int
    """Of its first byte in the inflated file."""
    num_bytes: int
    first: int
    """Number of its first event in the file."""
    events: Sequence[AnyShape | None]
    """None: one that could not be read."""
    times_ns: npt.NDArray[np.int64]
    """Of all events."""


@dataclass(slots=True)
class Around:
    """What stands around the events, and how they ended."""

    head: bytes = b""
    """Everything before `[`."""
    tail: bytes = b""
    """Everything after `]`, at most some megabytes."""
    is_list: bool = False
    ended: bool = False
    """Whether the list of events has its end."""
    cut_off: bool = False
    """Whether the file ends inside an event."""
    bad: list[tuple[int, int]] = field(default_factory=list)
    """Number of each unreadable event, and the offset of its first byte."""


class Chunks:
    """The events of one file, a chunk at a time; `around` is whole at the end."""

    def __init__(self, stream: Inflated) -> None:
        self.around = Around()
        self.num_events = 0
        self._stream = stream
        self._exact = False
        self._data = b""
        self._offset = 0
        """Of `_data` in the inflated file."""

    def peek(self) -> bytes:
        """The first bytes, without white space before; empty for an empty file."""
        while not self._data.lstrip(_WHITE + _BOM):
            block = self._stream.read()
            if not block:
                return b""
            self._data += block
        if self._data[:3] == _BOM:
            self._drop(3)
        self._drop(len(self._data) - len(self._data.lstrip(_WHITE)))
        return self._data

    def __iter__(self) -> Iterator[Chunk]:
        """The chunks, in order.

        Raises:
            RefusedError: it is no trace, or inflates to too much.
            OSError: it cannot be read.
        """
        self._find_start()
        at_end = False
        while not at_end:
            block = self._stream.read()
            at_end = not block
            self._data += block
            ensure_room(_ROOM * min(len(self._data) + 1, _LONG))
            if at_end:
                yield from self._last()
                return
            cut = _last_boundary(self._data)
            if cut is None:
                if len(self._data) < _LONG:
                    continue
                cut = (len(self._data), len(self._data))
            chunk = self._decoded(self._data[: cut[0]])
            if chunk is not None:
                self._drop(cut[1])
                yield chunk
                continue
            yield self._walked(at_end=False)
            if self.around.ended:
                self._take_tail()
                return

    def _find_start(self) -> None:
        first = self.peek()[:1]
        if first == b"[":
            self.around.is_list = True
            self.around.head = b""
            self._drop(1)
            return
        if first != b"{":
            raise RefusedError(
                "It is not JSON: it begins with neither an object nor a list.",
                0,
                remedy=_REMEDY,
            )
        searched = 0
        while (found := _START.search(self._data, max(searched - 64, 0))) is None:
            searched = len(self._data)
            block = self._stream.read()
            if not block or searched > _MAX_HEAD:
                raise RefusedError(
                    self._stream.problem or "It has no `traceEvents`: it is no trace.",
                    0,
                    remedy=_REMEDY,
                )
            self._data += block
        self.around.head = self._data[: found.end() - 1]
        self._drop(found.end())

    def _last(self) -> Iterator[Chunk]:
        """The events of the last bytes, and what follows them."""
        data = self._data
        if data.lstrip(_WHITE)[:1] == b"]":
            self._drop(data.index(b"]") + 1)
            self.around.ended = True
        else:
            ends = list(_END.finditer(data))[-_MAX_TRIES:]
            for end in reversed(ends):
                chunk = self._decoded(data[: end.start() + 1])
                if chunk is not None:
                    self._drop(end.end())
                    self.around.ended = True
                    yield chunk
                    break
            else:
                yield self._walked(at_end=True)
        self._take_tail()

    def _take_tail(self) -> None:
        tail = self._data
        while len(tail) < _MAX_TAIL and (block := self._stream.read()):
            tail += block
        if self.around.ended:
            self.around.tail = tail[:_MAX_TAIL]

    def _drop(self, num_bytes: int) -> None:
        self._data = self._data[num_bytes:]
        self._offset += num_bytes

    def _decoded(self, data: bytes) -> Chunk | None:
        """All events of the bytes; None where they are not as they should be."""
        found = self._events(b"[%b]" % data)
        if found is None:
            return None
        events, times = found
        chunk = Chunk(self._offset, len(data), self.num_events, events, times)
        self.num_events += len(events)
        return chunk

    def _events(
        self, text: bytes
    ) -> tuple[Sequence[AnyShape], npt.NDArray[np.int64]] | None:
        try:
            if b'"C"' in text and _COUNTER.search(text) is not None:
                return _timed(ANY.decode(text))
            if not self._exact:
                events = FAST.decode(text)
                times = np.array([event.ts for event in events], np.float64)
                if not needs_digits(times, text):
                    return events, from_floats(times)
                self._exact = True
            return _timed(EXACT.decode(text))
        except FAULTS:
            pass
        repaired = next(repairs(text))
        if repaired != text:
            try:
                return _timed(ANY.decode(repaired))
            except FAULTS:
                pass
        return None

    def _walked(self, *, at_end: bool) -> Chunk:
        found = walk(self._data, at_end=at_end)
        self.around.ended |= found.ended
        self.around.cut_off |= found.cut_off
        for index, event in enumerate(found.events):
            if event is None:
                place = self._offset + found.spans[index][0]
                self.around.bad.append((self.num_events + index, place))
        digits = [b"" if event is None else bytes(event.ts) for event in found.events]
        chunk = Chunk(
            self._offset,
            found.consumed,
            self.num_events,
            found.events,
            from_digits(digits),
        )
        self.num_events += len(found.events)
        self._drop(found.consumed)
        return chunk


def _timed(events: Sequence[Any]) -> tuple[Sequence[Any], npt.NDArray[np.int64]]:
    return events, from_digits([bytes(event.ts) for event in events])


def _last_boundary(data: bytes) -> tuple[int, int] | None:
    """Where the last whole event ends, and where the next begins."""
    for start in (max(len(data) - _LATE, 0), 0):
        found = None
        for one in BOUNDARY.finditer(data, start):
            found = one
        if found is not None:
            return found.start() + 1, found.end() - 1
        if start == 0:
            break
    return None
