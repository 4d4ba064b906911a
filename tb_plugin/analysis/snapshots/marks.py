"""Events and spans of a device that have a name: where to jump to.

Errors and snapshots are events; annotated ranges, steps and the program's own tags are
spans. Of very many in a window some are chosen: errors first, and everywhere in the
window the longest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.snapshots.tags import is_tag
from memboard.tb_plugin.analysis.allocator.lifetimes import OOM, SNAPSHOT
from memboard.tb_plugin.analysis.arrays import NOTHING, Table, begins, nth

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.analysis.snapshots.snapshot import DeviceSnapshot
    from memboard.tb_plugin.analysis.snapshots.steps import Spans, Steps


KINDS: Final = ("oom", "snapshot", "annotation", "step", "tag")
_OOM, _SNAPSHOT, _ANNOTATION, _STEP, _TAG = range(len(KINDS))


@dataclass(frozen=True, slots=True)
class Marks(Table):
    """Marks by `moment`, of equal ones the longest first; columns of equal length."""

    kind: Ints  # Index in `KINDS`
    moment: Ints
    """Of a span: the last event before it."""
    end: Ints
    """Of a span: its last event; else `moment`."""
    label: Ints  # Row of `labels`
    num_bytes: Floats
    """oom: requested; snapshot: active; else NaN."""
    device_free: Floats
    """oom: bytes the device had free; else NaN, as where that is not known."""
    step: Floats
    """The step under way, of a span at its first event; NaN where it is not known."""
    labels: tuple[str, ...]

    def within(self, start: int, stop: int, most: int) -> Marks:
        """At most so many of those that touch the events `start` to `stop`.

        Where there are more, errors go first; then the longest of each part of the
        window, the next longest of each, and so on: none of its parts goes without.
        """
        rows = np.flatnonzero((self.end >= start - 1) & (self.moment < stop))
        if len(rows) > most:
            rows = np.sort(rows[self._chosen(rows, start, stop, most)[:most]])
        return self.take(rows)

    def _chosen(self, rows: Ints, start: int, stop: int, most: int) -> Ints:
        """Places in `rows`, the most important first."""
        # Half as many parts: the other half is for what is longer than others.
        num_parts = max(1, most // 2)
        begin = np.clip(self.moment[rows], start, max(stop - 1, start)) - start
        part = begin * num_parts // max(stop - start, 1)
        length = self.end[rows] - self.moment[rows]
        is_other = self.kind[rows] != _OOM
        # Errors have parts of their own, or the longer spans would go before them.
        part = part + is_other * num_parts
        order = np.lexsort((-length, part))
        place = np.empty(len(order), np.int64)
        place[order] = nth(part[order])
        return np.lexsort((-length, place, is_other))


def marks_of(
    device: DeviceSnapshot, spans: Spans, steps: Steps, texts: Sequence[str]
) -> Marks:
    """All that has a name."""
    all_marks = [
        *_events(device),
        _annotations(spans),
        _steps(steps, len(device.events)),
        _tags(device.events.tag, texts),
    ]
    together = _merged([marks for marks in all_marks if len(marks)])
    return replace(together, step=_under_way(together, steps))


def _under_way(marks: Marks, steps: Steps) -> Floats:
    """The step at each of some marks."""
    first = np.minimum(marks.moment + (marks.end > marks.moment), marks.end)
    of_step = np.full(len(marks), NOTHING, np.int64)
    is_event = first >= 0  # others lie before all events
    of_step[is_event] = steps.step[first[is_event]]
    return np.where(of_step < 0, np.nan, of_step.astype(np.float64))


def _merged(all_marks: Sequence[Marks]) -> Marks:
    """Marks of several kinds as one, in order."""
    if not all_marks:
        return _spans(_TAG, _nothing(), _nothing(), _nothing(), ())
    firsts = np.cumsum([0, *(len(marks.labels) for marks in all_marks)])
    label = [
        marks.label + first for marks, first in zip(all_marks, firsts, strict=False)
    ]
    labels = tuple(label for marks in all_marks for label in marks.labels)
    together = Marks.joined(all_marks, label=np.concatenate(label), labels=labels)
    length = together.end - together.moment
    return together.take(np.lexsort((-length, together.moment)))


def _events(device: DeviceSnapshot) -> tuple[Marks, Marks]:
    events = device.events
    return (
        _points(_OOM, device, events.of_action(OOM), "out of memory"),
        _points(_SNAPSHOT, device, events.of_action(SNAPSHOT), "snapshot"),
    )


def _points(kind: int, device: DeviceSnapshot, rows: Ints, label: str) -> Marks:
    events, moment = device.events, rows.astype(np.int64)
    free = np.asarray(events.device_free[rows], np.float64)
    has_free = (free >= 0) & (kind == _OOM)
    return Marks(
        np.full(len(rows), kind, np.uint8),
        moment,
        moment,
        np.zeros(len(rows), np.int64),
        np.asarray(events.size[rows], np.float64),
        np.where(has_free, free, np.nan),
        np.full(len(rows), np.nan),
        (label,),
    )


def _spans(
    kind: int, first: Ints, last: Ints, label: Ints, labels: tuple[str, ...]
) -> Marks:
    """Spans of one kind by their first and last events."""
    unknown = np.full(len(first), np.nan)
    kinds = np.full(len(first), kind, np.uint8)
    return Marks(kinds, first - 1, last, label, unknown, unknown, unknown, labels)


def _nothing() -> Ints:
    return np.empty(0, np.int64)


def _annotations(spans: Spans) -> Marks:
    rows: dict[str, int] = {}
    label = np.array([rows.setdefault(n, len(rows)) for n in spans.name], np.int64)
    first = np.asarray(spans.first, np.int64)
    last = np.maximum(spans.end, first) - 1
    return _spans(_ANNOTATION, first, last, label, tuple(rows))


def _steps(steps: Steps, num_events: int) -> Marks:
    starts, numbers = steps.starts()
    # A step ends where another begins, or where none is known any more.
    has_step = steps.step != NOTHING
    stops = np.flatnonzero(has_step[:-1] & ~has_step[1:]) + 1
    ends = np.sort(np.concatenate([starts, stops, [num_events]]))
    last = ends[np.searchsorted(ends, starts, "right")] - 1
    distinct, label = np.unique(numbers, return_inverse=True)
    labels = tuple(f"step {number}" for number in distinct.tolist())
    return _spans(_STEP, starts.astype(np.int64), last, label, labels)


def _tags(tag: Ints, texts: Sequence[str]) -> Marks:
    """Events that follow each other under one tag of the program's own."""
    tagged = np.flatnonzero(tag != NOTHING)
    row = tag[tagged]
    first_of = np.flatnonzero(begins(row))
    ends = np.append(first_of[1:], len(tagged)) - 1
    distinct, label = np.unique(row[first_of], return_inverse=True)
    names = tuple(texts[row] for row in distinct.tolist())
    own = np.array([not is_tag(annotation) for annotation in names], np.bool_)[label]
    if not own.any():
        return _spans(_TAG, _nothing(), _nothing(), _nothing(), ())
    first, last = tagged[first_of[own]], tagged[ends[own]]
    return _spans(_TAG, first, last, label[own], names)
