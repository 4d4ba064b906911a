"""Reads a recording back for tests: every frame of a rank's file, decoded and joined."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from memboard.collector.format.capture import CAPTURE, decode_capture, decode_part
from memboard.collector.format.digest import DIGEST, decode_digest
from memboard.collector.format.encoding.framing import Damage, FramedRecord, read_frames
from memboard.collector.format.names import RANK_FILES_DIR, parse_rank_file_name
from memboard.collector.format.records import (
    CHUNK,
    Capture,
    ChunkRef,
    Close,
    Header,
    Note,
    Schema,
    decode_chunk,
    decode_chunk_ref,
    decode_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from memboard.collector.format.capture import CapturePart
    from memboard.collector.format.records import CaptureEntry

    Part = tuple[CapturePart, memoryview]


@dataclass
class Chunk:
    """A chunk record, decoded."""

    ref: ChunkRef
    digest_offset: int
    columns: list[np.ndarray]

    @property
    def schema_id(self) -> int:
        return self.ref.schema_id


@dataclass
class DigestTable:
    """What a digest holds of one table, decoded."""

    num_rows: int
    chunk_offset: np.ndarray
    chunk_rows: np.ndarray
    fine_rows: int
    fine: dict[str, np.ndarray]
    coarse_rows: int
    coarse: dict[str, np.ndarray]


@dataclass
class Digest:
    """A digest record, all of it decoded."""

    previous_offset: int
    captures_before: int
    notes: list[Note]
    captures: list[CaptureEntry]
    schemas: dict[int, Schema]
    tables: list[DigestTable]


def digest_of(frame: FramedRecord) -> Digest:
    """All that a digest record holds."""
    payload = frame.payload
    digest = decode_digest(payload, frame.offset, frame.end)
    chunks = digest.chunks(payload)
    tables = []
    for schema_id, table in digest.tables.items():
        mine = chunks[chunks[:, 2] == schema_id]
        fine, coarse = table.fine, table.coarse
        tables.append(
            DigestTable(
                table.num_rows,
                mine[:, 0],
                mine[:, 3],
                fine.rows_per_bucket,
                fine.columns(payload, fine.names),
                coarse.rows_per_bucket,
                coarse.columns(payload, coarse.names),
            )
        )
    return Digest(
        digest.previous_offset,
        digest.captures_before,
        digest.notes(),
        digest.captures(),
        digest.schemas,
        tables,
    )


def chunk_of(frame: FramedRecord) -> Chunk:
    """All that a chunk record holds."""
    ref, digest_offset = decode_chunk_ref(frame.payload, frame.offset, frame.end)
    return Chunk(ref, digest_offset, decode_chunk(frame.payload))


def decoded(content: bytes, *, last: bool = True) -> Iterator[tuple[Any, Any]]:
    """Each frame with its record (of a capture: behind its last part), or damage."""
    parts: list[Part] = []
    for frame in read_frames(content, last=last):
        if isinstance(frame, Damage):
            yield frame, None
        elif frame.kind == CAPTURE:
            parts.append(decode_part(frame.payload))
            is_whole = len(parts) == parts[0][0].num_parts
            yield frame, decode_capture(parts) if is_whole else None
            parts = [] if is_whole else parts
        elif frame.kind == CHUNK:
            yield frame, chunk_of(frame)
        elif frame.kind == DIGEST:
            yield frame, digest_of(frame)
        else:
            yield frame, decode_record(frame.kind, frame.payload)


@dataclass
class Recording:
    """One rank's file. `tables` holds each training-phase table's joined columns."""

    path: Path
    header: Header
    schemas: dict[int, Schema] = field(default_factory=dict)
    tables: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    digests: list[tuple[int, Digest]] = field(default_factory=list)
    chunks: list[tuple[int, Chunk]] = field(default_factory=list)
    captures: list[Capture] = field(default_factory=list)
    close: Close | None = None
    kinds: list[str] = field(default_factory=list)

    @property
    def steps(self) -> dict[str, np.ndarray]:
        return self.tables["step"]

    def notes_of(self, kind: str) -> list[Note]:
        return [note for note in self.notes if note.kind == kind]

    def sources(self) -> dict[str, str]:
        """Status by source; the last note counts."""
        return {n.data["name"]: n.data["status"] for n in self.notes_of("source")}


def read_recording(path: Path) -> Recording:
    """Decode a whole file; any damage is an assertion error."""
    recording: Recording | None = None
    for framed, record in decoded(path.read_bytes()):
        assert not isinstance(framed, Damage), (path, framed)
        if not framed.kind:
            continue
        if isinstance(record, Header):
            recording = Recording(path, record)
        assert recording is not None, "the header comes first"
        recording.kinds.append(framed.kind)
        if isinstance(record, Schema):
            recording.schemas[record.schema_id] = record
        elif isinstance(record, Chunk):
            recording.chunks.append((framed.offset, record))
        elif isinstance(record, Note):
            recording.notes.append(record)
        elif isinstance(record, Digest):
            recording.digests.append((framed.offset, record))
        elif isinstance(record, Capture):
            recording.captures.append(record)
        elif isinstance(record, Close):
            recording.close = record
    assert recording is not None, f"{path} has no header"
    for schema in recording.schemas.values():
        if schema.phase == "train":
            recording.tables[schema.table] = _join(recording, schema)
    return recording


def read_run(run_dir: Path) -> dict[int, Recording]:
    """Every rank's recording below a run, by rank."""
    recordings = {}
    for path in sorted(run_dir.joinpath(*RANK_FILES_DIR).iterdir()):
        if path.is_dir():  # artifacts, or questions about clocks
            continue
        name = parse_rank_file_name(path.name)
        assert name is not None, path
        recording = read_recording(path)
        assert recording.header.rank == name.rank
        assert recording.header.attempt == name.attempt
        recordings[name.rank] = recording
    return recordings


def _join(recording: Recording, schema: Schema) -> dict[str, np.ndarray]:
    parts = [c.columns for _, c in recording.chunks if c.schema_id == schema.schema_id]
    if not parts:
        return {column.name: np.empty(0) for column in schema.columns}
    joined = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    names = [column.name for column in schema.columns]
    return dict(zip(names, joined, strict=True))
