"""Events of traces as the merger takes them: what it changes decoded, the rest as it was.

`Event` holds what the Chrome trace format knows; everything but place, time and ids is
carried over as the bytes it was written with. An event that says more than that, or says
it oddly, is a dictionary of such bytes instead, so nothing is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import numpy as np
from msgspec import Raw

from tb_plugin.formats.traces.bytes.chunks import Chunk, Chunks
from tb_plugin.formats.traces.bytes.pieces import repairs, walk
from tb_plugin.formats.traces.events import FAULTS
from tb_plugin.formats.traces.times.exact_times import (
    EXACT_BELOW_US,
    from_digits,
    from_floats,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

NOTHING: Final = Raw(b"")

Id: TypeAlias = int | str | None


class Event(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """One event of a trace, as read or to be written."""

    ph: str
    cat: Raw = NOTHING
    name: Raw = NOTHING
    pid: Id = None
    tid: Id = None
    ts: int | float | None = None
    dur: Raw = NOTHING
    args: Raw = NOTHING
    id: Id = None
    bp: Raw = NOTHING
    s: Raw = NOTHING
    bind_id: Id = None
    flow_in: Raw = NOTHING
    flow_out: Raw = NOTHING
    scope: Raw = NOTHING
    tts: Raw = NOTHING
    tdur: Raw = NOTHING
    cname: Raw = NOTHING


AnyEvent: TypeAlias = dict[str, Any]
"""An event by key: bytes as they were read, or values to be written."""

_FAST: Final = msgspec.json.Decoder(list[Event])
_ANY: Final = msgspec.json.Decoder(list[dict[str, Raw]])
_ONE: Final = msgspec.json.Decoder(dict[str, Raw])
_PLAIN: Final = msgspec.json.Decoder()
_ENCODER: Final = msgspec.json.Encoder()


class WholeEvents(Chunks):
    """The events of one file, whole: each an `Event`, an `AnyEvent`, or None."""

    def _events(self, text: bytes) -> Any:
        if not self._exact:
            try:
                events = _FAST.decode(text)
            except FAULTS:
                pass
            else:
                written = [event.ts for event in events]
                times = np.array(written, np.float64)
                large = np.flatnonzero(np.abs(times) >= EXACT_BELOW_US).tolist()
                if not any(isinstance(written[index], float) for index in large):
                    return events, from_floats(times)
                self._exact = True
        return _any_events(text) or _any_events(next(repairs(text)))

    def _walked(self, *, at_end: bool) -> Chunk:
        found = walk(self._data, at_end=at_end)
        events = [self._one(start, stop) for start, stop in found.spans]
        self._note(found, events)
        chunk = Chunk(
            self._offset,
            found.consumed,
            self.num_events,
            events,  # type: ignore[arg-type]  # of other shapes than the reader's
            from_digits([_digits(event) for event in events]),
        )
        self.num_events += len(events)
        self._drop(found.consumed)
        return chunk

    def _one(self, start: int, stop: int) -> AnyEvent | None:
        piece = self._data[start:stop]
        for text in (piece, *repairs(piece)):
            try:
                return _ONE.decode(text)
            except FAULTS:  # noqa: PERF203  # seldom more than one
                continue
        return None


def _any_events(text: bytes) -> Any:
    try:
        events = _ANY.decode(text)
    except FAULTS:
        return None
    return events, from_digits([_digits(event) for event in events])


def _digits(event: AnyEvent | None) -> bytes:
    return b"" if event is None else bytes(event.get("ts", b""))


def plain(raw: Any) -> Any:
    """What the bytes of a value say; None where they are none."""
    try:
        return _PLAIN.decode(raw)
    except FAULTS:
        return None


def raw(value: Any) -> Raw:
    """A value as it is written."""
    return Raw(_ENCODER.encode(value))


def encoded(events: Sequence[Event | AnyEvent]) -> bytes:
    """Events with commas between; empty without any."""
    text = _ENCODER.encode(events)[1:-1]
    if not text.isascii():
        try:
            text.decode()
        except (
            UnicodeDecodeError
        ):  # carried over as it was: viewers would refuse it all
            text = text.decode(errors="replace").encode()
    return text


def object_bytes(value: Any) -> bytes:
    """A JSON value."""
    return _ENCODER.encode(value)
