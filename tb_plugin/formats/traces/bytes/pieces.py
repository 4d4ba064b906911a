"""Events one at a time, with repairs, where a chunk of them does not decode as it is.

What profilers are known to have written: bare `NaN`, `Infinity` and `N/A`, backslashes
that escape nothing, control characters in strings, bytes that are not UTF-8, halves of
surrogate pairs, and ends that are missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
)

from memboard.tb_plugin.formats.traces.columns.events import FAULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

E = TypeVar("E")

BOUNDARY: Final = re.compile(rb"\}\s*,\s*\{")
"""Text between two events, and seldom anywhere else."""
_SURE: Final = re.compile(rb'\}\s*,\s*\{\s*"(?:ph|name|cat|pid|tid|ts)"\s*:')
_NEXT: Final = re.compile(rb"[\s,]*")
_TOKEN: Final = re.compile(rb'"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"|[{}\[\]"]')
_BARE: Final = re.compile(
    rb'"[^"\\]*(?:\\.[^"\\]*)*"|[-+]?(?:NaN|nan|Infinity|inf|N/A|[-+]?\d[\d.]*[eE]\+?\d{3,})',
    re.DOTALL,
)
_BAD_ESCAPE: Final = re.compile(rb'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4}))?')
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_CONTROL: Final = re.compile(rb"[\x00-\x1f]")
_LAST_QUOTE: Final = re.compile(rb'\\"(?=\s*(?:\}|,\s*"|,?\s*\n))')
_NO_VALUE: Final = re.compile(rb":\s*(?=[,}\]])")
_SCAN: Final = 1 << 18
"""Bytes in which an event's end is looked for."""
MAX_EVENT: Final = 1 << 22
"""Bytes of one event; what is longer is damaged."""
MAX_LEVELS: Final = 500
"""Of objects and lists in each other; events have a handful."""
_SCALAR: Final = re.compile(
    rb'(?:"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"|[^\s,\[\]{}":]+)(?=\s*(?:[,\]]|\Z))'
)
"""An entry of the list that is neither an object nor a list."""

Fault: TypeAlias = Literal["unreadable", "deep", "list", "text", "number"]
"""Why an entry of the list is no event; `number` is also what `null` and `true` are."""


class _Piece(NamedTuple):
    event: Any
    stop: int
    """Where it ends; -1: not in these bytes."""
    fault: Fault = "unreadable"
    """Why there is no event."""


@dataclass(slots=True)
class WalkResult(Generic[E]):
    """What a walk over some bytes found."""

    events: list[E | None] = field(default_factory=list)
    """None: one that could not be read."""
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Of each event: where it begins and ends."""
    faults: dict[int, Fault] = field(default_factory=dict)
    """Of those that could not be read."""
    consumed: int = 0
    """What follows needs more bytes to be understood."""
    ended: bool = False
    """Whether the list of events ended, at `consumed`."""
    cut_off: bool = False
    """Whether the bytes end inside an event."""


def walk(data: bytes, decode: Callable[[bytes], E], *, at_end: bool) -> WalkResult[E]:
    """Take events from the start of `data` until they or the bytes end.

    `decode`: makes an event of its bytes, or raises one of `FAULTS`.
    """
    walked: WalkResult[E] = WalkResult()
    position = 0
    while True:
        position = _NEXT.match(data, position).end()  # type: ignore[union-attr]  # matches nothing too
        if position == len(data):
            break
        if data[position : position + 1] == b"]":
            walked.ended = True
            position += 1
            break
        event, stop, fault = _take(data, position, decode, at_end=at_end)
        if stop < 0:
            if not at_end and len(data) - position < MAX_EVENT:
                break
            walked.cut_off = at_end
            stop = len(data)
        if event is None:
            walked.faults[len(walked.events)] = fault
        walked.events.append(event)
        walked.spans.append((position, stop))
        position = stop
    walked.consumed = position
    return walked


def _take(
    data: bytes, position: int, decode: Callable[[bytes], E], *, at_end: bool
) -> _Piece:
    """The event that begins here, and where it ends."""
    if data[position : position + 1] != b"{":
        other = _other_than_event(data, position)
        if other is not None:
            return other
    boundary = BOUNDARY.search(data, position)
    if boundary is not None:
        piece = data[position : boundary.start() + 1]
        event = _decoded(piece, decode) or _repaired(piece, decode)
        if event is not None:
            return _Piece(event, boundary.start() + 1)
    stop, levels = _end_of_value(data, position)
    if levels > MAX_LEVELS:
        return _Piece(None, stop or -1, "deep")
    if stop > 0:
        piece = data[position:stop]
        return _Piece(_decoded(piece, decode) or _repaired(piece, decode), stop)
    sure = _SURE.search(data, position)
    if sure is None:
        return _Piece(None, -1)
    if stop == 0 and not at_end and len(data) - position < _SCAN:
        return _Piece(None, -1)  # it may go on where more bytes are
    piece = data[position : sure.start() + 1]
    return _Piece(_repaired(piece, decode), sure.start() + 1)


def _other_than_event(data: bytes, position: int) -> _Piece | None:
    """What stands in an event's place: whole, and no object; None: nothing of the kind."""
    if data[position : position + 1] == b"[":
        stop, levels = _end_of_value(data, position)
        if levels > MAX_LEVELS:
            return _Piece(None, stop or -1, "deep")
        return _Piece(None, stop, "list") if stop > 0 else None
    scalar = _SCALAR.match(data, position)
    if scalar is None:
        return None
    return _Piece(
        None,
        scalar.end(),
        "text" if data[position : position + 1] == b'"' else "number",
    )


def _end_of_value(data: bytes, position: int) -> tuple[int, int]:
    """Where the object or list that begins here ends, and how many levels it has.

    The end is 0 where it is too far away, and -1 where the value is damaged.
    """
    most = levels = 0
    far = position + _SCAN
    is_object = data[position : position + 1] == b"{"
    for token in _TOKEN.finditer(data, position, position + MAX_EVENT):
        kind = token.group()
        if kind in (b"{", b"["):
            levels += 1
            most = max(most, levels)
        elif kind in (b"}", b"]"):
            levels -= 1
        elif kind == b'"':  # a string without an end on its line
            return -1, most
        if levels <= 0:
            is_end = kind == (b"}" if is_object else b"]")
            return (token.end() if is_end else -1), most
        if token.end() > far and most <= MAX_LEVELS:
            return 0, most
    return 0, most


def nesting(data: bytes, start: int, stop: int) -> int:
    """By how many levels the end of some bytes is deeper than their start."""
    levels = 0
    for token in _TOKEN.finditer(data, start, stop):
        kind = token.group()
        levels += (kind in (b"{", b"[")) - (kind in (b"}", b"]"))
    return levels


def _decoded(piece: bytes, decode: Callable[[bytes], E]) -> E | None:
    try:
        return decode(piece)
    except FAULTS:
        return None


def _repaired(piece: bytes, decode: Callable[[bytes], E]) -> E | None:
    """What it says once it is JSON; None: beyond repair."""
    for text in repairs(piece):
        event = _decoded(text, decode)
        if event is not None:
            return event
    return None


def repairs(text: bytes) -> Iterator[bytes]:
    """What a damaged text may have meant, the most careful first."""
    bare = _BARE.sub(lambda match: _null(match.group()), text)
    yield bare
    clean = bare.decode(errors="replace").encode()
    clean = _SURROGATE.sub(rb"\\ufffd", _CONTROL.sub(b" ", clean))
    yield _BAD_ESCAPE.sub(_escaped, clean)
    last = _CONTROL.sub(b" ", _LAST_QUOTE.sub(rb'\\\\"', bare))
    last = _BAD_ESCAPE.sub(_escaped, last.decode(errors="replace").encode())
    yield _NO_VALUE.sub(b": null", last)


def _null(token: bytes) -> bytes:
    return token if token[:1] == b'"' else b"null"


def _escaped(match: re.Match[bytes]) -> bytes:
    return match.group() if match.group(1) else b"\\\\"
