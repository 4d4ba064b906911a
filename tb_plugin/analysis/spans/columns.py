"""The columns of one capture of spans, checked, with names and threads made common.

Each capture of kind `spans` has names and threads of its own: they are put into one list
of texts and one of threads, and its rows point there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import Table
from memboard.tb_plugin.analysis.spans.events import (
    CHECKPOINT,
    MAX_EVENTS,
    checkpoint_event,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memboard.collector.format.records import Capture
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.spans.events import SpanEvent


MAX_TEXT: Final = 1000


class Texts:
    """Texts of all captures, each once."""

    def __init__(self) -> None:
        self.strings: list[str] = []
        self._known: dict[str, int] = {}

    def row(self, text: str) -> int:
        """Where a text stands; put there if it is new."""
        text = text[:MAX_TEXT]
        number = self._known.setdefault(text, len(self.strings))
        if number == len(self.strings):
            self.strings.append(text)
        return number

    def rows(self, texts: Iterable[Any]) -> Ints:
        """Where each of them stands."""
        return np.fromiter((self.row(str(text)) for text in texts), np.int64)


def names_of(capture: Capture, texts: Texts) -> tuple[Ints, Ints]:
    """Names and categories by row of its table, as rows of `texts`."""
    table = capture.tables["names"]
    return texts.rows(table["name"]), texts.rows(table["category"])


def threads_of(capture: Capture, numbers: dict[tuple[int, str], int]) -> Ints:
    """Numbers of its threads; those that are new are put into `numbers`."""
    table = capture.tables["threads"]
    keys = zip(np.asarray(table["thread_id"]).tolist(), table["name"], strict=True)
    return np.fromiter(
        (numbers.setdefault((int(tid), str(name)), len(numbers)) for tid, name in keys),
        np.int64,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Rows(Table):
    """Spans of all captures, or instants, which last no time."""

    thread: Ints
    start_ns: Ints
    duration_ns: Ints
    name: Ints
    """Row of `Texts`; likewise the next."""
    category: Ints
    step: Ints
    state: Ints
    args: Ints
    """Row of all captures' arguments; -1: none."""

    @property
    def end_ns(self) -> Ints:
        return self.start_ns + self.duration_ns


def rows_of(
    capture: Capture,
    table: str,
    names: tuple[Ints, Ints],
    thread: Ints,
    first_args: int,
) -> Rows:
    """The rows of its table `spans` or `instants`; `names` from `names_of`.

    Raises:
        ValueError: a duration or a name is below 0.
    """

    def column(key: str) -> Ints:
        return np.asarray(capture.tables[table][key], np.int64)

    start = column("time_ns" if table == "instants" else "start_ns")
    duration = np.zeros_like(start) if table == "instants" else column("duration_ns")
    name, args = column("name"), column("args")
    if len(name) and min(int(duration.min(initial=0)), int(name.min())) < 0:
        raise ValueError("a duration or a name below 0")
    columns = (
        thread[column("thread")],
        start,
        duration,
        names[0][name],
        names[1][name],
        column("step"),
        column("state"),
        np.where(args < 0, -1, args + first_args),
    )
    if len({len(column) for column in columns}) > 1:
        raise ValueError("columns of unequal length")
    return Rows(*columns)


def joined(parts: Sequence[Rows]) -> Rows:
    """The rows of all captures, one after the other."""
    return Rows.joined(parts or [Rows(*(np.empty(0, np.int64),) * 8)])


def checkpoint_events(spans: Rows, texts: Texts) -> Iterable[SpanEvent]:
    """The ends of checkpoints that lie in no other one; at most the first 5,000."""
    rows = np.flatnonzero(spans.category == texts.row(CHECKPOINT))
    spans, until = spans.take(rows), -1
    end = spans.end_ns
    for row in np.lexsort((-end, spans.start_ns))[:MAX_EVENTS].tolist():
        if int(end[row]) > until:
            until = int(end[row])
            name = texts.strings[int(spans.name[row])]
            took, step = int(spans.duration_ns[row]), int(spans.step[row])
            yield checkpoint_event(until, name, took, step)


def event_rows(events: Sequence[SpanEvent], texts: Texts, args: list[str]) -> Rows:
    """Instants of the first track; their data is put into `args`."""
    first = len(args)
    args += (json.dumps(dict(event.args), default=str) for event in events)
    text_rows = [(texts.row(event.name), texts.row(event.category)) for event in events]
    name, category = np.array(text_rows, np.int64).reshape(-1, 2).T
    zeros = np.zeros(len(events), np.int64)
    return Rows(
        thread=zeros,
        start_ns=np.array([event.time_ns for event in events], np.int64),
        duration_ns=zeros,
        name=name,
        category=category,
        step=np.array([event.step for event in events], np.int64),
        state=np.full(len(events), -1, np.int64),
        args=np.arange(first, len(args)),
    )


def points_of(capture: Capture, name: Ints) -> tuple[Ints, Ints, Ints]:
    """time_ns, value, name of its counters."""
    table = capture.tables["counters"]
    names, time = (
        np.asarray(table[column], np.int64) for column in ("name", "time_ns")
    )
    value = np.asarray(table["value"], np.float64)
    if not len(names) == len(value) == len(time):
        raise ValueError("columns of unequal length")
    return time, value, name[names]
