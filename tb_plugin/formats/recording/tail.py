"""What a file holds behind its last digest: read record by record, then listed here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector.format.codec import decode_chunk_span
from collector.format.errors import CorruptError
from tb_plugin.formats.recording.frames.capture_lister import CaptureLister
from tb_plugin.formats.recording.frames.chunk_ref import (
    MAX_CHUNK_ROWS,
    ChunkRef,
    chunk_ref,
)

if TYPE_CHECKING:
    from collections.abc import Container

    from collector.format.framing import Framed
    from collector.format.records import Note

_MAX_NOTES: Final = 20_000
_MAX_HELD_BYTES: Final = 1 << 22
"""Chunks kept between reading a file and decoding what is wanted of it at once."""


class Tail:
    """Chunks, notes and captures, in file order."""

    def __init__(self) -> None:
        self.chunks: dict[int, list[ChunkRef]] = {}
        """By schema."""
        self.notes: list[Note] = []
        self.captures = CaptureLister()
        self._held: dict[int, bytes] = {}
        """Payloads of chunks by offset, until `drop_payloads`."""
        self._held_bytes = 0

    def clear(self) -> None:
        """A digest covers all that was taken so far."""
        self.chunks.clear()
        self.notes.clear()
        self.captures.clear()

    def take_chunk(self, item: Framed, schemas: Container[int]) -> None:
        """Take a chunk.

        Raises:
            FormatError: it is none, or its schema is lost.
        """
        span = decode_chunk_span(item.payload)
        if span.num_rows > MAX_CHUNK_ROWS:
            raise CorruptError(f"a chunk claims {span.num_rows} rows")
        if span.schema_id not in schemas:
            raise CorruptError("the chunk's schema is lost")
        self.chunks.setdefault(span.schema_id, []).append(chunk_ref(item, span))
        if self._held_bytes < _MAX_HELD_BYTES:
            self._held[item.offset] = item.payload
            self._held_bytes += len(item.payload)

    def take_note(self, note: Note) -> None:
        """Take a note, decoded."""
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
