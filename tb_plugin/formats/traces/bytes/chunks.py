"""Runs of whole events of a trace, cut between events without parsing them.

A trace is an object with `traceEvents`, or a list. The bytes are cut at the last `}, {`
of each block. If that lies inside an event or a text the chunk does not decode, and is
walked: see `pieces`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from memboard.tb_plugin.formats.traces.bytes.pieces import (
    BOUNDARY,
    nesting,
    walk,
)
from memboard.tb_plugin.formats.traces.bytes.refused import REMEDY, refused
from memboard.tb_plugin.formats.traces.columns.events import plain
from memboard.tb_plugin.worker.errors import RefusedError
from memboard.tb_plugin.worker.limits import ensure_room

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    from memboard.tb_plugin.formats.traces.bytes.decoding import EventDecoder
    from memboard.tb_plugin.formats.traces.bytes.inflated import InflatedFile
    from memboard.tb_plugin.formats.traces.bytes.pieces import Fault, WalkResult

E = TypeVar("E")

_START: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_LIST: Final = re.compile(rb"\s*\[")
_END: Final = re.compile(rb"\}\s*\](?=\s*(?:[,}]|\Z))")
_MAX_TRIES: Final = 4
_LATE: Final = 1 << 14
"""Bytes at the end of a block in which a boundary is looked for first."""
_MAX_HEAD: Final = 64 << 20
_MAX_TAIL: Final = 16 << 20
_MAX_LISTS: Final = 100
"""Of events, in one file."""
_LONG: Final = 1 << 20
"""Bytes without a boundary that are taken as they are."""
_ROOM: Final = 48
"""Bytes that one of a block may become: `{},` is an object of ten fields."""
_WHITE: Final = b" \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Chunk(Generic[E]):
    offset: int
    """Of its first byte in the inflated file."""
    num_bytes: int
    first: int
    """Number of its first event in the file."""
    events: Sequence[E | None]
    """None: one that could not be read."""
    times_ns: npt.NDArray[np.int64]


@dataclass(slots=True)
class BadEvents:
    """Entries of the list that are no events, for one reason."""

    number: int
    """Of the first one in the file."""
    offset: int
    count: int = 0


@dataclass(slots=True)
class TraceEnvelope:
    """What stands around the events, and how they ended."""

    head: bytes = b""  # Everything before `[`
    tail: bytes = b""
    """Everything after `]`, at most some megabytes."""
    is_list: bool = False
    ended: bool = False
    """Whether the list of events has its end."""
    cut_off: bool = False
    """Whether the file ends inside an event."""
    bad: dict[Fault, BadEvents] = field(default_factory=dict)
    """What of the list could not be read as events."""
    num_lists: int = 1
    """Lists of events, which come one after the other."""

    @property
    def num_bad(self) -> int:
        """Entries of the list that could not be read as events."""
        return sum(bad_events.count for bad_events in self.bad.values())


class Chunks(Generic[E]):
    """The events of one file, a chunk at a time; `around` is whole at the end."""

    def __init__(self, stream: InflatedFile, decoder: EventDecoder[E]) -> None:
        self.around = TraceEnvelope()
        self.num_events = 0
        self._stream = stream
        self._decoder = decoder
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

    def __iter__(self) -> Iterator[Chunk[E]]:
        """The chunks, in order.

        Raises:
            RefusedError: it is no trace, or inflates to too much.
            OSError: it cannot be read.
        """
        self._find_start()
        yield from self._one_list()
        while self._finds_another():
            yield from self._one_list()

    def _one_list(self) -> Iterator[Chunk[E]]:
        """The events until their list ends."""
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
            chunk = self._decoded(cut[0])
            if chunk is not None:
                self._drop(cut[1])
                yield chunk
                continue
            yield self._walked(at_end=False)
            if self.around.ended:
                return

    def _find_start(self) -> None:
        first = self.peek()[:1]
        if first == b"[":
            self.around.is_list = True
            self.around.head = b""
            self._drop(1)
            return
        if first != b"{":
            raise refused(self._data)
        searched = 0
        while _START.search(self._data, max(searched - 64, 0)) is None:
            searched = len(self._data)
            block = self._stream.read()
            if not block or searched > _MAX_HEAD:
                if self._stream.problem:
                    raise RefusedError(self._stream.problem, 0, remedy=REMEDY)
                raise refused(self._data)
            self._data += block
        match = _start_of_events(self._data, 0)
        assert match is not None  # noqa: S101  # there is one
        self.around.head = self._data[: match.end() - 1]
        self._drop(match.end())

    def _finds_another(self) -> bool:
        """Whether one more list of events follows, which then comes next.

        A key may come twice, and traces may have been joined to one file. Readers of JSON
        take the last list; all of them are events that somebody recorded.
        """
        around, tail = self.around, self._data
        while len(tail) < _MAX_TAIL and (block := self._stream.read()):
            tail += block
        if not around.ended:
            return False
        match = _LIST.match(tail) if around.is_list else _start_of_events(tail, 1)
        if match is None:
            around.tail = tail[:_MAX_TAIL]
            return False
        if around.num_lists >= _MAX_LISTS:
            raise RefusedError(
                f"It has more than {_MAX_LISTS} lists of events: it is not a trace.",
                self._offset,
                remedy=REMEDY,
            )
        head = around.head + b"[]" + tail[: match.end() - 1]
        if plain(head + b"[]}") is not None:
            around.head = head
        around.ended = False
        around.num_lists += 1
        self._data = tail
        self._drop(match.end())
        return True

    def _last(self) -> Iterator[Chunk[E]]:
        """The events of the last bytes, and what follows them."""
        data = self._data
        if data.lstrip(_WHITE)[:1] == b"]":
            self._drop(data.index(b"]") + 1)
            self.around.ended = True
        else:
            ends = list(_END.finditer(data))[-_MAX_TRIES:]
            for end in reversed(ends):
                chunk = self._decoded(end.start() + 1)
                if chunk is not None:
                    self._drop(end.end())
                    self.around.ended = True
                    yield chunk
                    break
            else:
                yield self._walked(at_end=True)

    def _drop(self, num_bytes: int) -> None:
        self._data = self._data[num_bytes:]
        self._offset += num_bytes

    def _decoded(self, num_bytes: int) -> Chunk[E] | None:
        """All events of so many bytes; None where they are not as they should be."""
        data = memoryview(self._data)[:num_bytes]
        decoded = self._decoder.decode(b"".join((b"[", data, b"]")))
        if decoded is None:
            return None
        events, times = decoded
        chunk = Chunk(self._offset, num_bytes, self.num_events, events, times)
        self.num_events += len(events)
        return chunk

    def _walked(self, *, at_end: bool) -> Chunk[E]:
        walked = walk(self._data, self._decoder.decode_one, at_end=at_end)
        self._note(walked)
        chunk = Chunk(
            self._offset,
            walked.consumed,
            self.num_events,
            walked.events,
            self._decoder.times_ns(walked.events),
        )
        self.num_events += len(walked.events)
        self._drop(walked.consumed)
        return chunk

    def _note(self, walked: WalkResult[E]) -> None:
        """How walked bytes ended, and which of their events could not be read."""
        around = self.around
        around.ended |= walked.ended
        around.cut_off |= walked.cut_off
        for index, event in enumerate(walked.events):
            if event is None:
                fault = walked.faults.get(index, "unreadable")
                bad_events = around.bad.get(fault)
                if bad_events is None:
                    place = self._offset + walked.spans[index][0]
                    bad_events = around.bad[fault] = BadEvents(
                        self.num_events + index, place
                    )
                bad_events.count += 1


def _start_of_events(text: bytes, level: int) -> re.Match[bytes] | None:
    """Where the list of events of the outermost object begins.

    Where none stands on that level, which damage may hide, it is the first of all.
    `level` is the text's own at its start.
    """
    first, end = None, 0
    for match in _START.finditer(text):
        first = first or match
        level += nesting(text, end, match.start())
        end = match.start()
        if level == 1:
            return match
    return first


def _last_boundary(data: bytes) -> tuple[int, int] | None:
    """Where the last whole event ends, and where the next begins."""
    for start in (max(len(data) - _LATE, 0), 0):
        last = None
        for match in BOUNDARY.finditer(data, start):
            last = match
        if last is not None:
            return last.start() + 1, last.end() - 1
        if start == 0:
            break
    return None
