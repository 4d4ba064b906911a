"""The file of one rank, or its segments: records in, whole batches on disk.

A batch is encoded, appended with one write, and only then counted as done. Where the
write fails nothing has changed, and the next `flush` tries again with what came since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from memboard.collector.format.capture import CAPTURE, decode_part, split_body
from memboard.collector.format.columns import STEP_TABLE
from memboard.collector.format.digest import DIGEST, encode_digest
from memboard.collector.format.encoding.framing import frame_record, frame_version
from memboard.collector.format.encoding.payload import pack
from memboard.collector.format.records import (
    CHUNK,
    NOTE,
    Segment,
    StepCounts,
    decode_chunk_ref,
    kind_of,
)
from memboard.collector.format.rollup import DigestPace
from memboard.collector.writing.queues.notes import NoteQueue
from memboard.collector.writing.segments import SegmentedFile
from memboard.collector.writing.tables import Table

if TYPE_CHECKING:
    from pathlib import Path

    from memboard.collector.format.records import (
        Capture,
        CaptureEntry,
        ChunkRef,
        Close,
        Header,
        Schema,
        TextRecord,
    )
    from memboard.collector.writing.segments import SegmentPlan
    from memboard.collector.writing.tables import Row

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
        self.notes = NoteQueue()
        self.end: Close | None = None
        """How the program ended, once the file says so."""
        self.path: Path | None = None
        """Where it lies, or lay last: the newest segment."""
        self.is_full = False
        """Whether the budget is spent: from then on only digests and notes are written."""
        self.header: Header | None = None
        self._max_bytes = max_bytes - min(_REST, max_bytes // _REST_SHARE)
        self._new_schemas: list[Schema] = []
        self._pace = DigestPace()
        self._digest_offset = 0
        self._chunks: list[ChunkRef] = []
        self._captures: list[CaptureEntry] = []
        """Those since the last digest."""
        self._captures_before = 0
        """Where the last digest that lists captures starts."""
        self._described: set[str] = set()
        """Kinds of records that the file has."""
        self._segments = segments
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

    @property
    def num_over_budget(self) -> int:
        """Rows that only the rollup has, because the budget was spent."""
        return sum(table.num_over_budget for table in tuple(self.tables.values()))

    @property
    def num_discarded(self) -> int:
        return sum(table.num_discarded for table in tuple(self.tables.values()))

    @property
    def num_written(self) -> int:
        """Bytes written to what is open; rises while a write is under way. Any thread."""
        file = self._file
        return 0 if file is None else file.num_written

    def step_counts(self, num_dropped: int) -> StepCounts:
        """Steps of all phases since the file began; `num_dropped`: before they came here."""
        steps = [t for t in self.tables.values() if t.schema.table == STEP_TABLE]
        dropped = num_dropped + sum(table.num_discarded for table in steps)
        summed_up = sum(table.num_over_budget for table in steps)
        kept = sum(table.rollup.num_on_disk + table.num_pending for table in steps)
        return StepCounts(
            taken=kept + dropped + summed_up, dropped=dropped, summed_up=summed_up
        )

    def open(self, path: Path, header: Header) -> None:
        """Create the file, headed by `header` and every schema so far.

        Where a file was open before, it is given up: its rows live on in the rollup.

        Raises:
            OSError: it cannot be created or written; what was open before is closed.
        """
        self.release()
        file = SegmentedFile(path, self._segments)
        self._time_ns, self._step = header.started.wall_ns, 0
        self._described = set()
        frames = [self._framed(header)]
        frames += [self._framed(table.schema) for table in self.tables.values()]
        try:
            file.append(frame_version(self._time_ns / 1e9) + b"".join(frames))
        except OSError:
            file.close()
            file.path.unlink(missing_ok=True)  # a headless file helps nobody
            raise
        self._file, self.path, self.header = file, file.path, header
        self._new_schemas, self._chunks, self._captures = [], [], []
        self._digest_offset = self._captures_before = 0
        self.end = None
        for table in self.tables.values():
            table.rollup.num_on_disk = 0
        self._pace = DigestPace()
        if any(table.rollup.num_rows for table in self.tables.values()):
            self._pace.flush_soon()  # the rollup of what came before is nowhere else

    def go_on(self, path: Path, header: Header) -> None:
        """Write on in a file of another name and header, which continues this one.

        Raises:
            OSError: it cannot be written; the one before still grows.
        """
        self._begin_segment(self._opened(), header, path)

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
        file = self._turn_over()
        frames = [self._framed(schema) for schema in self._new_schemas]
        frames += self._framed_notes()
        offset = file.end + sum(map(len, frames))
        written: list[tuple[Table, ChunkRef | None]] = []
        for table in [t for t in self.tables.values() if t.num_pending]:
            payload = table.encode(digest_offset=self._digest_offset)
            chunk = self._frame(CHUNK, payload)
            end = offset + len(chunk)
            if self.is_full or 0 < self._max_bytes < end:
                self.is_full = True
                written.append((table, None))
                continue
            written.append((table, decode_chunk_ref(payload, offset, end)[0]))
            frames.append(chunk)
            offset = end
        if frames:
            file.append(b"".join(frames))
        self._new_schemas = []
        self.notes.commit()
        for table, ref in written:
            if ref is None:
                if table.schema.rolled_up:
                    self._pace.roll_up(table.num_pending)
            else:
                self._chunks.append(ref)
                self._described.add(CHUNK)
            table.commit(is_on_disk=ref is not None)
        if self._pace.is_due(file.end):
            self._write_digest(file)

    def write_capture(
        self, capture: Capture, body: bytes, *, urgent: bool = False
    ) -> bool:
        """Append a capture, encoded by `encode_body`, with one write.

        False where the disk budget does not allow that. One that is `urgent` is small,
        is written whatever the budget, and has reached the disk itself afterwards.

        Raises:
            OSError: nothing was written.
        """
        file = self._turn_over()
        parts = split_body(capture, body, digest_offset=self._digest_offset)
        data = b"".join(
            self._frame(CAPTURE, part, capture.time_ns, capture.step or 0)
            for part in parts
        )
        limit = 0 if urgent else self._max_bytes * _CAPTURES_SHARE
        if 0 < limit < file.end + len(data):
            return False
        offset = file.append(data)
        self._described.add(CAPTURE)
        part, _ = decode_part(parts[0])
        self._captures.append(part.entry_at(offset, file.end))
        if urgent:
            file.sync()
        return True

    def write_end(self, end: Close) -> None:
        """Write how the program ended, and notes, before all rows that are pending.

        Raises:
            OSError: it was not written, and the notes still are pending.
        """
        file = self._turn_over()
        frames = self._framed_notes()
        file.append(b"".join(frames) + self._framed_end(end, self._digest_offset))
        self.notes.commit()
        self.end = end

    def close(self, end: Close) -> None:
        """Write what is pending, a last digest, and `end`, which completes the file.

        Raises:
            OSError: not all of it was written.
        """
        try:
            self.flush()
            self._pace.flush_soon()
            self.end, self._time_ns = end, end.time_ns
            file = self._opened()
            if not self._write_digest(file, is_complete=True):
                last = self._framed_end(end, self._digest_offset, is_complete=True)
                file.append(last)
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
        self.notes = NoteQueue()
        return sum(table.discard() for table in self.tables.values())

    def _opened(self) -> SegmentedFile:
        if self._file is None:
            raise FileNotFoundError("the rank's file is not open")
        return self._file

    def _turn_over(self) -> SegmentedFile:
        """The file, with another segment begun where one is due.

        Raises:
            OSError: it cannot be written; the one before still grows.
        """
        file = self._opened()
        if self.header is not None and file.is_due():
            self._begin_segment(file, self.header)
        return file

    def _begin_segment(
        self, file: SegmentedFile, header: Header, path: Path | None = None
    ) -> None:
        head = Segment(
            number=file.number + 1,
            base_offset=file.end,
            digest_offset=self._digest_offset,
            header=header,
            schemas=tuple(table.schema for table in self.tables.values()),
        )
        described, self._described = self._described, set()
        try:  # each segment is an event file of its own
            file.begin(frame_version(self._time_ns / 1e9) + self._framed(head), path)
        except OSError:
            self._described = described
            raise
        self.path, self.header = file.path, header
        self._new_schemas = []

    def _write_digest(self, file: SegmentedFile, *, is_complete: bool = False) -> bool:
        """Write one, unless it is too big yet for what it would cover; whether it was.

        Readers begin at the last digest, so the program's end follows each.
        """
        with np.errstate(all="ignore"):
            payload = encode_digest(
                [table.rollup for table in self.tables.values()],
                self._chunks,
                self.notes.repeated(),
                self._captures,
                previous_offset=self._digest_offset,
                captures_before=self._captures_before,
            )
        frame = self._frame(DIGEST, payload)
        if not self._pace.admits(len(frame), file.end):
            return False
        if self.end is not None:
            frame += self._framed_end(self.end, file.end, is_complete=is_complete)
        self._digest_offset = file.append(frame)
        if self._captures:
            self._captures, self._captures_before = [], self._digest_offset
        self._chunks = []
        self._pace.written(file.end)
        return True

    def _framed_notes(self) -> list[bytes]:
        return [
            self._frame(NOTE, pack(note), note.time_ns, note.step or 0)
            for note in self.notes.pending()
        ]

    def _framed_end(
        self, end: Close, digest_offset: int, *, is_complete: bool = False
    ) -> bytes:
        return self._framed(
            msgspec.structs.replace(
                end, digest_offset=digest_offset, is_complete=is_complete
            )
        )

    def _framed(self, record: TextRecord) -> bytes:
        return self._frame(kind_of(record), pack(record))

    def _frame(self, kind: str, payload: bytes, *moment: int) -> bytes:
        """A frame of this moment, or of another one (time_ns and step)."""
        time_ns, step = moment or (self._time_ns, self._step)
        return frame_record(
            kind,
            payload,
            wall_time=time_ns / 1e9,
            step=step,
            described=kind in self._described,
        )
