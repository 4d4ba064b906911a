"""Reads rank files back for the collector's tests, through the disk contract alone."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import memboard as mb
from memboard.collector.format.encoding.framing import Damage
from memboard.collector.format.encoding.numeric import ABSENT
from memboard.collector.format.names import RANK_FILES_DIR
from memboard.collector.format.records import (
    Capture,
    Close,
    Header,
    Note,
    Schema,
    Segment,
)
from tests.recordings import Chunk, Digest, decoded

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Recording:
    """What one rank file holds."""

    header: Header | None = None
    schemas: dict[int, Schema] = field(default_factory=dict)
    chunks: list[Chunk] = field(default_factory=list)
    chunk_offsets: list[int] = field(default_factory=list)
    digests: list[Digest] = field(default_factory=list)
    digest_offsets: list[int] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    captures: list[Capture] = field(default_factory=list)
    close: Close | None = None
    damages: list[Damage] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)

    def column(self, name: str, table: str = "step", phase: str = "train") -> list[Any]:
        """A column's values over all chunks; None where absent."""
        values: list[Any] = []
        for chunk in self.chunks:
            schema = self.schemas[chunk.schema_id]
            if (schema.table, schema.phase) == (table, phase):
                at = [column.name for column in schema.columns].index(name)
                for value in chunk.columns[at].tolist():
                    absent = value == ABSENT or (
                        isinstance(value, float) and np.isnan(value)
                    )
                    values.append(None if absent else value)
        return values

    def steps(self, phase: str = "train") -> list[int]:
        return self.column("step", phase=phase)

    def tables(self) -> set[tuple[str, str]]:
        """Table and phase of all that has rows."""
        return {(s.table, s.phase) for s in self.schemas.values()}

    def captures_of(self, kind: str, function: str = "step") -> list[Capture]:
        """Captures of a kind and function, in their order."""
        of = [c for c in self.captures if (c.kind, c.function) == (kind, function)]
        return sorted(of, key=lambda capture: capture.time_ns)

    def snaps(self, function: str, phase: str = "train") -> list[str]:
        """Snaps as MemProfiler names them, without the rank."""
        table = f"function/{function}"
        iterations = self.column("iteration", table, phase)
        contexts = self.column("context", table, phase)
        return [
            f"{function}.{number}.{('start', 'end')[context]}"
            for number, context in zip(iterations, contexts, strict=True)
        ]

    def notes_of(self, kind: str) -> list[dict[str, Any]]:
        return [dict(note.data) for note in self.notes if note.kind == kind]

    def source(self, name: str) -> dict[str, Any]:
        """The last note about a source."""
        return [n for n in self.notes_of("source") if n["name"] == name][-1]


def read(*paths: Path, last: bool = True) -> Recording:
    """Read one rank file, or its parts; everything must decode, damage is collected."""
    found = Recording()
    content = b"".join(path.read_bytes() for path in paths)
    for frame, record in decoded(content, last=last):
        if isinstance(frame, Damage):
            found.damages.append(frame)
            continue
        found.kinds.append(frame.kind)
        if isinstance(record, Header):
            assert found.header is None, "two headers in one file"
            found.header = record
        elif isinstance(record, Segment):
            assert record.base_offset <= frame.offset
            found.header = record.header
        elif isinstance(record, Schema):
            assert record.schema_id not in found.schemas
            found.schemas[record.schema_id] = record
        elif isinstance(record, Chunk):
            assert record.schema_id in found.schemas, "a chunk before its schema"
            assert record.digest_offset == (
                found.digest_offsets[-1] if found.digest_offsets else 0
            )
            found.chunks.append(record)
            found.chunk_offsets.append(frame.offset)
        elif isinstance(record, Capture):
            found.captures.append(record)
        elif isinstance(record, Digest):
            found.digests.append(record)
            found.digest_offsets.append(frame.offset)
        elif isinstance(record, Note):
            found.notes.append(record)
        elif isinstance(record, Close):
            assert found.close is None or not found.close.is_complete
            found.close = record
    return found


def rank_files(run_dir: Path) -> list[Path]:
    """The rank files of a run, by name."""
    return sorted(run_dir.joinpath(*RANK_FILES_DIR).glob("rank*.events"))


def read_only_file(run_dir: Path) -> Recording:
    """The run's only rank file."""
    (path,) = rank_files(run_dir)
    return read(path)


def wait_until(condition: Any, seconds: float = 300.0) -> None:
    """Poll: fails where the condition does not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


ONLY_STEPS = {
    **dict.fromkeys(("gpu", "process", "host", "functions", "spans"), False),
    "flush_seconds": 0.1,
}
"""Settings for tests that look at steps alone."""


def record(run_dir: Path, **keywords: Any) -> mb.Recorder:
    """A recording of steps alone."""
    return mb.record(run_dir, **{**ONLY_STEPS, **keywords})
