"""Digests: the index and pre-aggregate of everything before them in a file.

A digest lists the chunks and captures since the one before, and repeats what is small:
schemas and notes. Its rollups cover all rows so far, so the latest digest alone draws any
number of ranks. It is decoded lazily: of thousands of ranks, only what is drawn::

    head | directory (a row per chunk, as `ChunkRef` without `end`)
         | of each table: fine rollup, coarse rollup
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from memboard.collector.format.encoding.numeric import (
    ABSENT,
    block_num_rows,
    decode_block,
    encode_block,
)
from memboard.collector.format.encoding.payload import (
    Count,
    cut,
    from_json,
    pack,
    to_json,
    unpack,
)
from memboard.collector.format.errors import CorruptError
from memboard.collector.format.records import (
    CaptureEntry,
    ChunkRef,
    Note,
    Record,
    Schema,
)
from memboard.collector.format.rollup import (
    COARSE_BUCKETS,
    FINE_BUCKETS,
    Rollup,
    rollup_names,
)
from memboard.collector.format.sizes import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.collector.format.columns import Dtype
    from memboard.collector.format.encoding.numeric import Values
    from memboard.collector.format.records import IntArray

DIGEST: Final = "digest"
"""The kind these records are tagged with."""

MAX_CHUNKS: Final = 1 << 21
"""More than a file can hold."""
MAX_CHUNK_ROWS: Final = 1 << 20
"""A chunk that claims more rows is corrupt: writers flush every few seconds."""
MAX_BUCKETS: Final = 1 << 16
"""A rollup that claims more is corrupt: the writer keeps about a thousand."""

_NUM_AXES: Final = 2


class TableRollup:
    """Both rollups of one table: of headlines finely, of all other columns coarsely."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.num_rows = 0
        self.num_on_disk = 0
        """Of these, rows that are in chunks of the file."""
        values = list(enumerate(schema.columns))[_NUM_AXES:]
        self._headlines = [index for index, column in values if column.headline]
        self._others = [index for index, column in values if not column.headline]
        # Of a table that is not rolled up these stay empty.
        self.fine = Rollup(len(self._headlines), max_buckets=FINE_BUCKETS)
        self.coarse = Rollup(
            len(self._others), max_buckets=COARSE_BUCKETS, max_only=True
        )

    def add(self, columns: Sequence[Values], *, is_on_disk: bool = True) -> None:
        """Take rows, in schema order; those of which no chunk has any, too."""
        times, steps = columns[:_NUM_AXES]
        if self.schema.rolled_up:
            self.fine.add(times, steps, [columns[index] for index in self._headlines])
            self.coarse.add(times, steps, [columns[index] for index in self._others])
        if self.schema.rolled_up or is_on_disk:
            self.num_rows += len(times)
        if is_on_disk:
            self.num_on_disk += len(times)


class _Table(Record, frozen=True, array_like=True):
    schema_id: Count
    num_rows: Count
    num_on_disk: Count
    fine_rows: Count
    coarse_rows: Count
    fine_bytes: Count
    coarse_bytes: Count


class _Head(Record, frozen=True):
    previous_offset: Count
    directory_bytes: Count
    tables: tuple[_Table, ...]
    notes: msgspec.Raw
    schemas: msgspec.Raw
    captures: msgspec.Raw
    captures_before: Count


class RollupSpan(NamedTuple):
    """A rollup inside a digest's payload."""

    start: int
    end: int
    names: tuple[str, ...]
    rows_per_bucket: int

    def num_buckets(self, payload: bytes) -> int:
        """How many values each column has.

        Raises:
            CorruptError: more than any.
        """
        num_rows = block_num_rows(memoryview(payload)[self.start : self.end])
        if num_rows > MAX_BUCKETS:
            raise CorruptError(f"a rollup claims {counted(num_rows, 'bucket')}")
        return num_rows

    def columns(self, payload: bytes, wanted: Sequence[str]) -> dict[str, Values]:
        """Columns by name, as they are on disk; those that it lacks are left out.

        Raises:
            CorruptError: they do not decode.
        """
        recorded = [column for column in wanted if column in self.names]
        self.num_buckets(payload)
        block = memoryview(payload)[self.start : self.end]
        values = decode_block(block, [self.names.index(column) for column in recorded])
        return dict(zip(recorded, values, strict=True))


class TableDigest(NamedTuple):
    """What a digest holds of one table."""

    num_rows: int
    num_on_disk: int
    """Rows in chunks before it."""
    fine: RollupSpan
    coarse: RollupSpan


@dataclass(frozen=True, slots=True, eq=False)
class Digest:
    """A digest record without its blocks; methods that need them take the payload."""

    offset: int
    """Where its frame starts in the file."""
    end: int
    previous_offset: int
    """Where the previous digest starts; 0: there is none."""
    captures_before: int
    """Where the latest earlier digest that lists captures starts; 0: there is none."""
    tables: dict[int, TableDigest]
    schemas: dict[int, Schema]
    """Shared by every rank whose schemas are the same; never changed."""
    directory: tuple[int, int]
    notes_json: bytes
    captures_json: bytes

    def notes(self) -> list[Note]:
        """All notes up to the digest that the writer repeats.

        Raises:
            CorruptError: they do not decode.
        """
        return from_json(self.notes_json, list[Note])

    def captures(self) -> list[CaptureEntry]:
        """Captures since the digest before.

        Raises:
            CorruptError: they do not decode.
        """
        return from_json(self.captures_json, list[CaptureEntry])

    def chunks(self, payload: bytes) -> IntArray:
        """Chunks since the digest before: rows of `ChunkRef`, in file order.

        Raises:
            CorruptError: they do not decode.
        """
        block = memoryview(payload)[slice(*self.directory)]
        if block_num_rows(block) > MAX_CHUNKS:
            raise CorruptError("a digest lists more chunks than a file can hold")
        columns = decode_block(block)
        width = len(ChunkRef._fields)
        if len(columns) != width - 1 or any(c.dtype != np.int64 for c in columns):
            raise CorruptError("a digest's directory has other columns")
        listed = np.empty((len(columns[0]), width), np.int64)
        listed[:, 0] = columns[0]
        listed[:, 2:] = np.stack(columns[1:], axis=1)
        listed = listed[np.argsort(listed[:, 0], kind="stable")]
        # A chunk's frame ends at or before the next one, and before the digest.
        listed[:, 1] = np.append(listed[1:, 0], self.offset)[: len(listed)]
        sane = (listed[:, 0] > 0) & (listed[:, 1] > listed[:, 0])
        sane &= (listed[:, 3] >= 0) & (listed[:, 3] <= MAX_CHUNK_ROWS)
        return listed[sane]

    def newest_ns(self, payload: bytes) -> int:
        """When the newest row of the chunks since the digest before was measured.

        Raises:
            CorruptError: they do not decode.
        """
        last = ChunkRef._fields.index("last_ns")
        return int(self.chunks(payload)[:, last].max(initial=0))


def encode_digest(
    tables: Sequence[TableRollup],
    chunks: Sequence[ChunkRef],
    notes: Sequence[Note],
    captures: Sequence[CaptureEntry],
    *,
    previous_offset: int,
    captures_before: int,
) -> bytes:
    """Encode a digest; `chunks` and `captures` are those since the one before."""
    listed = np.array(chunks, np.int64).reshape(-1, len(ChunkRef._fields))
    columns = [listed[:, 0], *listed[:, 2:].T]
    directory = encode_block(columns, ["i8"] * len(columns))
    blocks, listed_tables = [directory], []
    for table in tables:
        fine, coarse = _encode_rollup(table.fine), _encode_rollup(table.coarse)
        blocks += [fine, coarse]
        listed_tables.append(
            _Table(
                schema_id=table.schema.schema_id,
                num_rows=table.num_rows,
                num_on_disk=table.num_on_disk,
                fine_rows=table.fine.rows_per_bucket,
                coarse_rows=table.coarse.rows_per_bucket,
                fine_bytes=len(fine),
                coarse_bytes=len(coarse),
            )
        )
    head = _Head(
        previous_offset=previous_offset,
        directory_bytes=len(directory),
        tables=tuple(listed_tables),
        notes=msgspec.Raw(to_json(notes)),
        schemas=msgspec.Raw(
            b"[%b]" % b",".join(_schema_json(t.schema) for t in tables)
        ),
        captures=msgspec.Raw(to_json(captures)),
        captures_before=captures_before,
    )
    return pack(head, *blocks)


def decode_digest(payload: bytes, offset: int, end: int) -> Digest:
    """The digest whose frame lies between two offsets.

    Raises:
        CorruptError: the payload is no digest.
    """
    head, blocks = unpack(payload, _Head)
    schemas = _schemas(bytes(head.schemas))
    sizes = [head.directory_bytes]
    for table in head.tables:
        sizes += [table.fine_bytes, table.coarse_bytes]
    cut(blocks, sizes)
    start = position = len(payload) - len(blocks)
    tables = {}
    position += head.directory_bytes
    for table in head.tables:
        schema = schemas.get(table.schema_id)
        if schema is None:
            raise CorruptError("a digest lacks the schema of one of its tables")
        fine, coarse = _names(schema, is_of_rows=table.fine_rows <= 1)
        middle = position + table.fine_bytes
        last = middle + table.coarse_bytes
        tables[table.schema_id] = TableDigest(
            table.num_rows,
            table.num_on_disk,
            RollupSpan(position, middle, fine, max(1, table.fine_rows)),
            RollupSpan(middle, last, coarse, max(1, table.coarse_rows)),
        )
        position = last
    return Digest(
        offset=offset,
        end=end,
        previous_offset=head.previous_offset,
        captures_before=head.captures_before,
        tables=tables,
        schemas=schemas,
        directory=(start, start + head.directory_bytes),
        notes_json=bytes(head.notes),
        captures_json=bytes(head.captures),
    )


def _encode_rollup(rollup: Rollup) -> bytes:
    """Integral columns go as integers: exact, and narrower than floats."""
    columns = rollup.columns()
    dtypes: list[Dtype] = []
    for index, column in enumerate(columns):
        if column.dtype == np.int64:  # the axes
            dtypes.append("i8")
            continue
        is_absent = np.isnan(column)
        present = column[~is_absent]
        if not (
            np.all(present == np.trunc(present)) and np.all(np.abs(present) < 2**53)
        ):
            dtypes.append("f4")
            continue
        dtypes.append("i8")
        columns[index] = np.full(len(column), ABSENT, np.int64)
        columns[index][~is_absent] = present.astype(np.int64)
    return encode_block(columns, dtypes)


@lru_cache(maxsize=256)
def _schema_json(schema: Schema) -> bytes:
    """Every digest repeats the schemas, which do not change."""
    return to_json(schema)


@lru_cache(maxsize=1024)
def _schemas(schemas_json: bytes) -> dict[int, Schema]:
    return {s.schema_id: s for s in from_json(schemas_json, list[Schema])}


@lru_cache(maxsize=1024)
def _names(
    schema: Schema, *, is_of_rows: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of a table's fine and coarse rollup.

    `is_of_rows`: whether a bucket of the fine one is a row.
    """
    values = schema.columns[_NUM_AXES:]
    fine = [column.name for column in values if column.headline]
    coarse = [column.name for column in values if not column.headline]
    return (
        rollup_names(fine, max_only=is_of_rows),
        rollup_names(coarse, max_only=True),
    )
