"""The columns of one capture of spans, checked, with names and threads made common.

Each capture of kind `spans` has names and threads of its own: they are put into one list
of texts and one of threads, and its rows point there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tb_plugin.analysis.spans.events import CHECKPOINT, MAX_EVENTS, checkpoint_event

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from collector.format.records import Capture
    from tb_plugin.analysis.spans.events import SpanEvent

    Ints: TypeAlias = npt.NDArray[Any]

MAX_TEXT: Final = 1000


class Texts:
    """Texts of all captures, each once."""

    def __init__(self) -> None:
        self.strings: list[str] = []
        self._known: dict[str, int] = {}

    def row(self, text: str) -> int:
        """Where a text stands; put there if it is new."""
        text = text[:MAX_TEXT]
        known = self._known.setdefault(text, len(self.strings))
        if known == len(self.strings):
            self.strings.append(text)
        return known

    def rows(self, texts: Iterable[Any]) -> Ints:
        """Where each of them stands."""
        return np.fromiter((self.row(str(text)) for text in texts), np.int64)


def names_of(capture: Capture, texts: Texts) -> tuple[Ints, Ints]:
    """Names and categories by row of its table, as rows of `texts`."""
    table = capture.tables["names"]
    return texts.rows(table["name"]), texts.rows(table["category"])


def threads_of(capture: Capture, known: dict[tuple[int, str], int]) -> Ints:
    """Numbers of its threads; those that are new are put into `known`."""
    table = capture.tables["threads"]
    keys = zip(np.asarray(table["thread_id"]).tolist(), table["name"], strict=True)
    return np.fromiter(
        (known.setdefault((int(tid), str(name)), len(known)) for tid, name in keys),
        np.int64,
    )


def _column(capture: Capture, table: str, name: str) -> Ints:
    return np.asarray(capture.tables[table][name], np.int64)


def spans_of(
    capture: Capture, name: Ints, category: Ints, thread: Ints, first_args: int
) -> Ints:
    """thread, start_ns, duration_ns, name, category, step, state, args."""
    names = _column(capture, "spans", "name")
    duration = _column(capture, "spans", "duration_ns")
    if len(names) and (int(duration.min()) < 0 or int(names.min()) < 0):
        raise ValueError("a duration or a name below 0")
    return np.stack(
        (
            thread[_column(capture, "spans", "thread")],
            _column(capture, "spans", "start_ns"),
            duration,
            name[names],
            category[names],
            _column(capture, "spans", "step"),
            _column(capture, "spans", "state"),
            _shifted(_column(capture, "spans", "args"), first_args),
        )
    )


def instants_of(
    capture: Capture, name: Ints, category: Ints, thread: Ints, first_args: int
) -> Ints:
    """thread, time_ns, name, category, step, state, args."""
    names = _column(capture, "instants", "name")
    if len(names) and int(names.min()) < 0:
        raise ValueError("a name below 0")
    return np.stack(
        (
            thread[_column(capture, "instants", "thread")],
            _column(capture, "instants", "time_ns"),
            name[names],
            category[names],
            _column(capture, "instants", "step"),
            _column(capture, "instants", "state"),
            _shifted(_column(capture, "instants", "args"), first_args),
        )
    )


def checkpoint_events(span: Ints, texts: Texts) -> Iterable[SpanEvent]:
    """The ends of checkpoints that lie in no other one; at most the first 5,000."""
    category = texts.row(CHECKPOINT)
    rows = np.flatnonzero(span[4] == category)
    end, until = span[1] + span[2], -1
    for row in rows[np.lexsort((-end[rows], span[1][rows]))][:MAX_EVENTS].tolist():
        if int(end[row]) > until:
            until = int(end[row])
            name = texts.strings[int(span[3][row])]
            yield checkpoint_event(until, name, int(span[2][row]), int(span[5][row]))


def event_rows(events: Sequence[SpanEvent], texts: Texts, args: list[str]) -> Ints:
    """Instants of track 0, like those of `instants_of`; their data is put into `args`."""
    first = len(args)
    args += (json.dumps(dict(event.args), default=str) for event in events)
    rows = [
        (0, one.time_ns, texts.row(one.name), texts.row(one.category), one.step, -1)
        for one in events
    ]
    columns = np.array(rows, np.int64).reshape(-1, 6).T
    return np.concatenate((columns, [np.arange(first, len(args))]))


def points_of(capture: Capture, name: Ints) -> tuple[Ints, Ints, Ints]:
    """time_ns, value, name of its counters."""
    names = _column(capture, "counters", "name")
    value = np.asarray(capture.tables["counters"]["value"], np.float64)
    time = _column(capture, "counters", "time_ns")
    if not len(names) == len(value) == len(time):
        raise ValueError("columns of unequal length")
    return time, value, name[names]


def _shifted(args: Ints, by: int) -> Ints:
    return np.where(args < 0, -1, args + by)


def stacked(parts: Sequence[Ints], width: int) -> Ints:
    """Columns of all captures, one after the other."""
    return np.concatenate(parts, axis=1) if parts else np.empty((width, 0), np.int64)
