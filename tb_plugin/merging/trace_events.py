"""The events of one trace's file, moved to the merged trace's clock, places and ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Raw

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.formats.traces.bytes.chunks import Chunks
from memboard.tb_plugin.formats.traces.bytes.decoding import WholeDecoder
from memboard.tb_plugin.formats.traces.bytes.inflated import InflatedFile
from memboard.tb_plugin.formats.traces.columns.events import (
    EventByKey,
    WholeEvent,
    plain,
)
from memboard.tb_plugin.formats.traces.columns.times import NO_TIME
from memboard.tb_plugin.formats.traces.torch_clock import RELATIVE_BELOW_NS
from memboard.tb_plugin.merging.output import encoded, joined

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.ranks.clock_line import ClockLine
    from memboard.tb_plugin.merging.places import Places

    Ints = npt.NDArray[np.int64]

_NAMES: Final = frozenset(
    f"{kind}_{fact}"
    for kind in ("process", "thread")
    for fact in ("name", "labels", "sort_index")
)
_MAX_US: Final = 2.0**50
"""Longer than any trace; sums of a few still fit 64 bits as nanoseconds."""
_ID_BITS: Final = 32
_FIRST_NUMBERED: Final = 1 << 31
_MOST_NUMBERED: Final = 1 << 20
"""Ids of a file that are texts or large (Ascend's are times in nanoseconds) and become
numbers."""
_MAX_FILES: Final = 1 << 20
"""Numbers of ids stay below 2**53: viewers hold them as floats."""


class Shift:
    """From a source's own times to the merged trace's."""

    def __init__(
        self,
        line: ClockLine,
        zero_ns: int,
        *,
        base_ns: int = 0,
        relative_base_ns: int = 0,
    ) -> None:
        """Both bases lead to the clock that `line` is of.

        Args:
            line: from there to the reference's clock.
            zero_ns: the reference's time that the merged trace counts from.
            base_ns: added to every time.
            relative_base_ns: added besides to those below `RELATIVE_BELOW_NS`.
        """
        self._base_ns = base_ns
        self._relative_base_ns = relative_base_ns
        self._zero_ns = zero_ns
        parts = line.stretches()
        self._starts = np.array([part.from_ns for part in parts], np.int64)
        self._offsets = np.array([part.offset_ns for part in parts], np.int64)
        self._slopes = np.array([part.rise_ns / part.span_ns for part in parts])
        self.is_stretching = bool(self._slopes.any())
        """Whether the clocks drift apart, and so does what lasts."""

    def us(self, times_ns: Ints) -> npt.NDArray[np.float64]:
        """Microseconds of the merged trace; NaN where an event says no time."""
        moved_ns = self._moved(self._based(times_ns))
        return np.where(times_ns == NO_TIME, np.nan, moved_ns / 1000)

    def lasting_us(self, times_ns: Ints, durations_ns: Ints) -> npt.NDArray[np.float64]:
        """How long what begins at these times lasts there.

        Both ends go by the line: what lies in another slice must stay inside, or viewers
        drop it.
        """
        begins = self._based(times_ns)
        return (self._moved(begins + durations_ns) - self._moved(begins)) / 1000

    def _based(self, times_ns: Ints) -> Ints:
        based_ns = times_ns + self._base_ns
        if self._relative_base_ns:
            based_ns += np.where(
                times_ns < RELATIVE_BELOW_NS, self._relative_base_ns, 0
            )
        return based_ns

    def _moved(self, time_ns: Ints) -> Ints:
        """By the line, to nanoseconds of the merged trace; in order as before."""
        part = np.clip(
            np.searchsorted(self._starts, time_ns, "right") - 1,
            0,
            len(self._starts) - 1,
        )
        with np.errstate(invalid="ignore"):  # a note may claim anything
            drifted = np.floor((time_ns - self._starts[part]) * self._slopes[part])
            moved: Ints = time_ns + self._offsets[part] + drifted.astype(np.int64)
        return moved - self._zero_ns


class MovedTrace:
    """One file; iterate it, then ask what was wrong."""

    def __init__(
        self, file: IO[bytes], shift: Shift, places: Places, number: int
    ) -> None:
        """`number` is the file's: no other file may have it, or ids collide."""
        self._stream = InflatedFile(file)
        self._chunks = Chunks(self._stream, WholeDecoder())
        self._shift = shift
        self._places = places
        self._number = number
        self._numbers: dict[Any, int] = {}
        """Of ids that are not small numbers themselves."""
        self.num_events = 0

    def __iter__(self) -> Iterator[bytes]:
        """Events with commas between, some hundred KB at a time.

        Raises:
            ImportFailedError: it is not a trace.
            OSError: it cannot be read.
        """
        for chunk in self._chunks:
            events: Any = chunk.events
            times = self._shift.us(chunk.times_ns)
            if self._shift.is_stretching:
                self._stretch(events, chunk.times_ns)
            moved = self._moved(events, times.tolist())
            self.num_events += len(moved)
            if text := joined(moved):
                yield text

    def problems(self) -> list[str]:
        """What could not be read of it, in words."""
        around, sentences = self._chunks.around, []
        if self._stream.problem:
            sentences.append(self._stream.problem)
        elif around.cut_off or not around.ended:
            sentences.append("The file ends before its events do: it is truncated.")
        if around.bad:
            first = min(bad_events.offset for bad_events in around.bad.values())
            sentences.append(
                f"{counted(around.num_bad, 'event')} could not be read, the first at byte"
                f" {first}."
            )
        return sentences

    def _stretch(self, events: Any, times_ns: Ints) -> None:
        """Have each slice last as long as it does by the reference's clock."""
        movable = [
            (index, ns)
            for index, event in enumerate(events)
            if event is not None and (ns := _duration_ns(event)) > 0
        ]
        if not movable:
            return
        places, durations = np.array(movable, np.int64).T
        lasting = self._shift.lasting_us(times_ns[places], durations)
        for index, us in zip(places.tolist(), lasting.tolist(), strict=True):
            event = events[index]
            if times_ns[index] == NO_TIME:
                continue
            if event.__class__ is WholeEvent:
                event.dur = Raw(encoded(us))
            else:
                event["dur"] = us

    def _moved(self, events: Any, times: list[float]) -> list[WholeEvent | EventByKey]:
        known_places, moved = self._places.known, []
        for event, us in zip(events, times, strict=True):
            if event.__class__ is not WholeEvent:
                if event is not None and self._move_any(event, us):
                    moved.append(event)
                continue
            if event.ph == "M" and self._takes_name(
                plain(event.name), event.pid, event.tid, event.args
            ):
                continue
            place = known_places.get((event.pid, event.tid))
            if place is None:
                place = self._places.of(event.pid, event.tid)
            event.pid, event.tid = place
            event.ts = us if us == us else None  # noqa: PLR0124  # NaN
            if event.id is not None:
                event.id = self._id(event.id)
            if event.bind_id is not None:
                event.bind_id = self._id(event.bind_id)
            moved.append(event)
        return moved

    def _move_any(self, event: EventByKey, us: float) -> bool:
        """The same for an odd event; False where it was kept as a name."""
        pid, tid = _key(plain(event.get("pid"))), _key(plain(event.get("tid")))
        if plain(event.get("ph")) == "M" and self._takes_name(
            plain(event.get("name")), pid, tid, event.get("args")
        ):
            return False
        event["pid"], event["tid"] = self._places.of(pid, tid)
        event["ts"] = us
        if us != us:  # noqa: PLR0124  # NaN
            del event["ts"]
        for key in ("id", "bind_id"):
            if key in event:
                event[key] = self._id(plain(event[key]))
        ids = plain(event.get("id2"))
        if isinstance(ids, dict) and "global" in ids:
            event["id2"] = {**ids, "global": self._id(ids["global"])}
        return True

    def _id(self, value: Any) -> int | str:
        """Ids connect events of one file; those of another must not be equal.

        They stay numbers, as far as there is room: Perfetto draws no arrow by a text.
        """
        if self._number >= _MAX_FILES:
            return f"{self._number}:{value}"
        if isinstance(value, int) and 0 <= value < _FIRST_NUMBERED:
            return self._number << _ID_BITS | value
        number = self._numbers.get(value)
        if number is None:
            if len(self._numbers) >= _MOST_NUMBERED:
                return f"{self._number}:{value}"
            number = _FIRST_NUMBERED + len(self._numbers)
            self._numbers[value] = number
        return self._number << _ID_BITS | number

    def _takes_name(self, event_name: Any, pid: Any, tid: Any, args: Any) -> bool:
        """Keep what a metadata event says; False where it says something else."""
        if event_name not in _NAMES:
            return False
        fields = plain(args)
        if isinstance(fields, dict):
            text = fields.get("name", fields.get("labels", ""))
            text = text if isinstance(text, str) else ""
            sort = fields.get("sort_index")
            sort = sort if isinstance(sort, int) else None
            if event_name == "process_labels":
                self._places.tell_process(pid, label=text)
            elif event_name.startswith("process"):
                self._places.tell_process(pid, name=text, sort=sort)
            else:
                self._places.tell_thread(pid, tid, name=text, sort=sort)
        return True


def _duration_ns(event: WholeEvent | EventByKey) -> int:
    """How long an event says it lasts; 0 where it says nothing of use."""
    text: Any = event.dur if isinstance(event, WholeEvent) else event.get("dur", b"")
    try:
        us = float(bytes(text))
    except ValueError:
        return 0
    return round(us * 1000) if 0 < us < _MAX_US else 0


def _key(value: Any) -> Any:
    """What a process or thread is told apart by."""
    return value if isinstance(value, (int, str, float)) else str(value)
