"""Events of a recording beside its spans, as a track of instants of its own.

Errors of memory, marks, epochs and phases are notes of the rank's file; that a checkpoint
was written is a span, whose end is an instant here, so that one can go from one to the
next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from memboard.collector.format.records import Note

TRACK: Final = "events"

CHECKPOINT: Final = "checkpoint"
"""Category of spans whose end is an event."""

OUT_OF_MEMORY: Final = "oom"
"""Category of errors of memory."""

MAX_EVENTS: Final = 5_000
_MAX_TEXT: Final = 200
_WORDS: Final = {
    "oom": ("out of memory", ""),
    "mark": ("mark", "label"),
    "epoch": ("epoch", "epoch"),
    "phase": ("phase", "phase"),
}
"""By kind of note: what it is called, and which of its data says which one."""


class SpanEvent(NamedTuple):
    """Something that happened at one time."""

    time_ns: int  # Wall clock
    name: str
    category: str
    step: int  # -1: not known
    args: Mapping[str, Any]


def events_of(notes: Iterable[Note]) -> Iterator[SpanEvent]:
    """The events that the notes of a file tell; at most the first 5,000."""
    count = 0
    for note in notes:
        name_and_key = _WORDS.get(note.kind)
        if name_and_key is None:
            continue
        if count >= MAX_EVENTS:
            return
        count += 1
        word, key = name_and_key
        which = note.data.get(key) if key else None
        name = f"{word} {which}" if isinstance(which, str | int) else word
        step = note.step if note.step is not None else -1
        yield SpanEvent(note.time_ns, name[:_MAX_TEXT], note.kind, step, note.data)


def checkpoint_event(end_ns: int, name: str, duration_ns: int, step: int) -> SpanEvent:
    """That a checkpoint was written."""
    args = {"span": name, "seconds": duration_ns / 1e9}
    return SpanEvent(end_ns, "checkpoint written", CHECKPOINT, step, args)
