"""Events of traces as they are merged: what is not changed stays as it was written.

`Event` holds what the Chrome trace format knows. An event that says more than that, or
says it oddly, is an `AnyEvent`, so nothing is lost; that takes twice the time.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import numpy as np
from msgspec import Raw

from memboard.tb_plugin.formats.traces.bytes.chunks import Chunk, Chunks
from memboard.tb_plugin.formats.traces.bytes.pieces import repairs, walk
from memboard.tb_plugin.formats.traces.events import FAULTS
from memboard.tb_plugin.formats.traces.times import (
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
"""An event by key: the bytes that were read, or values to be written."""

_FAST: Final = msgspec.json.Decoder(list[Event])
_MANY: Final = msgspec.json.Decoder(list[dict[str, Raw]])
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
        found = _decoded(_MANY, text, most_repairs=1)  # else event by event
        return None if found is None else (found, _times_ns(found))

    def _walked(self, *, at_end: bool) -> Chunk:
        found = walk(self._data, at_end=at_end)
        events = [_decoded(_ONE, self._data[at:stop]) for at, stop in found.spans]
        self._note(found, events)
        chunk = Chunk(
            self._offset, found.consumed, self.num_events, events, _times_ns(events)
        )
        self.num_events += len(events)
        self._drop(found.consumed)
        return chunk


def _decoded(decoder: Any, text: bytes, most_repairs: int | None = None) -> Any:
    for tried in chain((text,), islice(repairs(text), most_repairs)):
        try:
            return decoder.decode(tried)
        except FAULTS:  # noqa: PERF203  # seldom more than one
            continue
    return None


def _times_ns(events: Sequence[AnyEvent | None]) -> Any:
    return from_digits(
        [b"" if one is None else bytes(one.get("ts", b"")) for one in events]
    )


def plain(value: Any) -> Any:
    """What the bytes of a value say; None where they are none."""
    try:
        return None if value is None else _PLAIN.decode(value)
    except FAULTS:
        return None


def encoded(value: Any) -> bytes:
    return _ENCODER.encode(value)


def joined(events: Sequence[Event | AnyEvent]) -> bytes:
    """Events with commas between; empty without any."""
    text = _ENCODER.encode(events)[1:-1]
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError:  # as it was read: viewers would refuse it all
            text = text.decode(errors="replace").encode()
    return text
