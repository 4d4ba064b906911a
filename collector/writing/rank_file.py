"""The file of one rank, or its segments: records in, whole batches on disk.

A batch is encoded, appended with one write, and only then counted as done. Where the
write fails nothing has changed, and the next `flush` tries again with what came since.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from collector.format import codec
from collector.format.capture_parts import (
    CAPTURE,
    decode_entry,
    decode_part,
    split_body,
)
from collector.format.framing import frame_record, frame_version
from collector.format.pace import DigestPace
from collector.format.records import Close, Digest, Note, Segment
from collector.writing.notebook import Notebook
from collector.writing.segments import SegmentedFile
from collector.writing.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from collector.format.records import Capture, CaptureEntry, Header, How, Schema
    from collector.writing.segments import SegmentPlan
    from collector.writing.tables import Row

_REST: Final = 1 << 20
_REST_SHARE: Final = 8
"""Kept free below the disk budget for the digests and notes that come after it: a MiB,
at most an eighth."""

_CAPTURES_SHARE: Final = 0.75
"""Of the disk budget: captures leave the rest to rows, however large they are."""


class RankFile:
    """Tables and notes of one recorder, and the file they go to."""

    def __init__(self, *, max_bytes: int, segments: SegmentPlan | None = None) -> None:
        """`max_bytes`: the disk budget of all segments; 0: none. None: one file."""
        self.tables: dict[int, Table] = {}
        self.notes = Notebook()
        self.num_over_budget = 0
        """Rows that only the rollup kept because the budget was spent."""
        self.path: Path | None = None
        """Where it lies, or lay last: the newest segment."""
        self.is_full = False
        """Whether the budget is spent: from then on only digests and notes are written."""
        self._max_bytes = max_bytes - min(_REST, max_bytes // _REST_SHARE)
        self._new_schemas: list[Schema] = []
        self._pace = DigestPace()
        self._digest_offset = 0
        self._captures: list[CaptureEntry] = []
        """Those since the last digest."""
        self._captures_before = 0
        """Where the last digest that lists some starts."""
        self._described: set[str] = set()
        """Kinds of records that the file has, of those that come often."""
        self._segments = segments
        self.header: Header | None = None
        """Of the file: who writes it."""
        self._file: SegmentedFile | None = None
        self._step = 0
        self._time_ns = 0

    @property
    def is_open(self) -> bool:
        """Whether there is a file to write to."""
        return self._file is not None

    @property
    def num_pending(self) -> int:
        """Rows and notes that are not on disk yet."""
        return sum(t.num_pending for t in self.tables.values()) + len(self.notes)

    def open(self, path: Path, header: Header) -> None:
        """Create the file, headed by `header` and every schema so far.

        Where a file was open before, it is given up: its rows live on in the rollup.

        Raises:
            OSError: it cannot be created or written; what was open before is closed.
        """
        self.release()
        file = SegmentedFile(path, self._segments)
        wall_time = header.started.wall_ns / 1e9
        frames = [frame_version(wall_time)]
        frames.append(_frame(header, wall_time, 0))
        frames += [_frame(table.schema, wall_time, 0) for table in self.tables.values()]
        try:
            file.append(b"".join(frames))
        except OSError:
            file.close()
            file.path.unlink(missing_ok=True)  # a headless file helps nobody
            raise
        self._file = file
        self.header = header
        self.path = file.path
        self._new_schemas = []
        self._digest_offset = self._captures_before = 0
        self._captures = []
        self._described = set()
        for table in self.tables.values():
            table.start_directory()
        self._pace = DigestPace()
        if any(table.num_rows for table in self.tables.values()):
            self._pace.hurry()  # the rollup of what came before is nowhere else
        self._time_ns = header.started.wall_ns

    def go_on(self, path: Path, header: Header) -> None:
        """Write on in a file of another name and header, which continues this one.

        Raises:
            OSError: it cannot be written; the one before still grows.
        """
        if self._file is not None:
            self._begin(self._file, header, path)

    def add_schema(self, schema: Schema) -> None:
        """Open a table; its schema precedes its first chunk."""
        self.tables[schema.schema_id] = Table(schema)
        self._new_schemas.append(schema)

    def add_row(self, schema_id: int, row: Row) -> None:
        """Take a row of a table opened before."""
        self.tables[schema_id].add(row)
        self._time_ns = int(row[0] or 0)
        self._step = int(row[1] or 0)

    def flush(self) -> None:
        """Write all that is pending, and a digest when one is due.

        Raises:
            OSError: what was pending still is, or only the digest could not be written.
        """
        if self._file is None:
            raise FileNotFoundError("the rank's file is not open")
        self._turn_over()
        wall_time, step = self._time_ns / 1e9, self._step
        frames = [_frame(schema, wall_time, step) for schema in self._new_schemas]
        frames += [
            _frame(note, note.time_ns / 1e9, note.step or 0)
            for note in self.notes.pending()
        ]
        tables = [table for table in self.tables.values() if table.num_pending]
        at = self._file.end + sum(map(len, frames))
        offsets: list[int | None] = []
        for table in tables:
            payload = table.encode(digest_offset=self._digest_offset)
            chunk = frame_record(
                codec.CHUNK,
                payload,
                wall_time=wall_time,
                step=step,
                described=codec.CHUNK in self._described,
            )
            if self.is_full or 0 < self._max_bytes < at + len(chunk):
                self.is_full = True
                offsets.append(None)
            else:
                offsets.append(at)
                frames.append(chunk)
                at += len(chunk)
        if frames:
            self._file.append(b"".join(frames))
        self._new_schemas = []
        self.notes.commit()
        for table, offset in zip(tables, offsets, strict=True):
            num_rows = table.num_pending
            if offset is None:
                self.num_over_budget += num_rows
                self._pace.roll_up(num_rows if table.schema.rolled_up else 0)
            else:
                self._described.add(codec.CHUNK)
            with np.errstate(all="ignore"):  # infinities are data
                table.commit(offset)
        if self._pace.is_due(self._file.end):
            self._write_digest()

    def write_capture(
        self, capture: Capture, body: bytes, *, urgent: bool = False
    ) -> bool:
        """Append a capture, encoded by `encode_body`, with one write.

        False where the disk budget does not allow that. One that is `urgent` is small,
        is written whatever the budget, and has reached the disk itself afterwards.

        Raises:
            OSError: nothing was written.
        """
        self._turn_over()
        parts = split_body(capture, body, digest_offset=self._digest_offset)
        if not urgent:
            return self._append_parts(parts, limit=self._max_bytes * _CAPTURES_SHARE)
        self._append_parts(parts)
        if self._file is not None:
            self._file.sync()
        return True

    def close(
        self,
        how: How,
        message: str,
        step: int | None = None,
        phase: str = "",
        *,
        num_dropped: int,
        time_ns: int,
    ) -> None:
        """Write a last digest and the close record after what is pending.

        Raises:
            OSError: not all of it was written.
        """
        try:
            self.flush()
            self._pace.hurry()
            self._write_digest()
            if self._file is not None:
                end = Close(
                    time_ns=time_ns,
                    how=how,
                    message=message,
                    step=step,
                    phase=phase,
                    digest_offset=self._digest_offset,
                    num_dropped=num_dropped,
                )
                self._file.append(_frame(end, time_ns / 1e9, self._step))
        finally:
            self.finish()

    def finish(self) -> None:
        """Write nothing more; what is there is as whole as it will ever be."""
        if self._file is not None:
            self._file.finish()
        self.release()

    def release(self) -> None:
        """Give the descriptor back and write nothing more."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def discard_pending(self) -> int:
        """Drop the rows and notes that wait; returns the number of rows."""
        self.notes = Notebook()
        return sum(table.discard() for table in self.tables.values())

    def _turn_over(self) -> None:
        """Begin another segment where one is due.

        Raises:
            OSError: it cannot be written; the one before still grows.
        """
        if self._file is not None and self.header is not None and self._file.is_due():
            self._begin(self._file, self.header)

    def _begin(
        self, file: SegmentedFile, header: Header, path: Path | None = None
    ) -> None:
        head = Segment(
            number=file.number + 1,
            base_offset=file.end,
            digest_offset=self._digest_offset,
            header=header,
            schemas=tuple(table.schema for table in self.tables.values()),
        )
        wall_time = self._time_ns / 1e9
        frame = _frame(head, wall_time, self._step)
        file.begin(frame_version(wall_time) + frame, path)
        self.path, self.header = file.path, header
        self._new_schemas = []
        self._described = set()  # each segment is an event file of its own

    def _append_parts(self, parts: Sequence[bytes], *, limit: float = 0) -> bool:
        """Append all parts of a capture, if the file then stays below a limit."""
        if self._file is None:
            raise FileNotFoundError("the rank's file is not open")
        first = decode_part(parts[0])
        entry = decode_entry(first, offset=0, num_bytes=0)
        frames = [
            frame_record(
                CAPTURE,
                part,
                wall_time=entry.time_ns / 1e9,
                step=entry.step or 0,
                described=index > 0 or CAPTURE in self._described,
            )
            for index, part in enumerate(parts)
        ]
        num_bytes = sum(map(len, frames))
        if 0 < limit < self._file.end + num_bytes:
            return False
        offset = self._file.append(b"".join(frames))
        self._described.add(CAPTURE)
        self._captures.append(replace(entry, offset=offset, num_bytes=num_bytes))
        return True

    def _write_digest(self) -> None:
        """Write one, unless it is too big yet for what it would cover."""
        if self._file is None:
            return
        digest = Digest(
            previous_offset=self._digest_offset,
            tables=tuple(table.digest() for table in self.tables.values()),
            notes=self.notes.kept(),
            schemas=tuple(table.schema for table in self.tables.values()),
            captures=tuple(self._captures),
            captures_before=self._captures_before,
        )
        with np.errstate(all="ignore"):
            frame = _frame(digest, self._time_ns / 1e9, self._step)
        if not self._pace.admits(len(frame), self._file.end):
            return
        self._digest_offset = self._file.append(frame)
        if self._captures:
            self._captures, self._captures_before = [], self._digest_offset
        for table in self.tables.values():
            table.start_directory()
        self._pace.written(self._file.end)


def _frame(
    record: Header | Segment | Schema | Digest | Note | Close,
    wall_time: float,
    step: int,
) -> bytes:
    return frame_record(
        codec.kind_of(record),
        codec.encode_record(record),
        wall_time=wall_time,
        step=step,
    )
