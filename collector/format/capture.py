"""A capture's meta and tables to one body of bytes and back.

::

    body  u32 head_bytes | JSON head, deflated | tables, in the order the head names
    table block of its columns, texts as indices | for each column of texts: a block of
          the lengths of its distinct texts, and these end to end in UTF-8, deflated

How a body lies in a file is `capture_parts`' business. Nothing here is executed or
imported while reading, and what a head claims is checked against `MAX_CAPTURE_BYTES`
before it is believed: whatever may be written can be read, and nothing larger.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from collector.format.errors import CorruptError
from collector.format.numeric import (
    MAX_ROWS,
    block_num_rows,
    decode_block,
    encode_block,
)
from collector.format.packing import inflate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from collector.format.columns import Dtype
    from collector.format.numeric import Values
    from collector.format.records import Capture, CaptureTable

MAX_CAPTURE_BYTES: Final = 1 << 28
"""Of all tables of a capture in memory, by the account of `size_of`."""

_TEXT_BYTES: Final = 64
"""What a row of a column of texts counts for, besides the texts themselves."""

_LENGTH: Final = struct.Struct("<I")
_MAX_HEAD_BYTES: Final = 1 << 20
_MAX_TABLES: Final = 64
_MAX_COLUMNS: Final = 1024
_LEVEL: Final = 1
"""Of deflation: texts are deflated while training goes on."""


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
    plain, blocks, room = [], [], MAX_CAPTURE_BYTES - size_of(capture.tables)
    if len(capture.tables) > _MAX_TABLES:
        raise ValueError(f"a capture holds at most {_MAX_TABLES} tables")
    for name, table in capture.tables.items():
        encoded = _EncodedTable(name, table)
        room -= encoded.text_bytes
        if room < 0 or encoded.num_rows > MAX_ROWS:
            raise ValueError(f"the capture is larger than {MAX_CAPTURE_BYTES} bytes")
        mine = encoded.blocks()
        plain.append(
            {
                "name": name,
                "num_rows": encoded.num_rows,
                "columns": list(zip(table, encoded.dtypes, strict=True)),
                "bytes": list(map(len, mine)),
            }
        )
        blocks += mine
    head = json.dumps(
        {"meta": _jsonable(capture.meta), "tables": plain}, separators=(",", ":")
    ).encode()
    if len(head) > _MAX_HEAD_BYTES:
        raise ValueError(f"the capture's meta is larger than {_MAX_HEAD_BYTES} bytes")
    packed = zlib.compress(head, _LEVEL)
    return b"".join((_LENGTH.pack(len(packed)), packed, *blocks))


def decode_body(
    body: bytes, wanted: Collection[str] | None = None
) -> tuple[dict[str, Any], dict[str, CaptureTable]]:
    """The meta, and the tables that are wanted, or all of them, by name.

    Raises:
        CorruptError: the bytes are no body, or claim more than a capture may hold.
    """
    view = memoryview(body)
    try:
        (head_bytes,) = _LENGTH.unpack_from(view)
        at = _LENGTH.size + head_bytes
        packed = view[_LENGTH.size : at]
        head = json.loads(inflate(packed, _MAX_HEAD_BYTES), parse_constant=_refuse)
        meta, tables = head["meta"], head["tables"]
        if not isinstance(meta, dict) or len(tables) > _MAX_TABLES:
            raise CorruptError("the head of a capture is none")
        found: dict[str, CaptureTable] = {}
        room = MAX_CAPTURE_BYTES
        for plain in tables:
            sizes = [_checked(size, len(view) - at) for size in plain["bytes"]]
            if wanted is None or plain["name"] in wanted:
                blocks = _cut(view, at, sizes)
                found[str(plain["name"])], used = _decode_table(plain, blocks, room)
                room -= used
            at += sum(sizes)
    except (struct.error, zlib.error, RecursionError) as error:
        raise CorruptError(f"a capture does not decode: {error}") from error
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise CorruptError(f"a capture does not decode: {error!r}") from error
    return meta, found


class _EncodedTable:
    """One table's columns as numbers, with the texts they stand for."""

    def __init__(self, name: str, table: CaptureTable) -> None:
        self._columns: list[Values] = []
        self.dtypes: list[str] = []
        self._texts: list[tuple[Values, bytes]] = []
        """Of each column of texts: the lengths of the distinct ones, and these."""
        if len(table) > _MAX_COLUMNS:
            raise ValueError(
                f"a table of a capture holds at most {_MAX_COLUMNS} columns"
            )
        for column, values in table.items():
            if isinstance(values, (tuple, list)):
                self._add_texts(values)
            else:
                self._add_numbers(f"{name}.{column}", np.asarray(values))
        lengths = {len(column) for column in self._columns}
        if len(lengths) > 1:
            raise ValueError(f"the columns of {name} are of different lengths")
        self.num_rows = lengths.pop() if lengths else 0
        self.text_bytes = sum(len(text) for _, text in self._texts)

    def blocks(self) -> list[bytes]:
        """What is written of the table."""
        kinds: list[Dtype] = ["f8" if d == "f8" else "i8" for d in self.dtypes]
        blocks = [encode_block(self._columns, kinds)]
        for lengths, text in self._texts:
            blocks += [encode_block([lengths], ["i8"]), zlib.compress(text, _LEVEL)]
        return blocks

    def _add_texts(self, values: Sequence[str]) -> None:
        distinct: dict[str, int] = {}
        codes = [distinct.setdefault(str(text), len(distinct)) for text in values]
        # Undecodable paths hold lone surrogates, which must come back too.
        encoded = [text.encode("utf-8", "surrogatepass") for text in distinct]
        self._columns.append(np.array(codes, np.int64))
        self.dtypes.append("text")
        lengths = np.array(list(map(len, encoded)), np.int64)
        self._texts.append((lengths, b"".join(encoded)))

    def _add_numbers(self, where: str, values: np.ndarray[Any, Any]) -> None:
        if values.ndim != 1 or values.dtype.kind not in "iubf":
            raise ValueError(f"column {where} is neither numbers nor texts")
        if values.dtype.kind == "f":
            self._columns.append(values.astype(np.float64, copy=False))
            self.dtypes.append("f8")
        else:
            self._columns.append(values.astype(np.int64, copy=False))
            self.dtypes.append("i8")


def _decode_table(
    plain: Mapping[str, Any], blocks: Sequence[memoryview], room: int
) -> tuple[CaptureTable, int]:
    """The table, and how many bytes it holds."""
    names = [str(name) for name, _ in plain["columns"]]
    dtypes = [dtype for _, dtype in plain["columns"]]
    num_texts = dtypes.count("text")
    num_rows = _checked(plain["num_rows"], MAX_ROWS)
    used = num_rows * (8 * (len(names) - num_texts) + _TEXT_BYTES * num_texts)
    if len(names) > _MAX_COLUMNS or used > room:
        raise CorruptError(f"a table of a capture claims {used} bytes")
    if len(set(names)) != len(names) or len(blocks) != 1 + 2 * num_texts:
        raise CorruptError("a table of a capture contradicts itself")
    columns = _decode_block(blocks[0], num_rows, len(names)) if names else []
    texts = iter(blocks[1:])
    table: dict[str, Any] = {}
    for name, dtype, values in zip(names, dtypes, columns, strict=True):
        if dtype == "text":
            lengths, packed = next(texts), next(texts)
            table[name], more = _decode_texts(values, lengths, packed, room - used)
            used += more
        else:
            table[name] = values
    return table, used


def _decode_block(block: memoryview, num_rows: int, num_columns: int) -> list[Values]:
    """All columns of a block that must have so many rows."""
    if block_num_rows(block) != num_rows:
        raise CorruptError("a table of a capture has other rows than its head says")
    columns = decode_block(block)
    if len(columns) != num_columns or any(len(c) != num_rows for c in columns):
        raise CorruptError("a table of a capture has other columns than its head says")
    return columns


def _decode_texts(
    codes: Values, lengths: memoryview, packed: memoryview, room: int
) -> tuple[tuple[str, ...], int]:
    """The texts row by row, and the bytes of the distinct ones."""
    num_distinct = block_num_rows(lengths)
    if num_distinct > len(codes):
        raise CorruptError("a capture holds more texts than rows")
    (sizes,) = _decode_block(lengths, num_distinct, 1)
    text = memoryview(inflate(packed, room))
    ends = np.cumsum(sizes)
    if num_distinct and (sizes.min() < 0 or ends[-1] != len(text)):
        raise CorruptError("the texts of a capture are not as long as they should be")
    if len(codes) and not 0 <= codes.min() <= codes.max() < num_distinct:
        raise CorruptError("a capture names texts that it does not hold")
    distinct = [
        str(text[end - size : end], "utf-8", "surrogatepass")
        for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)
    ]
    return tuple(map(distinct.__getitem__, codes.tolist())), len(text)


def _cut(view: memoryview, at: int, sizes: Iterable[int]) -> list[memoryview]:
    blocks = []
    for size in sizes:
        blocks.append(view[at : at + size])
        at += size
    return blocks


def _checked(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise CorruptError("a capture claims what it does not hold")
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _jsonable(value: Any) -> Any:
    """Plain JSON data: other things as text, what is not finite as null."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(held) for key, held in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_jsonable(held) for held in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
