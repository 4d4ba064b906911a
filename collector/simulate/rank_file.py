"""The bytes of one rank's file, as the recorder would have left them.

Tables are written window by window: the step rows of the window, then the timed rows up
to its end, so that all advance together. Digests come where the recorder writes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from collector.format import codec
from collector.format.capture import encode_body
from collector.format.capture_parts import CAPTURE, split_body
from collector.format.framing import frame_record, frame_version
from collector.format.pace import DigestPace
from collector.format.records import Capture, CaptureEntry, Close, Digest
from collector.format.rollup import COARSE_BUCKETS, FINE_BUCKETS, Rollup, table_digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.format.numeric import Values
    from collector.format.records import Header, Note, Schema, TableDigest

    NonChunk: TypeAlias = Header | Schema | Digest | Note | Close

_NUM_AXES: Final = 2


@dataclass(frozen=True, slots=True)
class TableRows:
    """All rows of one table of one rank, in schema order, axes first."""

    schema: Schema
    columns: Sequence[Values]


def rank_file_bytes(
    header: Header,
    notes: Sequence[Note],
    tables: Sequence[TableRows],
    captures: Sequence[Capture] = (),
    *,
    rows_per_chunk: int,
    close: bool,
) -> bytes:
    """A whole file; `tables[0]` is the step table, whose rows set the windows.

    Without `close` the file ends as that of a killed process does: after a chunk.
    """
    out = _File(header, [_Table(rows) for rows in tables])
    for table in tables:
        out.schema(table.schema)
    times = tables[0].columns[0]
    waiting: list[Note | Capture] = [*notes, *captures]
    waiting.sort(key=lambda record: record.time_ns)
    for start in range(0, len(times), rows_per_chunk):
        until = int(times[min(start + rows_per_chunk, len(times)) - 1])
        while waiting and waiting[0].time_ns <= until:
            out.happened(waiting.pop(0))
        out.chunks(until)
    for record in waiting:
        out.happened(record)
    if close:
        out.close()
    return out.content()


class _File:
    """Grows record by record, and knows the offset of the next one."""

    def __init__(self, header: Header, tables: Sequence[_Table]) -> None:
        self._tables = tables
        self._now_ns = header.started.wall_ns
        self._parts = [frame_version(self._now_ns / 1e9)]
        self._size = len(self._parts[0])
        self._notes: list[Note] = []
        self._captures: list[CaptureEntry] = []
        self._captures_before = 0
        self._digest_offset = 0
        self._digest_is_fresh = False
        self._has_chunks = False
        self._pace = DigestPace()
        self.record(header)

    def content(self) -> bytes:
        return b"".join(self._parts)

    def record(self, record: NonChunk) -> None:
        kind, payload = codec.kind_of(record), codec.encode_record(record)
        self._append(self._frame(kind, payload, 0))

    def schema(self, schema: Schema) -> None:
        self._append(self._frame(codec.SCHEMA, _encoded_schema(schema), 0))

    def happened(self, record: Note | Capture) -> None:
        """What stands in the file where it happened."""
        self._now_ns = max(self._now_ns, record.time_ns)
        if isinstance(record, Capture):
            self._capture(record)
        else:
            self._notes.append(record)
            self.record(record)

    def _capture(self, capture: Capture) -> None:
        start = self._size
        body = encode_body(capture)
        for part in split_body(capture, body, digest_offset=self._digest_offset):
            self._append(self._frame(CAPTURE, part, capture.step or 0))
        entry = CaptureEntry(
            offset=start,
            num_bytes=self._size - start,
            kind=capture.kind,
            time_ns=capture.time_ns,
            step=capture.step,
            phase=capture.phase,
            function=capture.function,
            iteration=capture.iteration,
            context=capture.context,
            label=capture.label,
        )
        self._captures.append(entry)

    def chunks(self, until_ns: int) -> None:
        """The rows of every table up to a moment, then a digest where one is due."""
        for table in self._tables:
            part = table.part(until_ns)
            if part is None:
                continue
            times, steps = part[0], part[1]
            self._now_ns = max(self._now_ns, int(times[-1]))
            payload = codec.encode_chunk(
                table.schema, part, digest_offset=self._digest_offset
            )
            table.list_chunk(self._size, times, steps)
            self._append(self._frame(codec.CHUNK, payload, int(steps[-1])))
            self._has_chunks = True
        if self._pace.is_due(self._size):
            self.digest()

    def digest(self) -> None:
        """Write one, unless it is too big yet for what it would cover."""
        digest = Digest(
            previous_offset=self._digest_offset,
            tables=tuple(table.digest() for table in self._tables),
            notes=tuple(self._notes),
            schemas=tuple(table.schema for table in self._tables),
            captures=tuple(self._captures),
            captures_before=self._captures_before,
        )
        framed = self._frame(codec.DIGEST, codec.encode_record(digest), 0)
        if not self._pace.admits(len(framed), self._size):
            return
        self._digest_offset = self._size
        if self._captures:
            self._captures, self._captures_before = [], self._size
        self._append(framed)
        for table in self._tables:
            table.start_directory()
        self._pace.written(self._size)
        self._digest_is_fresh = True

    def close(self) -> None:
        """End in order; the last digest covers everything."""
        if not self._digest_is_fresh:
            self._pace.hurry()
            self.digest()
        self.record(
            Close(
                time_ns=self._now_ns,
                how="closed",
                message="",
                digest_offset=self._digest_offset,
                num_dropped=0,
            )
        )

    def _frame(self, kind: str, payload: bytes, step: int) -> bytes:
        return frame_record(
            kind,
            payload,
            wall_time=self._now_ns / 1e9,
            step=step,
            described=kind == codec.CHUNK and self._has_chunks,
        )

    def _append(self, framed: bytes) -> None:
        self._digest_is_fresh = False
        self._parts.append(framed)
        self._size += len(framed)


@cache
def _encoded_schema(schema: Schema) -> bytes:
    """All ranks have the same few schemas."""
    return codec.encode_record(schema)


class _Table:
    """One table's rows, what of them is written, and what is rolled up."""

    def __init__(self, rows: TableRows) -> None:
        self.schema = rows.schema
        self._columns = rows.columns
        self._written = 0
        self._rolled = 0
        self._directory: list[tuple[int, int, int, int, int, int]] = []
        # Places from the axes on, not counting them.
        values = list(enumerate(rows.schema.columns))[_NUM_AXES:]
        self._headlines = [at for at, column in values if column.headline]
        self._others = [at for at, column in values if not column.headline]
        names = [column.name for column in rows.schema.columns]
        self._fine = Rollup(
            [names[at] for at in self._headlines], max_buckets=FINE_BUCKETS
        )
        self._coarse = Rollup(
            [names[at] for at in self._others],
            max_buckets=COARSE_BUCKETS,
            max_only=True,
        )

    def part(self, until_ns: int) -> list[Values] | None:
        """The next rows up to a moment, or None where there are none."""
        end = int(np.searchsorted(self._columns[0], until_ns, "right"))
        start, self._written = self._written, max(end, self._written)
        if end <= start:
            return None
        return [column[start:end] for column in self._columns]

    def list_chunk(self, offset: int, times: Values, steps: Values) -> None:
        self._directory.append(
            (
                offset,
                len(times),
                int(steps[0]),
                int(steps[-1]),
                int(times[0]),
                int(times[-1]),
            )
        )

    def digest(self) -> TableDigest:
        """Roll up what was written since the last one was made."""
        new = slice(self._rolled, self._written)
        times, steps = self._columns[0][new], self._columns[1][new]
        self._fine.add(times, steps, [self._columns[at][new] for at in self._headlines])  # type: ignore[arg-type]
        self._coarse.add(times, steps, [self._columns[at][new] for at in self._others])  # type: ignore[arg-type]
        self._rolled = self._written
        return table_digest(
            self.schema.schema_id,
            self._rolled,
            self._directory,
            self._fine,
            self._coarse,
        )

    def start_directory(self) -> None:
        """Forget the chunks listed so far: a digest has them."""
        self._directory = []
