"""Events one at a time, with repairs, where a chunk of them does not decode as it is.

What profilers are known to have written: bare `NaN`, `Infinity` and `N/A`, backslashes
that escape nothing, control characters in strings, bytes that are not UTF-8, halves of
surrogate pairs, and ends that are missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tb_plugin.readers.traces.events import FAULTS, ONE, AnyEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

BOUNDARY: Final = re.compile(rb"\}\s*,\s*\{")
"""What stands between two events, and seldom anywhere else."""
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


@dataclass(slots=True)
class Walked:
    """What a walk over some bytes found."""

    events: list[AnyEvent | None] = field(default_factory=list)
    """None: one that could not be read."""
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Of each event: where it begins and ends."""
    consumed: int = 0
    """What follows needs more bytes to be understood."""
    ended: bool = False
    """Whether the list of events ended, at `consumed`."""
    cut_off: bool = False
    """Whether the bytes end inside an event."""


def walk(data: bytes, *, at_end: bool) -> Walked:
    """Take events from the start of `data` until they or the bytes end."""
    found = Walked()
    at = 0
    while True:
        at = _NEXT.match(data, at).end()  # type: ignore[union-attr]  # matches nothing too
        if at == len(data):
            break
        if data[at : at + 1] == b"]":
            found.ended = True
            at += 1
            break
        event, stop = _take(data, at, at_end=at_end)
        if stop < 0:
            if not at_end and len(data) - at < MAX_EVENT:
                break
            found.cut_off = at_end
            stop = len(data)
        found.events.append(event)
        found.spans.append((at, stop))
        at = stop
    found.consumed = at
    return found


def _take(data: bytes, at: int, *, at_end: bool) -> tuple[AnyEvent | None, int]:
    """The event that begins here and where it ends; -1: not in these bytes."""
    boundary = BOUNDARY.search(data, at)
    if boundary is not None:
        piece = data[at : boundary.start() + 1]
        event = _decoded(piece) or _decoded_repaired(piece)
        if event is not None:
            return event, boundary.start() + 1
    stop = _end_of_object(data, at)
    if stop > 0:
        piece = data[at:stop]
        return _decoded(piece) or _decoded_repaired(piece), stop
    sure = _SURE.search(data, at)
    if sure is None:
        return None, -1
    if stop == 0 and not at_end and len(data) - at < _SCAN:
        return None, -1  # it may go on where more bytes are
    piece = data[at : sure.start() + 1]
    return _decoded_repaired(piece), sure.start() + 1


def _end_of_object(data: bytes, at: int) -> int:
    """Where the object that begins here ends; 0: too far away; -1: it is damaged."""
    depth = 0
    for token in _TOKEN.finditer(data, at, at + _SCAN):
        kind = token.group()
        if kind in (b"{", b"["):
            depth += 1
        elif kind in (b"}", b"]"):
            depth -= 1
        elif kind == b'"':  # a string without an end on its line
            return -1
        if depth <= 0:
            return token.end() if kind == b"}" else -1
    return 0


def _decoded(piece: bytes) -> AnyEvent | None:
    try:
        return ONE.decode(piece)
    except FAULTS:
        return None


def _decoded_repaired(piece: bytes) -> AnyEvent | None:
    """What it says once it is JSON; None: beyond repair."""
    for text in repairs(piece):
        event = _decoded(text)
        if event is not None:
            return event
    return None


def repairs(text: bytes) -> Iterator[bytes]:
    """What a damaged text may have meant, the most careful first."""
    bare = _BARE.sub(lambda found: _null(found.group()), text)
    yield bare
    clean = bare.decode(errors="replace").encode()
    clean = _SURROGATE.sub(rb"\\ufffd", _CONTROL.sub(b" ", clean))
    yield _BAD_ESCAPE.sub(_escaped, clean)
    last = _CONTROL.sub(b" ", _LAST_QUOTE.sub(rb'\\\\"', bare))
    last = _BAD_ESCAPE.sub(_escaped, last.decode(errors="replace").encode())
    yield _NO_VALUE.sub(b": null", last)


def _null(token: bytes) -> bytes:
    return token if token[:1] == b'"' else b"null"


def _escaped(found: re.Match[bytes]) -> bytes:
    return found.group() if found.group(1) else b"\\\\"
