"""Records behind a file's last digest: chunks, notes and captures, in file order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from memboard.collector.format.capture import CAPTURE, decode_part
from memboard.collector.format.digest import MAX_CHUNK_ROWS
from memboard.collector.format.errors import CorruptError
from memboard.collector.format.records import decode_chunk_ref
from memboard.collector.format.sizes import counted
from memboard.tb_plugin.formats.recording.frames.faults import SCHEMA_LOST

if TYPE_CHECKING:
    from collections.abc import Container

    from memboard.collector.format.capture import CapturePart
    from memboard.collector.format.encoding.framing import FramedRecord
    from memboard.collector.format.records import CaptureEntry, ChunkRef, Note

MAX_CAPTURES: Final = 100_000
"""Of one file, that are listed."""
_MAX_NOTES: Final = 20_000
_MAX_HELD_BYTES: Final = 1 << 22
"""Chunks kept between reading a file and decoding what is wanted of it at once."""


class Tail:
    """What was read record by record since the digest."""

    def __init__(self) -> None:
        self.chunks: dict[int, list[ChunkRef]] = {}
        self.notes: list[Note] = []
        self.captures = CaptureLister()
        self._held: dict[int, bytes] = {}
        """Payloads of chunks by offset, until `drop_payloads`."""
        self._held_bytes = 0

    def clear(self) -> None:
        """A digest covers all that was taken so far."""
        self.chunks.clear()
        self.notes.clear()
        self.captures = CaptureLister()

    def take_chunk(self, item: FramedRecord, schemas: Container[int]) -> None:
        """Take a chunk.

        Raises:
            FormatError: it is none, or its schema is lost.
        """
        ref, _ = decode_chunk_ref(item.payload, item.offset, item.end)
        if ref.num_rows > MAX_CHUNK_ROWS:
            raise CorruptError(f"a chunk claims {counted(ref.num_rows, 'row')}")
        if ref.schema_id not in schemas:
            raise CorruptError(SCHEMA_LOST)
        self.chunks.setdefault(ref.schema_id, []).append(ref)
        if self._held_bytes < _MAX_HELD_BYTES:
            self._held[item.offset] = item.payload
            self._held_bytes += len(item.payload)

    def take_note(self, note: Note) -> None:
        if len(self.notes) < _MAX_NOTES:
            self.notes.append(note)

    def newest_ns(self) -> list[int]:
        """Times of the newest of each sort; empty where there is nothing."""
        times = [refs[-1].last_ns for refs in self.chunks.values() if refs]
        times += [note.time_ns for note in self.notes[-1:]]
        return times + [entry.time_ns for entry in self.captures.found[-1:]]

    def held_chunk(self, offset: int) -> bytes | None:
        """The payload of a chunk that was just read."""
        return self._held.get(offset)

    def drop_payloads(self) -> None:
        """Give back the bytes of the chunks just read."""
        self._held.clear()
        self._held_bytes = 0


class LostCapture(NamedTuple):
    """A capture that will never be whole."""

    offset: int
    end: int
    what: str


class CaptureLister:
    """Finds whole captures among the records of a file, fed in the order they lie there.

    A capture is listed once its last part was fed; one that lacks a part never is.
    """

    def __init__(self) -> None:
        self.found: list[CaptureEntry] = []
        self._last: CapturePart | None = None
        """The newest part of the capture whose parts are coming in."""
        self._offset = self._end = 0
        """Where that capture begins, and where its newest part ends."""
        self._broken: CaptureEntry | None = None

    @property
    def unfinished(self) -> CaptureEntry | None:
        """The capture that lacks parts which may still be written."""
        if self._last is None:
            return None
        return self._last.entry_at(self._offset, self._end)

    def feed(self, item: FramedRecord) -> LostCapture | None:
        """Take the next record, whatever its kind; what is lost for want of it.

        Raises:
            FormatError: it is a part of a capture that does not decode.
        """
        last, self._last = self._last, None
        lost = None
        if last is not None:
            reason = f"{named(last.entry)} is incomplete"
            lost = LostCapture(self._offset, self._end, reason)
        if item.kind != CAPTURE:
            return lost
        part, _ = decode_part(item.payload)
        if last is not None and part.follows(last) and item.offset == self._end:
            lost = None
        elif part.part == 0:
            self._offset = item.offset
        else:
            if lost is None and part.entry != self._broken:  # one is worth a word
                reason = f"the start of {named(part.entry)} is lost"
                lost = LostCapture(item.offset, item.end, reason)
            self._broken = part.entry
            return lost
        self._end = item.end
        if part.part + 1 < part.num_parts:
            self._last = part
        elif len(self.found) < MAX_CAPTURES:
            self.found.append(part.entry_at(self._offset, self._end))
        return lost


def named(entry: CaptureEntry) -> str:
    """A capture in words, e.g. `the capture "modules" of step, call 2`."""
    capture_text = f'the capture "{entry.kind[:40]}"'
    if entry.function:
        capture_text += f" of {entry.function[:80]}, call {entry.iteration}"
    if entry.label:
        capture_text += f" ({entry.label[:80]})"
    return capture_text
