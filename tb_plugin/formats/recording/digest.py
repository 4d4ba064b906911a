"""Digests read lazily: of thousands of ranks, only the columns that are drawn.

The layout is that of `collector.format.codec`; its own decoder decodes everything,
which is 20 times the work a heatmap needs. Ranks of a run share their schemas and
column names byte for byte, so those are decoded once and shared.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from collector.format.capture_parts import clean_entry
from collector.format.codec import NOTE, decode_record, digest_head
from collector.format.errors import CorruptError, FormatError
from collector.format.numeric import ABSENT, block_num_rows, decode_block
from collector.format.records import Note, Schema
from tb_plugin.formats.recording.frames.capture_lister import MAX_CAPTURES
from tb_plugin.formats.recording.frames.clean import clean_note
from tb_plugin.formats.recording.frames.schemas import decode_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.format.numeric import Values
    from collector.format.records import CaptureEntry

MAX_LISTED: Final = 1 << 21
"""Chunks one digest may list; more is corrupt."""


class _Table(msgspec.Struct):
    schema_id: int
    num_rows: int
    fine_rows: int
    coarse_rows: int
    fine_names: msgspec.Raw
    coarse_names: msgspec.Raw
    bytes: tuple[int, int, int]


class _Head(msgspec.Struct):
    previous_offset: int
    tables: list[_Table]
    notes: msgspec.Raw
    schemas: msgspec.Raw
    captures: msgspec.Raw = msgspec.Raw(b"[]")
    captures_before: int = 0


class _ListedTable(msgspec.Struct):
    schema_id: int
    bytes: tuple[int, int, int]


class _ListedHead(msgspec.Struct):
    """Only what leads to the directories: the rest is skipped, not decoded."""

    previous_offset: int
    tables: list[_ListedTable]


class _CapturesHead(msgspec.Struct):
    """Only what leads to captures."""

    captures: list[dict[str, object]] = []
    captures_before: int = 0


class _Note(msgspec.Struct):
    kind: str
    time_ns: int
    step: int | None = None
    data: dict[str, object] = {}  # msgspec copies it


_head_decoder = msgspec.json.Decoder(_Head)
_listed_decoder = msgspec.json.Decoder(_ListedHead)
_captures_decoder = msgspec.json.Decoder(_CapturesHead)
_notes_decoder = msgspec.json.Decoder(list[_Note])


@dataclass(frozen=True, slots=True)
class BlockSpan:
    """A block of columns inside a digest's payload."""

    start: int
    end: int
    names: tuple[str, ...]
    rows_per_bucket: int


@dataclass(frozen=True, slots=True)
class TableSpans:
    """Where one table's parts lie in a digest's payload."""

    schema_id: int
    num_rows: int
    directory: BlockSpan
    fine: BlockSpan
    coarse: BlockSpan


@dataclass(frozen=True, slots=True)
class DigestIndex:
    """A digest record without its columns."""

    offset: int
    """Where its frame starts in the file."""
    end: int
    previous_offset: int
    tables: dict[int, TableSpans]
    schemas: dict[int, Schema]
    notes_json: bytes
    captures_json: bytes
    """For `decode_captures`."""
    captures_before: int
    """Where the latest earlier digest that lists captures starts; 0: there is none."""

    def notes(self) -> list[Note]:
        """All notes up to the digest."""
        return decode_notes(self.notes_json)


def index_digest(payload: bytes, offset: int, end: int) -> DigestIndex:
    """Find the parts of a digest.

    Raises:
        CorruptError: the payload is not a digest.
    """
    try:
        text, at = digest_head(payload)
        head = _head_decoder.decode(text)
        tables = {}
        for table in head.tables:
            spans = []
            columns = (
                _DIRECTORY_JSON,
                bytes(table.fine_names),
                bytes(table.coarse_names),
            )
            widths = (1, table.fine_rows, table.coarse_rows)
            for size, names, width in zip(table.bytes, columns, widths, strict=True):
                if size < 0 or at + size > len(payload):
                    raise CorruptError("a digest names blocks that it does not hold")
                spans.append(BlockSpan(at, at + size, _names(names), max(1, width)))
                at += size
            tables[table.schema_id] = TableSpans(
                table.schema_id, table.num_rows, spans[0], spans[1], spans[2]
            )
        return DigestIndex(
            offset,
            end,
            head.previous_offset,
            tables,
            _schemas(bytes(head.schemas)),
            bytes(head.notes),
            bytes(head.captures),
            head.captures_before,
        )
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CorruptError(f"a digest record does not decode: {error}") from error


def listed_chunks(payload: bytes) -> tuple[int, dict[int, dict[str, Values]]]:
    """The previous digest's offset, and by schema the directory of chunks since then.

    Raises:
        CorruptError: the payload is not a digest.
    """
    try:
        text, at = digest_head(payload)
        head = _listed_decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CorruptError(f"a digest record does not decode: {error}") from error
    names = _names(_DIRECTORY_JSON)
    found: dict[int, dict[str, Values]] = {}
    for table in head.tables:
        size = table.bytes[0]
        block = memoryview(payload)[at : at + size]
        if min(table.bytes) < 0 or len(block) < size:
            raise CorruptError("a digest names blocks that it does not hold")
        if block_num_rows(block) > MAX_LISTED:
            raise CorruptError("a digest lists more chunks than a file can hold")
        columns = decode_block(block)
        if len(columns) != len(names) or any(c.dtype != np.int64 for c in columns):
            raise CorruptError("a digest's directory has other columns")
        found[table.schema_id] = dict(zip(names, columns, strict=True))
        at += sum(table.bytes)
    return head.previous_offset, found


def listed_captures(payload: bytes) -> tuple[int, list[CaptureEntry]]:
    """Where the digest before it that lists captures starts, and those since then.

    Raises:
        CorruptError: the payload is not a digest.
    """
    try:
        head = _captures_decoder.decode(digest_head(payload)[0])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CorruptError(f"a digest record does not decode: {error}") from error
    return head.captures_before, _entries(head.captures)


def decode_captures(captures_json: bytes) -> list[CaptureEntry]:
    """Captures that a digest lists.

    Raises:
        CorruptError: they are no list.
    """
    try:
        plain = msgspec.json.decode(captures_json, type=list[dict[str, object]])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CorruptError(f"a digest's captures do not decode: {error}") from error
    return _entries(plain)


def _entries(plain: list[dict[str, object]]) -> list[CaptureEntry]:
    """Those that are what they should be."""
    found = []
    for fields in plain[:MAX_CAPTURES]:
        with contextlib.suppress(FormatError):
            found.append(clean_entry(fields))
    return found


def decode_columns(
    payload: bytes, span: BlockSpan, wanted: Sequence[str]
) -> dict[str, Values]:
    """The wanted columns that the block holds, as they are on disk.

    Raises:
        CorruptError: the block does not decode.
    """
    held = [name for name in wanted if name in span.names]
    indices = [span.names.index(name) for name in held]
    block = memoryview(payload)[span.start : span.end]
    return dict(zip(held, decode_block(block, indices), strict=True))


def decode_notes(notes_json: bytes) -> list[Note]:
    """Notes of a digest; those that are not notes are left out."""
    try:
        plain = _notes_decoder.decode(notes_json)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _decode_odd_notes(notes_json)
    return [
        Note(kind=note.kind, time_ns=note.time_ns, step=note.step, data=note.data)
        for note in plain
    ]


def _decode_odd_notes(notes_json: bytes) -> list[Note]:
    """One by one, because some are not what they should be."""
    found = []
    try:
        entries = json.loads(notes_json.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return []
    for entry in entries if isinstance(entries, list) else []:
        with contextlib.suppress(FormatError):
            note = decode_record(NOTE, json.dumps(entry).encode())
            if isinstance(note, Note):
                found.append(clean_note(note))
    return found


def as_numbers(values: Values) -> Values:
    """float64 with NaN where nothing was recorded; infinities count as such too."""
    if values.dtype == np.int64:
        floats = values.astype(np.float64)
        absent = values == ABSENT
        if absent.any():
            floats[absent] = np.nan
        return floats
    odd = np.isinf(values)
    return np.where(odd, np.nan, values) if odd.any() else values


_DIRECTORY_JSON = (
    b'["chunk_offset","chunk_rows","chunk_first_step","chunk_last_step",'
    b'"chunk_first_ns","chunk_last_ns"]'
)


@lru_cache(maxsize=4096)
def _names(names_json: bytes) -> tuple[str, ...]:
    return tuple(msgspec.json.decode(names_json, type=list[str]))


@lru_cache(maxsize=1024)
def _schemas(schemas_json: bytes) -> dict[int, Schema]:
    """Shared by every rank whose schemas are the same; never changed."""
    schemas = {}
    for raw in msgspec.json.decode(schemas_json, type=list[msgspec.Raw]):
        schema = decode_schema(bytes(raw))
        if schema is not None:
            schemas[schema.schema_id] = schema
    return schemas
