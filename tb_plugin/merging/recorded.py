"""Events of one rank's recording: its spans, steps, counters and marks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from collector.format.columns import STEP_TABLE
from collector.format.numeric import ABSENT
from tb_plugin.budget import Budget
from tb_plugin.cache import Cache
from tb_plugin.formats.recording.captures import (
    TRACE,
    capture_of,
    captures_of,
    traces_of,
)
from tb_plugin.formats.recording.columns import as_values, read_chunks
from tb_plugin.formats.recording.directory import chunks_between
from tb_plugin.merging.events import Event, plain, raw

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collector.format.numeric import Values
    from collector.format.records import Capture, CaptureEntry, Schema
    from tb_plugin.formats.recording.frames.chunk_ref import ChunkRef
    from tb_plugin.formats.recording.rank_file import RankFile
    from tb_plugin.merging.places import Places
    from tb_plugin.merging.rewriting import Shift

SPANS: Final = "spans"
TRAIN: Final = "train"

_CHUNKS_AT_ONCE: Final = 16
_MAX_EVENTS: Final = 8192
"""Of one piece."""
_DIRECTORY_BYTES: Final = 4 << 20
_AXES: Final = ("time_ns", "step")
_MARKS: Final = {"mark": "label", "phase": "phase", "epoch": "epoch", "oom": "message"}
"""Notes that are shown as moments, and what of them is their name."""
_STATES: Final = ("skip", "warmup", "active", "active_and_save")
_STEPS_THREAD: Final = "steps"
_MARKS_THREAD: Final = "marks"

Window = tuple[float, float]
"""Recorded times, both ends included."""

EVER: Final[Window] = (-math.inf, math.inf)


class Recorded:
    """One rank's file; each method's events come in pieces of some thousands.

    What cannot be read raises FormatError or OSError, in the middle if need be.
    """

    def __init__(
        self, file: RankFile, shift: Shift, places: Places, window: Window = EVER
    ) -> None:
        """`shift` of recorded times; `window`: what lies outside is left out."""
        self._file = file
        self._shift = shift
        self._places = places
        self._window = window
        self._pid = file.header.pid
        self.width = 1
        """Rows that one value of a counter stands for."""
        places.tell_process(self._pid, name=file.header.host, sort=0)
        for sort, thread in enumerate((_STEPS_THREAD, _MARKS_THREAD), start=-9):
            places.tell_thread(self._pid, thread, name=thread, sort=sort)

    def spans(self, entries: Sequence[CaptureEntry]) -> Iterator[list[Event]]:
        """Spans, instants and counters of captures."""
        for entry in entries:
            yield self._of_capture(capture_of(self._file, entry))

    def marks(self) -> Iterator[list[Event]]:
        """Marks, phases and epochs."""
        low, high = self._window
        notes = [
            note
            for note in self._file.notes()
            if note.kind in _MARKS and low <= note.time_ns <= high
        ]
        if not notes:
            return
        times = self._us(np.array([note.time_ns for note in notes], np.int64))
        pid, tid = self._at(_MARKS_THREAD)
        yield [
            Event(
                ph="i",
                cat=raw(note.kind),
                name=raw(f"{note.kind} {note.data.get(_MARKS[note.kind], '')}".strip()),
                s=raw("p"),
                ts=us,
                pid=pid,
                tid=tid,
                args=raw({"step": note.step}),
            )
            for note, us in zip(notes, times, strict=True)
        ]

    def steps(self) -> Iterator[list[Event]]:
        """Each step as a slice, on a thread of their own."""
        for schema in self._schemas():
            names = [column.name for column in schema.columns]
            if schema.table == STEP_TABLE and "step_time_seconds" in names:
                name = "step" if schema.phase == TRAIN else f"{schema.phase} step"
                for rows in self._rows(schema, (*_AXES, "step_time_seconds")):
                    yield self._of_steps(name, rows)

    def counters(self, most: int) -> Iterator[list[Event]]:
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
                        column.name, column.unit, self._us(times), values, last
                    )

    def _schemas(self) -> list[Schema]:
        every = (schema for _, schema in sorted(self._file.schemas.items()))
        return [s for s in every if s.table == STEP_TABLE or s.interval_seconds]

    def _rows(
        self, schema: Schema, wanted: Sequence[str]
    ) -> Iterator[dict[str, Values]]:
        refs = self._refs(schema)
        for at in range(0, len(refs), _CHUNKS_AT_ONCE):
            yield self._read(schema, refs[at : at + _CHUNKS_AT_ONCE], wanted)

    def _refs(self, schema: Schema) -> list[ChunkRef]:
        cache, budget = Cache(_DIRECTORY_BYTES), Budget(math.inf)
        return chunks_between(
            self._file, schema.schema_id, "ns", *self._window, cache, budget
        )

    def _read(
        self, schema: Schema, refs: Sequence[ChunkRef], wanted: Sequence[str]
    ) -> dict[str, Values]:
        columns = {
            name: np.concatenate([as_values(name, piece) for piece in pieces])
            for name, pieces in read_chunks(self._file, schema, refs, wanted).items()
        }
        low, high = self._window
        times = columns["time_ns"]
        inside = (times >= low) & (times <= high) & (times != ABSENT)
        return {name: values[inside] for name, values in columns.items()}

    def _us(self, times_ns: Values) -> list[float]:
        found: list[float] = self._shift.us(np.asarray(times_ns, np.int64)).tolist()
        return found

    def _lasting_us(
        self, times_ns: Values | list[int], durations_ns: Values | list[int]
    ) -> list[float]:
        found: list[float] = self._shift.lasting_us(
            np.asarray(times_ns, np.int64), np.asarray(durations_ns, np.int64)
        ).tolist()
        return found

    def _at(self, thread: Any) -> tuple[int, int]:
        return self._places.of(self._pid, thread)

    def _of_steps(self, name: str, rows: dict[str, Values]) -> list[Event]:
        seconds = np.nan_to_num(np.asarray(rows["step_time_seconds"], np.float64))
        ends = np.asarray(rows["time_ns"], np.int64)
        lasted = np.maximum(np.rint(seconds * 1e9).astype(np.int64), 0)
        # A step begins where the one before it ended, whatever rounding says.
        lasted[1:] = np.minimum(lasted[1:], np.maximum(np.diff(ends), 0))
        begins = ends - lasted
        pid, tid = self._at(_STEPS_THREAD)
        return [
            Event(
                ph="X",
                cat=raw("step"),
                name=raw(name),
                ts=us,
                dur=raw(lasting),
                pid=pid,
                tid=tid,
                args=raw({"step": step}),
            )
            for us, lasting, step in zip(
                self._us(begins),
                self._lasting_us(begins, lasted),
                rows["step"].tolist(),
                strict=True,
            )
        ]

    def _of_counter(
        self,
        name: str,
        unit: str,
        times: Sequence[float],
        values: Values,
        last: dict[str, float],
    ) -> list[Event]:
        """A counter stays what it is until the next event: the same again says nothing."""
        pid, tid = self._at(_STEPS_THREAD)
        text = raw(name)
        events = []
        for us, value in zip(times, values.tolist(), strict=True):
            absent = value == ABSENT or not math.isfinite(value)
            if not absent and last.get(name) != value:
                last[name] = value
                events.append(
                    Event(
                        ph="C",
                        name=text,
                        ts=us,
                        pid=pid,
                        tid=tid,
                        args=raw({unit: value}),
                    )
                )
        return events

    def _of_capture(self, capture: Capture) -> list[Event]:
        tables = _Tables(capture)
        # Not on torch's track of the same thread: slices that touch one another by the
        # microseconds between two readings of the clock would be dropped by viewers.
        keys = [f"{ident} spans" for ident, _ in tables.threads]
        threads = [self._at(key) for key in keys]
        for key, (_, name) in zip(keys, tables.threads, strict=True):
            self._places.tell_thread(self._pid, key, name=f"{name} spans", sort=-1)
        spans = tables.rows("spans")
        events = [
            Event(
                ph="X",
                cat=tables.category(row["name"]),
                name=tables.name(row["name"]),
                ts=us,
                dur=raw(lasting),
                pid=threads[row["thread"]][0],
                tid=threads[row["thread"]][1],
                args=raw({**_moment(row), **tables.args(row["args"])}),
            )
            for (us, row), lasting in zip(
                self._with_times(spans, "start_ns"),
                self._lasting_us(
                    [row["start_ns"] for row in spans],
                    [row["duration_ns"] for row in spans],
                ),
                strict=True,
            )
        ]
        events += [
            Event(
                ph="i",
                cat=tables.category(row["name"]),
                name=tables.name(row["name"]),
                s=raw("t"),
                ts=us,
                pid=threads[row["thread"]][0],
                tid=threads[row["thread"]][1],
                args=raw({**_moment(row), **tables.args(row["args"])}),
            )
            for us, row in self._with_times(tables.rows("instants"), "time_ns")
        ]
        pid, tid = self._at(_STEPS_THREAD)
        events += [
            Event(
                ph="C",
                name=tables.name(row["name"]),
                ts=us,
                pid=pid,
                tid=tid,
                args=raw({"value": row["value"]}),
            )
            for us, row in self._with_times(tables.rows("counters"), "time_ns")
            if math.isfinite(row["value"])
        ]
        return events

    def _with_times(
        self, rows: list[dict[str, Any]], axis: str
    ) -> Iterator[tuple[float, dict[str, Any]]]:
        times = self._us(np.array([row[axis] for row in rows], np.int64))
        return zip(times, rows, strict=True)


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
    found = []
    for entry in entries:
        meta = dict(capture_of(file, entry, ()).meta)
        if cycle in (None, meta.get("cycle")):
            found.append((entry, meta))
    return found


class _Tables:
    """The tables of a capture of spans; rows that point nowhere are left out."""

    def __init__(self, capture: Capture) -> None:
        self._tables: Any = capture.tables
        names = self._tables.get("names", {})
        self._names = [raw(text) for text in names.get("name", ())]
        self._categories = [raw(text) for text in names.get("category", ())]
        threads = self._tables.get("threads", {})
        idents = np.asarray(threads.get("thread_id", ()), np.int64).tolist()
        texts = threads.get("name", ())
        self.threads = [
            (ident if ident >= 0 else text, text)
            for ident, text in zip(idents, texts, strict=False)
        ]
        self._json = self._tables.get("args", {}).get("json", ())

    def rows(self, table: str) -> list[dict[str, Any]]:
        columns = self._tables.get(table, {})
        if not columns:
            return []
        lists = [
            list(column) if isinstance(column, tuple) else column.tolist()
            for column in columns.values()
        ]
        rows = [
            dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)
        ]
        return [
            row
            for row in rows
            if 0 <= row["name"] < min(len(self._names), len(self._categories))
            and 0 <= row.get("thread", 0) < max(1, len(self.threads))
        ]

    def name(self, index: int) -> Any:
        return self._names[index]

    def category(self, index: int) -> Any:
        return self._categories[index]

    def args(self, index: int) -> dict[str, Any]:
        text = self._json[index] if 0 <= index < len(self._json) else "{}"
        found = plain(text.encode(errors="replace"))
        return found if isinstance(found, dict) else {}


def _highest(times: Values, values: Values, width: int) -> tuple[Values, Values]:
    """Of each `width` rows the highest value, and when it was."""
    if width == 1 or len(values) == 0:
        return times, values
    known = np.asarray(values, np.float64)
    known = np.where((values == ABSENT) | ~np.isfinite(known), -np.inf, known)
    missing = -len(values) % width
    padded = np.pad(known, (0, missing), constant_values=-np.inf).reshape(-1, width)
    starts = np.arange(0, len(values), width)
    at = starts + np.argmax(padded, axis=1)
    return times[at], values[at]


def _moment(row: dict[str, Any]) -> dict[str, Any]:
    """What a span says of the schedule."""
    told: dict[str, Any] = {}
    if row.get("step", -1) >= 0:
        told["step"] = row["step"]
    if 0 <= row.get("state", -1) < len(_STATES):
        told["state"] = _STATES[row["state"]]
    return told
