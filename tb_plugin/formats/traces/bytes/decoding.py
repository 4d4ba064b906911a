"""Chunks of events, decoded to the shape that their reader needs.

`ColumnDecoder` is for tables: what becomes columns, from fast to tolerant. `WholeDecoder`
is for another trace: what is not changed stays as it was written, and nothing is lost.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

import msgspec
import numpy as np

from memboard.tb_plugin.formats.traces.bytes.pieces import repairs
from memboard.tb_plugin.formats.traces.columns.events import (
    ANY,
    EXACT,
    FAST,
    FAULTS,
    ONE,
    AnyEvent,
    Event,
    EventByKey,
    ExactEvent,
    WholeEvent,
)
from memboard.tb_plugin.formats.traces.columns.times import (
    EXACT_BELOW_US,
    from_digits,
    from_floats,
    needs_digits,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Ints: TypeAlias = npt.NDArray[np.int64]

E = TypeVar("E")
ColumnEvent: TypeAlias = "Event | ExactEvent | AnyEvent"

_WHOLE: Final = msgspec.json.Decoder(list[WholeEvent])
_BY_KEY: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_ONE_BY_KEY: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class EventDecoder(Protocol[E]):
    """What `Chunks` decodes one file's events with."""

    def decode(self, text: bytes) -> tuple[Sequence[E], Ints] | None:
        """The events of a list, and the time of each in ns; None: not all are events."""

    def decode_one(self, text: bytes) -> E:
        """One event alone.

        Raises:
            FAULTS: it is none.
        """

    def times_ns(self, events: Sequence[E | None]) -> Ints:
        """The times of events that were decoded alone; `NO_TIME` for None."""


class ColumnDecoder:
    """What becomes columns of tables; keeps digits once floats would lose some."""

    def __init__(self) -> None:
        self._exact = False

    def decode(self, text: bytes) -> tuple[Sequence[ColumnEvent], Ints] | None:
        with suppress(*FAULTS):
            if not self._exact:
                events = FAST.decode(text)
                times = np.array([event.ts for event in events], np.float64)
                if _has_counters(events):
                    return _timed(ANY.decode(text))
                if not needs_digits(times, text):
                    return events, from_floats(times)
                self._exact = True
            exact = EXACT.decode(text)
            return _timed(ANY.decode(text) if _has_counters(exact) else exact)
        # Arguments of counters, and what is odd, are of any shape.
        for attempt in (text, next(repairs(text))):
            with suppress(*FAULTS):
                return _timed(ANY.decode(attempt))
        return None

    def decode_one(self, text: bytes) -> ColumnEvent:
        return ONE.decode(text)

    def times_ns(self, events: Sequence[Any]) -> Ints:
        return from_digits(
            [b"" if event is None else bytes(event.ts) for event in events]
        )


def _has_counters(events: Sequence[Event | ExactEvent]) -> bool:
    """Whether all arguments of some are values."""
    return "C" in {event.ph for event in events}


def _timed(events: Sequence[Any]) -> tuple[Sequence[Any], Ints]:
    return events, from_digits([bytes(event.ts) for event in events])


class WholeDecoder:
    """Events to be written again: each a `WholeEvent`, or by key where it is odd.

    By key takes twice the time.
    """

    def __init__(self) -> None:
        self._exact = False

    def decode(
        self, text: bytes
    ) -> tuple[Sequence[WholeEvent | EventByKey], Ints] | None:
        if not self._exact:
            try:
                events = _WHOLE.decode(text)
            except FAULTS:
                pass
            else:
                written = [event.ts for event in events]
                times = np.array(written, np.float64)
                large = np.flatnonzero(np.abs(times) >= EXACT_BELOW_US).tolist()
                if not any(isinstance(written[index], float) for index in large):
                    return events, from_floats(times)
                self._exact = True
        # Beyond one repair, event by event.
        for attempt in chain((text,), islice(repairs(text), 1)):
            try:
                by_key = _BY_KEY.decode(attempt)
            except FAULTS:
                continue
            return by_key, self.times_ns(by_key)
        return None

    def decode_one(self, text: bytes) -> WholeEvent | EventByKey:
        return _ONE_BY_KEY.decode(text)

    def times_ns(self, events: Sequence[Any]) -> Ints:
        return from_digits(
            [b"" if event is None else bytes(event.get("ts", b"")) for event in events]
        )
