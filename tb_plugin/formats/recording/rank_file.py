"""One rank's file: opened from its end, followed while it grows, salvaged when broken.

A finished file is opened with three small reads: the header at its start, the closing
record at its end, and the last digest, which that one points to. What follows the
digest is read frame by frame, now and whenever the file has grown. Where no digest is
found, or it is damaged, the file is read from its start: slower, but nothing that is
intact is lost. Whatever was wrong is kept as `Fault`s, in words.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from memboard.collector.format.digest import DIGEST, decode_digest
from memboard.collector.format.encoding.framing import Damage, FramedRecord, read_frames
from memboard.collector.format.errors import CorruptError, FormatError, VersionError
from memboard.collector.format.records import (
    CHUNK,
    HEADER,
    SEGMENT,
    Close,
    Header,
    Note,
    Schema,
    Segment,
    decode_record,
)
from memboard.tb_plugin.formats.recording.frames.faults import Faults
from memboard.tb_plugin.formats.recording.frames.headers import (
    SegmentHeads,
    first_record,
    header_by_name,
    with_device,
    with_schema,
)
from memboard.tb_plugin.formats.recording.frames.parts import (
    ContentSample,
    Layout,
    Part,
    PartsReader,
    continues,
)
from memboard.tb_plugin.formats.recording.frames.scan import (
    end_of_frame,
    latest_digest_offset,
    scan,
)
from memboard.tb_plugin.formats.recording.tail import Tail
from memboard.tb_plugin.storage import StorageError

if TYPE_CHECKING:
    from memboard.collector.format.digest import Digest
    from memboard.collector.format.records import CaptureEntry
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.formats.recording.frames.faults import Fault
    from memboard.tb_plugin.formats.recording.tail import CaptureLister

_SKEW_NS: Final = 60 * 1_000_000_000
"""Clocks of a host and of its file server differ by less than this."""


class RankFile:
    """What is known of one rank's records of one attempt."""

    def __init__(self, rank: int, attempt: str, shown_path: str) -> None:
        self.rank = rank
        self.attempt = attempt
        self.shown_path = shown_path
        """With where it lies, if that is outside of the logdir."""
        self.parts: tuple[Part, ...] = ()
        self.layout = Layout()
        """Where the parts lie in the file as it was written."""
        self._segments = SegmentHeads()
        self.generation = 0
        """Raised when what was read before no longer holds."""
        self._forget()

    def _forget(self) -> None:
        self.generation += 1
        self.written_header: Header | None = None
        self.close: Close | None = None
        self.digest: Digest | None = None
        self._digest_payload: bytes | None = None
        """Until `drop_payloads`, for columns wanted right after opening."""
        self._listed_ns: int | None = None
        self.schemas: dict[int, Schema] = {}
        self.behind = Tail()
        self.listed_captures: dict[int, tuple[list[CaptureEntry], int]] = {}
        self.capture_scans: dict[int, tuple[CaptureLister, int]] = {}
        """By a digest's offset: what it lists, and the one before; else how far was read."""
        self._faults = Faults()
        self.is_foreign = False
        self.unfinished = False
        """True while the budget did not suffice to read all there is."""
        self.checked_to = 0
        """Every frame up to here was looked at; see `check`."""
        self._scanned_from = 0
        self.read_to = 0
        """All that is whole was read up to here."""
        self._expects_digest = False
        self._opened = False
        self._compared = ContentSample()
        self._header: tuple[tuple[int, int, int], Header] | None = None
        """What it was made of, and the header with the device."""

    @property
    def identity(self) -> tuple[int, str, int, int]:
        """Key for what is decoded from it."""
        inode = self.parts[0].inode if self.parts else 0
        return (self.rank, self.attempt, inode, self.generation)

    @property
    def num_faults_said(self) -> int:
        """Rises with whatever is said of them."""
        return self._faults.num_said

    @property
    def faults(self) -> list[Fault]:
        """What is wrong with it, as far as it was looked at."""
        return self._faults.found

    @property
    def lost_bytes(self) -> list[tuple[int, int]]:
        """What is damaged or not here, as far as it was looked at."""
        return [*self._faults.damaged, *self.layout.gaps]

    @property
    def lacks_schemas(self) -> bool:
        """Whether there are chunks whose schema is lost."""
        return self._faults.lacks_schemas

    @property
    def header(self) -> Header:
        """The written one, or what the file's name says; with a device that came later."""
        written = self._segments.newest or self.written_header
        seen = (id(written), id(self.digest), len(self.behind.notes))
        if self._header is None or self._header[0] != seen:
            header = written or header_by_name(self.rank, self.attempt)
            self._header = seen, with_device(header, self.notes)
        return self._header[1]

    @property
    def num_bytes(self) -> int:
        return sum(part.size_bytes for part in self.parts)

    @property
    def is_torn(self) -> bool:
        """Whether the end holds bytes that are no whole record (yet)."""
        is_read = self._opened and not (self.is_foreign or self.unfinished)
        return is_read and self.read_to < self.layout.size_bytes

    @property
    def is_complete(self) -> bool:
        """Whether all that waited at the program's end was written."""
        return self.close is not None and self.close.is_complete

    @property
    def has_records(self) -> bool:
        """Whether anything of ours was found."""
        behind = self.behind.notes or self.behind.captures.found
        return bool(self.written_header or self.schemas or behind)

    def notes(self) -> list[Note]:
        """All notes, in the order they were written."""
        earlier: list[Note] = []
        if self.digest is not None:
            try:
                earlier = self.digest.notes()
            except CorruptError as error:
                self.add_damage(self.digest.offset, self.digest.end, str(error))
        return [*earlier, *self.behind.notes]

    @property
    def newest_ns(self) -> int:
        """When the newest record was written, as far as that is known."""
        modified = max((part.mtime_ns for part in self.parts), default=0)
        times = self.behind.newest_ns()
        if self.close is not None:
            times.append(self.close.time_ns)
        if not times and self.digest is not None:
            times.append(self._newest_listed_ns())
        newest = max(times, default=0)
        # A copy is younger than its rows; rows far younger than the file are nonsense.
        return min(newest, modified + _SKEW_NS) if newest > 0 else modified

    def update(self, parts: tuple[Part, ...], budget: Budget) -> bool:
        """Read what is new; False where nothing was."""
        if parts == self.parts and not self.unfinished:
            return False
        if not continues(self.parts, parts):
            self._forget()
            self._segments = SegmentHeads()
        self.parts = parts
        if self.is_foreign:
            return True
        try:
            self.layout = self._segments.lay_out(parts)
            with PartsReader(self.layout) as reader:
                if self._compared.differs(reader):
                    self._forget()
                if not self._opened and not self._open(reader):
                    return True
                if self.layout.gaps:
                    self._faults.add_missing(self.layout, self.header.config)
                self._follow(reader, budget)
                self._compared.keep_last(reader, self.read_to)
        except StorageError:
            # The store is away, which is said of the logdir: what was read stays.
            if not self._opened:
                self._forget()
            self.unfinished = True
        except OSError as error:
            self._forget()
            self._faults.add_unreadable(error)
            self.unfinished = True
        return True

    def drop_payloads(self) -> None:
        """Give back the bytes of the digest and of the chunks just read."""
        self._digest_payload = None
        self.behind.drop_payloads()

    def read_digest(self) -> bytes:
        """The payload of the latest digest record.

        Raises:
            CorruptError: it is no longer there.
            OSError: the file cannot be read.
        """
        if self._digest_payload is not None:
            return self._digest_payload
        if self.digest is None:
            raise CorruptError(f"{self.shown_path} holds no digest")
        with PartsReader(self.layout) as reader:
            return self.read_record(reader, DIGEST, self.digest.offset, self.digest.end)

    def digest_at(self, reader: PartsReader, offset: int) -> tuple[Digest, bytes]:
        """A digest and its payload; the latest or an earlier one.

        Raises:
            CorruptError: there is none.
            OSError: the file cannot be read.
        """
        if self.digest is not None and self.digest.offset == offset:
            return self.digest, self.read_digest()
        end = end_of_frame(reader, offset)
        payload = self.read_record(reader, DIGEST, offset, end)
        return decode_digest(payload, offset, end), payload

    def read_record(
        self, reader: PartsReader, kind: str, offset: int, end: int
    ) -> bytes:
        """The payload of the record at `offset`, which ends at or before `end`.

        Raises:
            CorruptError: there is no such record; it is also kept as a fault.
        """
        for item in read_frames(reader.read(offset, end - offset), offset):
            if isinstance(item, FramedRecord) and item.kind == kind:
                return item.payload
            reason = (
                item.what if isinstance(item, Damage) else "another record is there"
            )
            self.add_damage(offset, item.end, reason)
            break
        raise CorruptError(f"{self.shown_path}: no intact {kind} record at {offset}")

    def check(self, budget: Budget) -> bool:
        """Look at what opening skipped, so that damage inside is named; True when done.

        What the digest covers is not needed for any picture of the whole run, so
        opening never reads it.
        """
        if self.checked_to >= self._scanned_from or not self._opened:
            return True
        try:
            with PartsReader(self.layout) as reader:
                start, stop = self.checked_to, self._scanned_from
                for item in scan(reader, start, stop, budget, open_end=False):
                    self.checked_to = item.end
                    if isinstance(item, Damage):
                        self.add_damage(item.offset, item.end, item.what)
        except OSError:
            self.checked_to = self._scanned_from
        return self.checked_to >= self._scanned_from

    def _newest_listed_ns(self) -> int:
        """The time of the newest row the digest lists."""
        if self._listed_ns is None:
            self._listed_ns = 0
            with contextlib.suppress(FormatError, OSError):
                if self.digest is not None:
                    self._listed_ns = self.digest.newest_ns(self.read_digest())
        return self._listed_ns

    def _open(self, reader: PartsReader) -> bool:
        """Read the header and find where to begin; False where there is nothing."""
        if reader.size_bytes == 0:
            return False
        start, head, first = first_record(reader)
        self._compared.keep_first(start, head)
        try:
            if first is not None and first.kind in (HEADER, SEGMENT):
                self._take(first)
        except VersionError as error:
            self.is_foreign = True
            self._faults.add_foreign(str(error), "header")
            return False
        self._opened = True
        self._start_at(latest_digest_offset(reader))
        return True

    def _start_at(self, offset: int) -> None:
        self._scanned_from = self.read_to = offset
        self._expects_digest = offset > 0

    def _follow(self, reader: PartsReader, budget: Budget) -> None:
        from_digest = self._expects_digest
        budget_was = budget.exhausted
        budget.exhausted = False
        items = scan(reader, self.read_to, reader.size_bytes, budget, open_end=True)
        for item in items:
            if from_digest and not (
                isinstance(item, FramedRecord) and item.kind == DIGEST
            ):
                break
            if isinstance(item, Damage):
                self.add_damage(item.offset, item.end, item.what)
            else:
                self._take(item)
            if from_digest and self.digest is None:
                break
            from_digest = self._expects_digest = False
            self.read_to = item.end
        self.unfinished = budget.exhausted
        budget.exhausted |= budget_was
        if from_digest and not self.unfinished:
            # The record that should be the digest is none: read from the start.
            self._start_at(0)
            self._follow(reader, budget)

    def _take(self, item: FramedRecord) -> None:
        try:
            if lost := self.behind.captures.feed(item):
                self.add_damage(*lost)
            if item.kind == CHUNK:
                self.behind.take_chunk(item, self.schemas)
            elif item.kind == DIGEST:
                self._take_digest(item)
            else:
                self._take_record(item)
        except VersionError as error:
            if item.kind in (HEADER, SEGMENT):
                raise
            where = f"{item.kind} record at byte {item.offset}"
            self._faults.add_foreign(str(error), where)
        except FormatError as error:
            self.add_damage(item.offset, item.end, str(error))

    def _take_digest(self, item: FramedRecord) -> None:
        self.digest = decode_digest(item.payload, item.offset, item.end)
        self._digest_payload = item.payload
        self._listed_ns = None
        self.schemas = {**self.schemas, **self.digest.schemas}
        if self.schemas == self.digest.schemas:
            self.schemas = self.digest.schemas  # one dictionary for all ranks
        self.behind.clear()

    def _take_record(self, item: FramedRecord) -> None:
        record = decode_record(item.kind, item.payload)
        if isinstance(record, Header):
            self._take_header(record)
        elif isinstance(record, Segment):  # says what is lost with those before it
            self._take_header(record.header)
            for schema in record.schemas:
                if schema.schema_id not in self.schemas:
                    self.schemas = with_schema(self.schemas, schema)
        elif isinstance(record, Schema):
            self.schemas = with_schema(self.schemas, record)
        elif isinstance(record, Note):
            self.behind.take_note(record)
        elif isinstance(record, Close):
            self.close = record

    def _take_header(self, header: Header) -> None:
        if self.written_header is not None:
            return
        self.written_header = header
        rank = (self._segments.newest or header).rank
        if rank != self.rank:
            self._faults.add_renamed(self.rank, rank)

    def add_damage(
        self, offset: int, end: int, reason: str, *, is_named: bool = False
    ) -> None:
        """Keep as a fault that these bytes are lost, unless a missing segment says it."""
        if self.layout.gap_at(offset) is not None:
            return
        self._faults.add_damage(offset, end, reason, is_named=is_named)
