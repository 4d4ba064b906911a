"""Events of one rank's recording: its spans, steps, counters and marks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.format.columns import STEP_TABLE
from memboard.collector.format.encoding.numeric import ABSENT
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.cache import Cache
from memboard.tb_plugin.formats.recording.captures.reading import (
    TRACE,
    capture_of,
    captures_of,
    traces_of,
)
from memboard.tb_plugin.formats.recording.chunks import chunks_between, read_chunks
from memboard.tb_plugin.formats.traces.columns.events import plain
from memboard.tb_plugin.merging.inputs import EVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memboard.collector.format.encoding.numeric import Values
    from memboard.collector.format.records import (
        Capture,
        CaptureEntry,
        ChunkRef,
        Schema,
    )
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.formats.traces.columns.events import EventByKey
    from memboard.tb_plugin.merging.inputs import Window
    from memboard.tb_plugin.merging.places import Places
    from memboard.tb_plugin.merging.trace_events import Shift

    Row = dict[str, Any]

SPANS: Final = "spans"
TRAIN: Final = "train"

_CHUNKS_AT_ONCE: Final = 16
_AXES: Final = ("time_ns", "step")
_MARKS: Final = {"mark": "label", "phase": "phase", "epoch": "epoch", "oom": "message"}
"""Notes that are shown as moments, and what of them is their name."""
_STATES: Final = ("skip", "warmup", "active", "active_and_save")
_STEPS_THREAD: Final = "steps"
_STEP_SPAN: Final = "step", "step"
"""Category and name of the recorder's span around a step."""
_MARKS_THREAD: Final = "marks"


class RankEvents:
    """One rank's file; each method's events come in pieces of some thousands.

    What cannot be read raises FormatError or OSError, in the middle if need be.
    """

    def __init__(
        self,
        file: RankFile,
        shift: Shift,
        places: Places,
        window: Window = EVER,
        traced_steps: Sequence[tuple[int, int]] = (),
    ) -> None:
        """`shift` of recorded times; `window`: what lies outside is left out.

        `traced_steps`: first and last of those that a trace marks, and so are not told
        a second time.
        """
        self._file = file
        self._shift = shift
        self._places = places
        self._window = window
        self._traced_steps = traced_steps
        self._pid = file.header.pid
        self.width = 1
        """Rows that one value of a counter stands for."""
        places.tell_process(self._pid, name=file.header.host, sort=0)
        for sort, thread in enumerate((_STEPS_THREAD, _MARKS_THREAD), start=-9):
            places.tell_thread(self._pid, thread, name=thread, sort=sort)

    def spans(self, entries: Sequence[CaptureEntry]) -> Iterator[list[EventByKey]]:
        """Spans, instants and counters of captures."""
        for entry in entries:
            yield self._of_capture(capture_of(self._file, entry))

    def marks(self) -> Iterator[list[EventByKey]]:
        low, high = self._window
        notes = [
            note
            for note in self._file.notes()
            if note.kind in _MARKS and low <= note.time_ns <= high
        ]
        if notes:
            yield self._events(
                [note.time_ns for note in notes],
                (
                    {
                        "ph": "i",
                        "cat": note.kind,
                        "name": f"{note.kind} {note.data.get(_MARKS[note.kind], '')}".strip(),
                        "s": "p",
                        "args": {"step": note.step},
                    }
                    for note in notes
                ),
                self._at(_MARKS_THREAD),
            )

    def steps(self) -> Iterator[list[EventByKey]]:
        """Each step as a slice, on a thread of their own."""
        for schema in self._schemas():
            names = [column.name for column in schema.columns]
            if schema.table == STEP_TABLE and "step_time_seconds" in names:
                step_name = "step" if schema.phase == TRAIN else f"{schema.phase} step"
                for rows in self._rows(schema, (*_AXES, "step_time_seconds")):
                    is_train = schema.phase == TRAIN
                    yield self._of_steps(
                        step_name, self._untraced(rows) if is_train else rows
                    )

    def counters(self, most: int) -> Iterator[list[EventByKey]]:
        """All columns of the step table and of timed tables, one track each.

        At most so many values: of more, the highest of each few rows (`width`).
        """
        schemas = self._schemas()
        total = sum(
            sum(ref.num_rows for ref in self._refs(schema)) * len(schema.columns)
            for schema in schemas
        )
        self.width = max(1, -(-total // most))
        for schema in schemas:
            columns = [c for c in schema.columns if c.name not in _AXES]
            names = tuple(column.name for column in columns)
            last: dict[str, float] = {}
            for rows in self._rows(schema, ("time_ns", *names)):
                for column in columns:
                    times, values = _highest(
                        rows["time_ns"], rows[column.name], self.width
                    )
                    yield self._of_counter(
                        column.name, column.unit, times, values, last
                    )

    def _schemas(self) -> list[Schema]:
        every = (schema for _, schema in sorted(self._file.schemas.items()))
        return [s for s in every if s.table == STEP_TABLE or s.interval_seconds]

    def _refs(self, schema: Schema) -> list[ChunkRef]:
        cache, budget = Cache(), Budget(math.inf)
        return chunks_between(
            self._file, schema.schema_id, "ns", *self._window, cache, budget
        )

    def _rows(
        self, schema: Schema, wanted: Sequence[str]
    ) -> Iterator[dict[str, Values]]:
        """The wanted columns inside the window, some chunks at a time."""
        refs = self._refs(schema)
        low, high = self._window
        for first in range(0, len(refs), _CHUNKS_AT_ONCE):
            read = read_chunks(
                self._file, schema, refs[first : first + _CHUNKS_AT_ONCE], wanted
            )
            columns = {name: np.concatenate(pieces) for name, pieces in read.items()}
            times = columns["time_ns"]
            inside = (times >= low) & (times <= high) & (times != ABSENT)
            yield {name: values[inside] for name, values in columns.items()}

    def _events(
        self,
        times_ns: Values | list[int],
        events: Iterable[EventByKey],
        place: tuple[int, int] | None = None,
        lasting_ns: Values | list[int] | None = None,
    ) -> list[EventByKey]:
        """Events with their times, how long they last, and their place."""
        begins = np.asarray(times_ns, np.int64)
        made = list(events)
        for event, us in zip(made, self._shift.us(begins).tolist(), strict=True):
            event["ts"] = us
            if place is not None:
                event["pid"], event["tid"] = place
        if lasting_ns is not None:
            lasted = np.asarray(lasting_ns, np.int64)
            lasting = self._shift.lasting_us(begins, lasted).tolist()
            for event, us in zip(made, lasting, strict=True):
                event["dur"] = us
        return made

    def _at(self, thread: Any) -> tuple[int, int]:
        return self._places.of(self._pid, thread)

    def _untraced(self, rows: dict[str, Values]) -> dict[str, Values]:
        steps = np.asarray(rows["step"], np.int64)
        stays = np.ones(len(steps), np.bool_)
        for first, last in self._traced_steps:
            stays &= (steps < first) | (steps > last)
        return {name: values[stays] for name, values in rows.items()}

    def _of_steps(self, step_name: str, rows: dict[str, Values]) -> list[EventByKey]:
        seconds = np.nan_to_num(np.asarray(rows["step_time_seconds"], np.float64))
        ends = np.asarray(rows["time_ns"], np.int64)
        lasted = np.maximum(np.rint(seconds * 1e9).astype(np.int64), 0)
        # A step begins where the one before it ended, whatever rounding says.
        lasted[1:] = np.minimum(lasted[1:], np.maximum(np.diff(ends), 0))
        return self._events(
            ends - lasted,
            (
                {"ph": "X", "cat": "step", "name": step_name, "args": {"step": step}}
                for step in rows["step"].tolist()
            ),
            self._at(_STEPS_THREAD),
            lasted,
        )

    def _of_counter(
        self,
        counter: str,
        unit: str,
        times: Values,
        values: Values,
        last: dict[str, float],
    ) -> list[EventByKey]:
        """A counter stays what it is until the next event: the same again says nothing."""
        shown, events = [], []
        for index, value in enumerate(values.tolist()):
            absent = value == ABSENT or not math.isfinite(value)
            if not absent and last.get(counter) != value:
                last[counter] = value
                shown.append(index)
                events.append({"ph": "C", "name": counter, "args": {unit: value}})
        return self._events(times[shown], events, self._at(_STEPS_THREAD))

    def _of_capture(self, capture: Capture) -> list[EventByKey]:
        tables = _Tables(capture)
        # Not on torch's track of the same thread: slices that touch one another by the
        # recorder's clock and by torch's would cut each other there.
        threads = []
        for thread, thread_name in tables.threads:
            key = f"{thread} spans"
            threads.append(self._at(key))
            self._places.tell_thread(
                self._pid, key, name=f"{thread_name} spans", sort=-1
            )

        def made(phase: str, row: Row, **more: Any) -> EventByKey:
            pid, tid = threads[row["thread"]]
            cat, span_name = tables.names[row["name"]]
            args = {**_moment(row), **tables.args(row["args"])}
            return {
                "ph": phase, "cat": cat, "name": span_name, "pid": pid, "tid": tid,
                "args": args, **more,
            }  # fmt: skip

        # Steps are slices already, of their own thread or of a trace.
        spans = [
            r for r in tables.rows("spans") if tables.names[r["name"]] != _STEP_SPAN
        ]
        instants = tables.rows("instants")
        counters = [r for r in tables.rows("counters") if math.isfinite(r["value"])]
        return [
            *self._events(
                [row["start_ns"] for row in spans],
                (made("X", row) for row in spans),
                lasting_ns=[row["duration_ns"] for row in spans],
            ),
            *self._events(
                [row["time_ns"] for row in instants],
                (made("i", row, s="t") for row in instants),
            ),
            *self._events(
                [row["time_ns"] for row in counters],
                (
                    {
                        "ph": "C",
                        "name": tables.names[row["name"]][1],
                        "args": {"value": row["value"]},
                    }
                    for row in counters
                ),
                self._at(_STEPS_THREAD),
            ),
        ]


def entries_of(
    file: RankFile, kind: str, cycle: int | None
) -> list[tuple[CaptureEntry, dict[str, Any]]]:
    """Captures of a kind with their meta: all of them, or one cycle's.

    Raises:
        FormatError: one cannot be read.
        OSError: the file cannot be read.
    """
    if kind == TRACE:
        entries = [entry for _, entry in traces_of(file)]
    else:
        entries = [entry for entry in captures_of(file) if entry.kind == kind]
    metas = [dict(capture_of(file, entry, ()).meta) for entry in entries]
    return [
        (entry, meta)
        for entry, meta in zip(entries, metas, strict=True)
        if cycle in (None, meta.get("cycle"))
    ]


class _Tables:
    """The tables of a capture of spans; rows that point nowhere are left out."""

    def __init__(self, capture: Capture) -> None:
        self._tables: Any = capture.tables
        names = self._tables.get("names", {})
        self.names = list(
            zip(names.get("category", ()), names.get("name", ()), strict=False)
        )
        threads = self._tables.get("threads", {})
        idents = np.asarray(threads.get("thread_id", ()), np.int64).tolist()
        self.threads = [
            (ident if ident >= 0 else text, text)
            for ident, text in zip(idents, threads.get("name", ()), strict=False)
        ]
        self._json = self._tables.get("args", {}).get("json", ())

    def rows(self, table: str) -> list[Row]:
        columns = self._tables.get(table, {})
        lists = [np.asarray(column).tolist() for column in columns.values()]
        rows = [
            dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)
        ]
        return [
            row
            for row in rows
            if 0 <= row["name"] < len(self.names)
            and 0 <= row.get("thread", 0) < max(1, len(self.threads))
        ]

    def args(self, index: int) -> dict[str, Any]:
        text = self._json[index] if 0 <= index < len(self._json) else "{}"
        fields = plain(text.encode(errors="replace"))
        return fields if isinstance(fields, dict) else {}


def _highest(times: Values, values: Values, width: int) -> tuple[Values, Values]:
    """Of each `width` rows the highest value, and when it was."""
    if width == 1 or len(values) == 0:
        return times, values
    finite = np.asarray(values, np.float64)
    finite = np.where((values == ABSENT) | ~np.isfinite(finite), -np.inf, finite)
    missing = -len(values) % width
    padded = np.pad(finite, (0, missing), constant_values=-np.inf).reshape(-1, width)
    starts = np.arange(0, len(values), width)
    rows = starts + np.argmax(padded, axis=1)
    return times[rows], values[rows]


def _moment(row: Row) -> dict[str, Any]:
    """What a span says of the schedule."""
    state: dict[str, Any] = {}
    if row.get("step", -1) >= 0:
        state["step"] = row["step"]
    if 0 <= row.get("state", -1) < len(_STATES):
        state["state"] = _STATES[row["state"]]
    return state
