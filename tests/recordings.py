"""Reads a recording back for tests: every frame of a rank's file, decoded and joined."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from collector.format.capture_parts import (
    CAPTURE,
    decode_capture,
    decode_entry,
    decode_part,
)
from collector.format.codec import decode_record
from collector.format.framing import Damage, read_frames
from collector.format.names import RANK_FILES_DIR, parse_rank_file_name
from collector.format.records import Capture, Chunk, Close, Digest, Header, Note, Schema

if TYPE_CHECKING:
    from pathlib import Path

    from collector.format.capture_parts import CapturePart


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
    parts: list[CapturePart] = []
    for framed in read_frames(path.read_bytes(), last=True):
        assert not isinstance(framed, Damage), (path, framed)
        if not framed.kind:
            continue
        if framed.kind == CAPTURE:
            assert recording is not None, "the header comes first"
            recording.kinds.append(CAPTURE)
            parts = [*parts, decode_part(framed.payload)]
            if len(parts) == parts[0].num_parts:
                entry = decode_entry(parts[0], offset=0, num_bytes=0)
                recording.captures.append(decode_capture(entry, parts))
                parts = []
            continue
        record = decode_record(framed.kind, framed.payload)
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
