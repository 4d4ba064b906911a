"""Tables in one file that is mapped, not read.

A cache of this machine's, never an exchange format: whatever is not exactly as written
is refused, and the file is made again. One file and not one a column: each mapped file
keeps a descriptor, and a page of 64 traces would need thousands. In order:

columns    raw little-endian numbers, each in the narrowest type that holds it, from a
           multiple of 64 bytes on; texts as one JSON list
header     JSON: `_Header`, with where every column lies and its CRC-32
footer     32 bytes: offset, length and CRC-32 of the header, and the end mark

The footer comes last, so a file whose writing was cut off has none.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from typing import (
    IO,
    TYPE_CHECKING,
    Any,
    Final,
    Protocol,
    TypeAlias,
    runtime_checkable,
)

import msgspec
import numpy as np

from memboard.collector.format.sizes import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    import numpy.typing as npt

    Numbers: TypeAlias = npt.NDArray[Any]

Table: TypeAlias = "Mapping[str, Any]"
"""Columns of equal length by name: numbers (any width), or a tuple of texts."""

_VERSION: Final = 2
_MAX_ROWS: Final = 1 << 32
_ALIGNMENT: Final = 64
_END: Final = b"columns."
_FOOTER: Final = struct.Struct("<QQI4x8s")
_MAX_HEADER: Final = 4 << 20
_TYPES: Final = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "f8")
"""Of numbers, by rising width, so that the first that fits is the narrowest."""
_TEXT: Final = "text"
_CHUNK: Final = 1 << 18
"""Numbers that are converted at once."""


class NotColumnsError(Exception):
    """The file is no column file, or not a whole one."""


@runtime_checkable
class ChunkedColumn(Protocol):
    """A column that is never whole in memory; numbers of 64 bits."""

    def __len__(self) -> int: ...

    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest; not asked of an empty one or of floats."""

    @property
    def is_float(self) -> bool: ...

    def chunks(self) -> Iterator[Numbers]:
        """Its numbers, some at a time."""


class _Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    type: str
    """One of numpy's type codes, or `text`."""
    num_rows: int
    offset: int
    num_bytes: int
    crc: int


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    meta: dict[str, Any]
    tables: dict[str, dict[str, _Column]]


class ColumnTables(dict[str, Table]):
    """Tables whose numbers lie in a mapped file, by name."""

    def __init__(
        self, tables: Mapping[str, Table], meta: Mapping[str, Any], num_bytes: int
    ) -> None:
        super().__init__(tables)
        self.meta = meta
        """Plain JSON data that was written with them."""
        self.num_bytes = num_bytes


def write_columns(
    file: IO[bytes],
    tables: Mapping[str, Table],
    meta: Mapping[str, Any],
    *,
    as_they_are: bool = False,
) -> None:
    """Write tables into an empty file.

    `as_they_are`: arrays keep their types, and are of that type again when they are
    mapped; else numbers become as narrow as they fit.

    Raises:
        OSError: it cannot be written.
        ValueError: a column is neither numbers nor texts.
    """
    offset = 0
    placed: dict[str, dict[str, _Column]] = {}
    for table_name, table in tables.items():
        placed[table_name] = {}
        for key, column in table.items():
            file.write(bytes(-offset % _ALIGNMENT))
            offset += -offset % _ALIGNMENT
            kind, num_rows, chunks = _encoded(column, as_they_are)
            start, crc = offset, 0
            for chunk in chunks:
                crc = zlib.crc32(chunk, crc)
                file.write(chunk)
                offset += len(chunk)
            placed[table_name][key] = _Column(
                kind, num_rows, start, offset - start, crc
            )
    header = msgspec.json.encode(_Header(_VERSION, dict(meta), placed))
    if len(header) > _MAX_HEADER:
        raise ValueError(f"the header would have {counted(len(header), 'byte')}")
    file.write(header)
    file.write(_FOOTER.pack(offset, len(header), zlib.crc32(header), _END))
    file.flush()


def open_columns(path: Path) -> ColumnTables:
    """Map a column file; its texts are read, its numbers checked but not copied.

    Raises:
        NotColumnsError: it is none, of another version, damaged, or not whole.
        OSError: it cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:  # empty
            raise NotColumnsError("it is empty") from error
    header, end = _header(data)
    tables = {
        table_name: {key: _decoded(data, column, end) for key, column in table.items()}
        for table_name, table in header.tables.items()
    }
    return ColumnTables(tables, header.meta, len(data))


def _encoded(column: Any, as_it_is: bool) -> tuple[str, int, Iterable[bytes]]:
    """Type, number of rows and bytes of a column."""
    if isinstance(column, tuple):
        return _TEXT, len(column), (msgspec.json.encode(column),)
    if isinstance(column, np.ndarray):
        if column.ndim != 1 or column.dtype.kind not in "iuf":
            raise ValueError(f"a column of type {column.dtype}, {column.ndim}-d")
        kind = column.dtype.str[1:] if as_it_is else _narrow_kind(column)
        if kind not in _TYPES:
            raise ValueError(f"a column of type {column.dtype}")
        starts = range(0, len(column), _CHUNK)
        chunks = (column[start : start + _CHUNK] for start in starts)
        return kind, len(column), _in_bytes(kind, chunks)
    if isinstance(column, ChunkedColumn):
        bounds = (0, 0) if column.is_float or not len(column) else column.bounds()
        kind = "f8" if column.is_float else _narrowest(*bounds)
        return kind, len(column), _in_bytes(kind, column.chunks())
    raise ValueError(f"a column cannot be a {type(column).__name__}")


def _in_bytes(kind: str, chunks: Iterable[Numbers]) -> Iterator[bytes]:
    return (np.asarray(chunk, f"<{kind}").tobytes() for chunk in chunks)


def _narrow_kind(column: Numbers) -> str:
    if column.dtype.kind == "f":
        return "f8"
    bounds = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    return _narrowest(*bounds)


def _narrowest(least: int, most: int) -> str:
    for kind in _TYPES[:-2]:
        limits = np.iinfo(kind)
        if limits.min <= least and most <= limits.max:
            return kind
    return "i8"


def _header(data: mmap.mmap) -> tuple[_Header, int]:
    """The header, and where the columns end."""
    footer_at = len(data) - _FOOTER.size
    if footer_at < 0:
        raise NotColumnsError("it is something else")
    offset, length, crc, end_mark = _FOOTER.unpack_from(data, footer_at)
    if end_mark != _END or length > _MAX_HEADER or offset + length != footer_at:
        raise NotColumnsError("its end is missing")
    encoded = data[offset : offset + length]
    if zlib.crc32(encoded) != crc:
        raise NotColumnsError("its header is damaged")
    try:
        header = msgspec.json.decode(encoded, type=_Header)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise NotColumnsError(f"its header does not decode: {error}") from error
    if header.version != _VERSION:
        raise NotColumnsError(f"it is of version {header.version}")
    return header, offset


def _decoded(data: mmap.mmap, column: _Column, end: int) -> Any:
    stop = column.offset + column.num_bytes
    if (
        not 0 <= column.num_rows <= _MAX_ROWS
        or column.offset % _ALIGNMENT
        or not 0 <= column.offset <= stop <= end
    ):
        raise NotColumnsError("a column lies outside")
    content = memoryview(data)[column.offset : stop]
    if zlib.crc32(content) != column.crc:
        raise NotColumnsError("a column is damaged")
    if column.type == _TEXT:
        try:
            texts = msgspec.json.decode(content, type=tuple[str, ...])
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise NotColumnsError("its texts do not decode") from error
        if len(texts) != column.num_rows:
            raise NotColumnsError("texts are missing")
        return texts
    if (
        column.type not in _TYPES
        or column.num_rows * int(column.type[1]) != column.num_bytes
    ):
        raise NotColumnsError(f"a column of type {column.type!r} and another length")
    numbers = np.frombuffer(content, f"<{column.type}")
    numbers.flags.writeable = False
    return numbers
