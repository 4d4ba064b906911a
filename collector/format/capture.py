"""Captures to bytes and back: one body, cut into parts of a quarter MiB, a record each.

::

    body   head: meta, and what the tables are | of each table: its columns as numbers,
           and where some are texts: the lengths of the distinct ones, and these in UTF-8
    part   head: `CapturePart` | bytes of the body

Every part names its capture and says where the file's last digest lies: captures are
listed without decoding them, and no record outgrows a reader's block. Nothing here is
executed or imported while reading, and what a head claims is checked against
`MAX_CAPTURE_BYTES` before it is believed: whatever may be written can be read, and
nothing larger.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping  # noqa: TC003  # msgspec looks it up
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
import numpy as np
from msgspec import Meta

from memboard.collector.format.encoding.numeric import (
    MAX_ROWS,
    block_num_rows,
    decode_block,
    encode_block,
)
from memboard.collector.format.encoding.payload import (
    Count,
    Text,
    cut,
    inflate,
    pack,
    unpack,
)
from memboard.collector.format.errors import CorruptError
from memboard.collector.format.records import Capture, CaptureEntry, Record
from memboard.collector.format.sizes import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from memboard.collector.format.columns import Dtype
    from memboard.collector.format.encoding.numeric import Values
    from memboard.collector.format.records import CaptureTable

CAPTURE: Final = "capture"
"""The kind these records are tagged with."""

TRACE_ENDED: Final = "ended"
"""Of a trace of torch's profiler, which is yet to be saved."""

TRACE_READ: Final = "digest"
"""Of one that is saved, with what was read out of it."""

TRACE_LOST: Final = "lost"
"""Of a cycle that has no trace and gets none."""

TRACE_CONTEXTS: Final = (TRACE_ENDED, "", TRACE_READ, TRACE_LOST)
"""Contexts of captures of one trace: a later one takes the place of an earlier one. The
empty one is of a trace that is saved."""

MAX_CAPTURE_BYTES: Final = 1 << 28
"""Of all tables of a capture in memory, by the account of `size_of`."""
MAX_BODY_BYTES: Final = MAX_CAPTURE_BYTES + (1 << 24)
"""More than any capture takes: what does not deflate may grow a little."""
PART_BYTES: Final = 1 << 18

_TEXT_BYTES: Final = 64
"""Size of a row of a column of texts, without the texts themselves."""
_MAX_TABLES: Final = 64
_MAX_COLUMNS: Final = 1024
_LEVEL: Final = 1
"""Of deflation: texts are deflated while training goes on."""
_NAMED: Final = ("kind", "phase", "function", "context", "label")
_FIELDS: Final = (*_NAMED, "time_ns", "iteration", "step")
"""Fields that an entry and its capture share."""
_MAX_NAME: Final = 10_000


class _Table(Record, frozen=True, array_like=True):
    name: Text
    num_rows: Annotated[int, Meta(ge=0, le=MAX_ROWS)]
    columns: Annotated[
        tuple[tuple[Text, Literal["i8", "f8", "text"]], ...],
        Meta(max_length=_MAX_COLUMNS),
    ]
    sizes: tuple[Count, Count, Count]
    """Bytes of the numbers, of the lengths of texts and of the texts."""


class _Body(Record, frozen=True):
    meta: Mapping[str, Any]
    tables: Annotated[tuple[_Table, ...], Meta(max_length=_MAX_TABLES)]


class CapturePart(Record, frozen=True):
    """The head of one record of a capture."""

    part: Count
    num_parts: Count
    checksum: Count  # CRC-32 of the body
    digest_offset: Count
    """Where the file's latest digest record starts; 0 where there is none yet."""
    entry: CaptureEntry
    """Of the whole capture, but for where it lies."""

    def follows(self, before: CapturePart) -> bool:
        """Whether this is the next part of the same capture."""
        return (
            self.part == before.part + 1
            and self.num_parts == before.num_parts
            and self.checksum == before.checksum
            and self.entry == before.entry
        )

    def entry_at(self, offset: int, end: int) -> CaptureEntry:
        """The capture's entry, where its frames lie between two offsets."""
        return msgspec.structs.replace(
            self.entry, offset=offset, num_bytes=end - offset
        )


def size_of(tables: Mapping[str, CaptureTable]) -> int:
    """Bytes that tables hold in memory, about; takes microseconds."""
    return sum(
        _TEXT_BYTES * len(column)
        if isinstance(column, (tuple, list))
        else 8 * len(column)
        for table in tables.values()
        for column in table.values()
    )


def encode_body(capture: Capture) -> bytes:
    """Encode the meta and tables of a capture.

    Raises:
        ValueError: they are too large, or a column is none.
    """
    if len(capture.tables) > _MAX_TABLES:
        raise ValueError(f"a capture holds at most {_MAX_TABLES} tables")
    room = MAX_CAPTURE_BYTES - size_of(capture.tables)
    heads: list[_Table] = []
    blocks: list[bytes] = []
    for table_name, table in capture.tables.items():
        head, mine, text_bytes = _encode_table(table_name, table)
        room -= text_bytes
        if room < 0 or head.num_rows > MAX_ROWS:
            raise ValueError(f"the capture is larger than {MAX_CAPTURE_BYTES} bytes")
        heads.append(head)
        blocks += mine
    return pack(_Body(meta=capture.meta, tables=tuple(heads)), *blocks)


def decode_body(
    body: bytes, wanted: Collection[str] | None = None
) -> tuple[Mapping[str, Any], dict[str, CaptureTable]]:
    """The meta, and the tables that are wanted, or all of them, by name.

    Raises:
        CorruptError: the bytes are no body, or claim more than a capture may hold.
    """
    head, data = unpack(body, _Body)
    blocks = iter(cut(data, list(chain(*(table.sizes for table in head.tables)))))
    table_by_name: dict[str, CaptureTable] = {}
    room = MAX_CAPTURE_BYTES
    for table in head.tables:
        mine = [next(blocks) for _ in table.sizes]
        if wanted is None or table.name in wanted:
            table_by_name[table.name], used = _decode_table(table, mine, room)
            room -= used
    return head.meta, table_by_name


def _encode_table(
    table_name: str, table: CaptureTable
) -> tuple[_Table, list[bytes], int]:
    """A table's head, its blocks, and the bytes of its distinct texts."""
    if len(table) > _MAX_COLUMNS:
        raise ValueError(
            f"a table of a capture holds at most {counted(_MAX_COLUMNS, 'column')}"
        )
    texts: dict[str, int] = {}
    columns: list[Values] = []
    dtypes: list[Literal["i8", "f8", "text"]] = []
    for column, values in table.items():
        if isinstance(values, (tuple, list)):
            codes = [texts.setdefault(str(text), len(texts)) for text in values]
            columns.append(np.array(codes, np.int64))
            dtypes.append("text")
            continue
        numbers = np.asarray(values)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iubf":
            raise ValueError(
                f"column {table_name}.{column} is neither numbers nor texts"
            )
        if numbers.dtype.kind == "f":
            columns.append(numbers.astype(np.float64, copy=False))
            dtypes.append("f8")
        else:
            columns.append(numbers.astype(np.int64, copy=False))
            dtypes.append("i8")
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise ValueError(f"the columns of {table_name} are of different lengths")
    stored: list[Dtype] = ["f8" if dtype == "f8" else "i8" for dtype in dtypes]
    blocks = [encode_block(columns, stored), b"", b""]
    # Undecodable paths hold lone surrogates, which must come back too.
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    if encoded:
        sizes = np.array(list(map(len, encoded)), np.int64)
        joined = b"".join(encoded)
        blocks[1:] = encode_block([sizes], ["i8"]), zlib.compress(joined, _LEVEL)
    head = _Table(
        name=table_name,
        num_rows=lengths.pop() if lengths else 0,
        columns=tuple(zip(table, dtypes, strict=True)),
        sizes=(len(blocks[0]), len(blocks[1]), len(blocks[2])),
    )
    return head, blocks, sum(map(len, encoded))


def _decode_table(
    head: _Table, blocks: Sequence[memoryview], room: int
) -> tuple[CaptureTable, int]:
    """The table, and how many bytes it holds."""
    names = [column for column, _ in head.columns]
    is_text = [dtype == "text" for _, dtype in head.columns]
    used = head.num_rows * sum(_TEXT_BYTES if text else 8 for text in is_text)
    if used > room:
        raise CorruptError(f"a table of a capture claims {counted(used, 'byte')}")
    if len(set(names)) != len(names):
        raise CorruptError("a table of a capture contradicts itself")
    columns = _decode_numbers(blocks[0], head.num_rows, len(names))
    texts: list[str] = []
    if head.sizes[1]:
        if block_num_rows(blocks[1]) > head.num_rows * sum(is_text):
            raise CorruptError("a capture holds more texts than rows")
        texts, text_bytes = _decode_texts(blocks[1], blocks[2], room - used)
        used += text_bytes
    table: dict[str, Any] = {}
    for column_name, text, values in zip(names, is_text, columns, strict=True):
        if text:
            if len(values) and not 0 <= values.min() <= values.max() < len(texts):
                raise CorruptError("a capture names texts that it does not hold")
            table[column_name] = tuple(map(texts.__getitem__, values.tolist()))
        else:
            table[column_name] = values
    return table, used


def _decode_numbers(block: memoryview, num_rows: int, num_columns: int) -> list[Values]:
    """All columns of a block that must have so many rows."""
    if num_columns and block_num_rows(block) != num_rows:
        raise CorruptError("a table of a capture has other rows than its head says")
    columns = decode_block(block)
    if len(columns) != num_columns:
        raise CorruptError("a table of a capture has other columns than its head says")
    return columns


def _decode_texts(
    lengths: memoryview, packed: memoryview, room: int
) -> tuple[list[str], int]:
    """The distinct texts, and their bytes."""
    (sizes,) = _decode_numbers(lengths, block_num_rows(lengths), 1)
    joined = inflate(packed, room)
    ends = np.cumsum(sizes)
    if not len(sizes) or sizes.min() < 0 or ends[-1] != len(joined):
        raise CorruptError("the texts of a capture are not as long as they should be")
    places = zip((ends - sizes).tolist(), ends.tolist(), strict=True)
    try:
        if joined.isascii():  # a slice of text is much the fastest
            whole = str(joined, "ascii")
            texts = [whole[a:b] for a, b in places]
        else:
            texts = [str(joined[a:b], "utf-8", "surrogatepass") for a, b in places]
    except UnicodeDecodeError as error:
        raise CorruptError(f"a text of a capture does not decode: {error}") from error
    return texts, len(joined)


def split_body(capture: Capture, body: bytes, *, digest_offset: int) -> list[bytes]:
    """The payloads of a capture's records, in their order."""
    values_by_name = {field: getattr(capture, field) for field in _FIELDS}
    values_by_name.update(
        {field: str(values_by_name[field])[:_MAX_NAME] for field in _NAMED}
    )
    entry = CaptureEntry(offset=0, num_bytes=0, **values_by_name)
    num_parts = max(1, -(-len(body) // PART_BYTES))
    checksum = zlib.crc32(body)
    view = memoryview(body)
    return [
        pack(
            CapturePart(
                part=part,
                num_parts=num_parts,
                checksum=checksum,
                digest_offset=digest_offset,
                entry=entry,
            ),
            view[part * PART_BYTES : (part + 1) * PART_BYTES],
        )
        for part in range(num_parts)
    ]


def decode_part(payload: bytes | memoryview) -> tuple[CapturePart, memoryview]:
    """One record of a capture: its head and its bytes of the body.

    Raises:
        CorruptError: the bytes are none.
    """
    part, data = unpack(payload, CapturePart)
    if part.part >= part.num_parts:
        raise CorruptError("a part of a capture contradicts itself")
    return part, data


def join_parts(parts: Sequence[tuple[CapturePart, memoryview]]) -> bytes:
    """The body, from all its parts in order.

    Raises:
        CorruptError: one is missing, or is another capture's.
    """
    heads = [part for part, _ in parts]
    if not heads or heads[0].part or heads[0].num_parts != len(heads):
        raise CorruptError("a part of the capture is missing")
    if not all(part.follows(before) for before, part in pairwise(heads)):
        raise CorruptError("a part of the capture belongs to another one")
    body = b"".join(data for _, data in parts)
    if zlib.crc32(body) != heads[0].checksum:
        raise CorruptError("the parts of the capture do not make up what was written")
    return body


def decode_capture(
    parts: Sequence[tuple[CapturePart, memoryview]],
    wanted: Collection[str] | None = None,
) -> Capture:
    """A capture with the tables that are wanted, or with all of them.

    Raises:
        CorruptError: a part is missing or damaged, or claims too much.
    """
    meta, tables = decode_body(join_parts(parts), wanted)
    entry = parts[0][0].entry
    values_by_name = {field: getattr(entry, field) for field in _FIELDS}
    return Capture(**values_by_name, meta=meta, tables=tables)
