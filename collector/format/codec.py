"""Records to bytes and back.

Text records (header, schema, note, close) are JSON. A chunk is a fixed head followed
by a block of columns; a digest is a JSON head with blocks behind it::

    chunk   u8 version | u8 0 | u16 schema_id | u32 num_rows | i64 first_step
            | i64 last_step | i64 first_ns | i64 last_ns | u64 digest_offset | block
    digest  u32 head_bytes | JSON head, deflated | blocks, in the order the head names
    segment u32 head_bytes | JSON, deflated: the fields, header and schemas within

Every record travels in an event with its kind as tag (`memboard/chunk`). Captures are
encoded and cut into records by `capture` and `capture_parts`.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import asdict, fields
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from collector.format.capture_parts import clean_entry, plain_entry
from collector.format.columns import Column
from collector.format.errors import CorruptError, TooNewError
from collector.format.names import FORMAT_VERSION
from collector.format.numeric import ABSENT, decode_block, encode_block
from collector.format.packing import inflate
from collector.format.records import (
    Chunk,
    ChunkSpan,
    ClockAnchor,
    Close,
    Digest,
    Header,
    Note,
    Schema,
    Segment,
    TableDigest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from collector.format.columns import Dtype
    from collector.format.numeric import Values
    from collector.format.records import Record

HEADER: Final = "header"
SEGMENT: Final = "segment"
SCHEMA: Final = "schema"
CHUNK: Final = "chunk"
DIGEST: Final = "digest"
NOTE: Final = "note"
CLOSE: Final = "close"

_KINDS: Final[Mapping[type, str]] = {
    Header: HEADER,
    Segment: SEGMENT,
    Schema: SCHEMA,
    Digest: DIGEST,
    Note: NOTE,
    Close: CLOSE,
}
_CHUNK_HEAD: Final = struct.Struct("<BxHIqqqqQ")
_LENGTH: Final = struct.Struct("<I")
_MAX_HEAD_BYTES: Final = 1 << 26
_DIRECTORY: Final = (
    "chunk_offset",
    "chunk_rows",
    "chunk_first_step",
    "chunk_last_step",
    "chunk_first_ns",
    "chunk_last_ns",
)


def kind_of(record: Header | Segment | Schema | Digest | Note | Close) -> str:
    """The kind a record is tagged with. Chunks are tagged `CHUNK`."""
    return _KINDS[type(record)]


def encode_chunk(
    schema: Schema, columns: Sequence[Values], *, digest_offset: int
) -> bytes:
    """Encode rows of one table; `columns` in schema order, axes first."""
    times, steps = columns[0], columns[1]
    head = _CHUNK_HEAD.pack(
        FORMAT_VERSION,
        schema.schema_id,
        len(times),
        int(steps.min()),
        int(steps.max()),
        int(times.min()),
        int(times.max()),
        digest_offset,
    )
    dtypes: list[Dtype] = [column.dtype for column in schema.columns]
    return head + encode_block(columns, dtypes)


def decode_chunk_span(payload: bytes | memoryview) -> ChunkSpan:
    """What a chunk covers, without decoding its columns."""
    if len(payload) < _CHUNK_HEAD.size:
        raise CorruptError(f"a chunk record has only {len(payload)} bytes")
    version, schema_id, rows, step0, step1, ns0, ns1, digest = _CHUNK_HEAD.unpack_from(
        payload
    )
    if version > FORMAT_VERSION:
        raise TooNewError(
            f"chunk format {version}, this MemBoard reads up to {FORMAT_VERSION}"
        )
    return ChunkSpan(
        schema_id=schema_id,
        num_rows=rows,
        first_step=step0,
        last_step=step1,
        first_ns=ns0,
        last_ns=ns1,
        digest_offset=digest,
    )


def decode_chunk(
    payload: bytes | memoryview, wanted: Iterable[int] | None = None
) -> Chunk:
    """Decode a chunk: the columns at the schema indices `wanted`, or all."""
    span = decode_chunk_span(payload)
    block = memoryview(payload)[_CHUNK_HEAD.size :]
    columns = decode_block(block, wanted)
    if any(len(column) != span.num_rows for column in columns):
        raise CorruptError("a chunk's columns and its head disagree on the rows")
    return Chunk(schema_id=span.schema_id, columns=tuple(columns))


def encode_record(record: Header | Segment | Schema | Digest | Note | Close) -> bytes:
    """Encode any record but a chunk (see `encode_chunk`)."""
    if isinstance(record, Digest):
        return _encode_digest(record)
    plain = asdict(record)
    if isinstance(record, Segment):
        plain["header"]["format_version"] = FORMAT_VERSION
        packed = zlib.compress(_to_json(plain), 6)
        return _LENGTH.pack(len(packed)) + packed
    if isinstance(record, Header):
        plain = {"format_version": FORMAT_VERSION, **plain}
    return _to_json(plain)


def decode_record(kind: str, payload: bytes | memoryview) -> Record | None:
    """Decode a record by its kind; None where the kind is not known (a newer writer).

    Raises:
        CorruptError: the bytes are not such a record.
        TooNewError: the file is of a newer major version.
    """
    if kind == CHUNK:
        return decode_chunk(payload)
    if kind == DIGEST:
        return _decode_digest(payload)
    if kind == SEGMENT:
        payload = packed_head(payload, "segment")[0]
    elif kind not in (HEADER, SCHEMA, NOTE, CLOSE):
        return None
    plain = _from_json(payload)
    try:
        if kind == SEGMENT:
            return _segment(plain)
        if kind == HEADER:
            return _header(plain)
        if kind == SCHEMA:
            return _schema(plain)
        if kind == NOTE:
            return _note(plain)
        return Close(**_known(Close, plain))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise CorruptError(f"a {kind} record lacks or misuses a field: {error}") from (
            error
        )


def _encode_digest(digest: Digest) -> bytes:
    blocks: list[bytes] = []
    tables = []
    for table in digest.tables:
        directory = encode_block(
            [getattr(table, name) for name in _DIRECTORY], ["i8"] * 6
        )
        fine_names, fine = _encode_rollup(table.fine)
        coarse_names, coarse = _encode_rollup(table.coarse)
        tables.append(
            {
                "schema_id": table.schema_id,
                "num_rows": table.num_rows,
                "fine_rows": table.fine_rows,
                "coarse_rows": table.coarse_rows,
                "fine_names": fine_names,
                "coarse_names": coarse_names,
                "bytes": [len(directory), len(fine), len(coarse)],
            }
        )
        blocks += [directory, fine, coarse]
    plain = {
        "previous_offset": digest.previous_offset,
        "tables": tables,
        "notes": [asdict(note) for note in digest.notes],
        "schemas": [_plain_schema(schema) for schema in digest.schemas],
        "captures": list(map(plain_entry, digest.captures)),
        "captures_before": digest.captures_before,
    }
    head = zlib.compress(_to_json(plain), 6)
    return _LENGTH.pack(len(head)) + head + b"".join(blocks)


@lru_cache(maxsize=256)
def _plain_schema(schema: Schema) -> dict[str, Any]:
    """Every digest repeats the schemas, which do not change; callers only read it."""
    return asdict(schema)


def _encode_rollup(columns: Mapping[str, Values]) -> tuple[list[str], bytes]:
    """Integral columns go as integers: exact, and narrower than floats."""
    names, values, dtypes = [], [], []
    for name, column in columns.items():
        names.append(name)
        if column.dtype == np.int64:
            values.append(column)
            dtypes.append("i8")
            continue
        present = column[~np.isnan(column)]
        if (
            _is_exact(name, column, columns)
            and bool(np.all(present == np.trunc(present)))
            and bool(np.all(np.abs(present) < 2**53))
        ):
            ints = np.full(len(column), ABSENT, np.int64)
            ints[~np.isnan(column)] = present.astype(np.int64)
            values.append(ints)
            dtypes.append("i8")
        else:
            values.append(column)
            dtypes.append("f4")
    return names, encode_block(values, dtypes)  # type: ignore[arg-type]


def _is_exact(name: str, column: Values, columns: Mapping[str, Values]) -> bool:
    """Whether full precision is wanted: a mean is the one row's value or rounded."""
    if not name.endswith(":mean"):
        return True
    highest = columns.get(name.removesuffix("mean") + "max")
    return highest is not None and np.array_equal(column, highest, equal_nan=True)


def digest_head(payload: bytes | memoryview) -> tuple[bytes, int]:
    """A digest's JSON head, and where in the payload its blocks begin.

    Raises:
        CorruptError: the payload is not a digest.
    """
    return packed_head(payload, DIGEST)


def packed_head(payload: bytes | memoryview, kind: str) -> tuple[bytes, int]:
    """The JSON that a digest or segment record begins with, and where it ends.

    Raises:
        CorruptError: the payload is no such record.
    """
    try:
        (head_bytes,) = _LENGTH.unpack_from(payload)
        at = _LENGTH.size + head_bytes
        packed = memoryview(payload)[_LENGTH.size : at]
        return inflate(packed, _MAX_HEAD_BYTES), at
    except (struct.error, zlib.error) as error:
        raise CorruptError(f"a {kind} record does not decode: {error}") from error


def _decode_digest(payload: bytes | memoryview) -> Digest:
    text, at = digest_head(payload)
    head = _from_json(text)
    try:
        tables = []
        for plain in head["tables"]:
            sizes = [int(size) for size in plain["bytes"]]
            parts = []
            for size in sizes:
                parts.append(memoryview(payload)[at : at + size])
                at += size
            tables.append(_table_digest(plain, parts))
        return Digest(
            previous_offset=int(head["previous_offset"]),
            tables=tuple(tables),
            notes=tuple(_note(note) for note in head["notes"]),
            schemas=tuple(_schema(schema) for schema in head["schemas"]),
            captures=tuple(map(clean_entry, head.get("captures", ()))),
            captures_before=int(head.get("captures_before", 0)),
        )
    except (struct.error, TypeError, ValueError, KeyError, AttributeError) as error:
        raise CorruptError(f"a digest record does not decode: {error}") from error


def _table_digest(plain: Mapping[str, Any], parts: Sequence[memoryview]) -> TableDigest:
    directory = dict(zip(_DIRECTORY, decode_block(parts[0]), strict=True))
    fine = zip(plain["fine_names"], decode_block(parts[1]), strict=True)
    coarse = zip(plain["coarse_names"], decode_block(parts[2]), strict=True)
    return TableDigest(
        schema_id=int(plain["schema_id"]),
        num_rows=int(plain["num_rows"]),
        fine_rows=int(plain["fine_rows"]),
        coarse_rows=int(plain["coarse_rows"]),
        fine=dict(fine),
        coarse=dict(coarse),
        **directory,  # type: ignore[arg-type]
    )


def _header(plain: dict[str, Any]) -> Header:
    version = plain.get("format_version")
    if not isinstance(version, int):
        raise CorruptError("the header names no format version")
    if version > FORMAT_VERSION:
        written_by = plain.get("versions", {}).get("memboard", "a newer MemBoard")
        raise TooNewError(
            f"written in format {version} by memboard {written_by}; this MemBoard reads"
            f" up to format {FORMAT_VERSION}"
        )
    known = _known(Header, plain)
    known["started"] = ClockAnchor(**_known(ClockAnchor, known["started"]))
    known["planted"] = tuple(str(text) for text in known.get("planted", ()))
    for name in ("rank", "local_rank", "world_size", "pid"):
        if not isinstance(known[name], int):
            raise CorruptError(f"the header's {name} is not a number")
    return Header(**known)


def _segment(plain: Mapping[str, Any]) -> Segment:
    numbers = {
        name: int(plain[name]) for name in ("number", "base_offset", "digest_offset")
    }
    if min(numbers.values()) < 0:
        raise CorruptError("a segment record holds a negative number")
    return Segment(
        **numbers,
        header=_header(plain["header"]),
        schemas=tuple(_schema(schema) for schema in plain["schemas"]),
    )


def _schema(plain: Mapping[str, Any]) -> Schema:
    known = _known(Schema, plain)
    known["columns"] = tuple(
        Column(**_known(Column, column)) for column in plain["columns"]
    )
    schema = Schema(**known)
    names = [column.name for column in schema.columns]
    if names[:2] != ["time_ns", "step"] or len(set(names)) != len(names):
        raise CorruptError(f"the schema of table {schema.table!r} has odd columns")
    return schema


def _note(plain: Mapping[str, Any]) -> Note:
    return Note(**_known(Note, plain))


def _known(cls: type, plain: Mapping[str, Any]) -> dict[str, Any]:
    """Fields this version knows; what a newer writer added is left out."""
    names = _field_names(cls)
    return {name: value for name, value in plain.items() if name in names}


@cache
def _field_names(cls: type) -> frozenset[str]:
    return frozenset(field.name for field in fields(cls))


def _to_json(plain: Mapping[str, Any]) -> bytes:
    # NaN is not JSON: it would be refused by every strict reader.
    return json.dumps(
        plain, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=str
    ).encode("utf-8", "surrogatepass")


def _from_json(payload: bytes | memoryview) -> dict[str, Any]:
    try:
        plain = json.loads(bytes(payload).decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise CorruptError(f"a text record is not JSON: {error}") from error
    if not isinstance(plain, dict):
        raise CorruptError("a text record is not a JSON object")
    return plain
