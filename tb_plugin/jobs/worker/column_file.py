"""Tables of a snapshot in one file that is mapped, not read.

A cache of this machine's, never an exchange format: whatever is not exactly as written
is refused, and the file is made again. In order:

preamble   64 bytes: what it is
columns    raw little-endian numbers, each in the narrowest type that holds it, from a
           multiple of 64 bytes on; texts as one run of UTF-8 and the end of each text
header     JSON: `Header`, with where every column lies and its CRC-32
footer     32 bytes: offset, length and CRC-32 of the header, and the end mark

The footer comes last, so a file whose writing was cut off has none.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any, Final, Protocol, TypeAlias, runtime_checkable

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    Numbers: TypeAlias = npt.NDArray[Any]

Table: TypeAlias = "Mapping[str, Any]"
"""Columns of equal length by name: numbers (any width), or a tuple of texts."""

VERSION: Final = 1
MAX_ROWS: Final = 1 << 32
_ALIGNMENT: Final = 64
_PREAMBLE: Final = b"MemBoard columns, a cache: delete it as you like\n".ljust(
    _ALIGNMENT, b"\0"
)
_END: Final = b"columns."
_FOOTER: Final = struct.Struct("<QQI4x8s")
_MAX_HEADER: Final = 4 << 20
_TYPES: Final = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "f8")
"""Of numbers, by rising width, so that the first that fits is the narrowest."""
_TEXT: Final = "text"
_TURN: Final = 1 << 18
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
    def is_float(self) -> bool:
        """Whether it holds floats."""

    def chunks(self) -> Iterator[Numbers]:
        """Its numbers, some at a time."""


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a column lies."""

    type: str
    """One of numpy's type codes, or `text`."""
    num_rows: int
    offset: int
    num_bytes: int
    crc: int
    ends: Column | None = None
    """Of texts: where each ends among the bytes."""


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole of a column file but for the numbers."""

    version: int
    meta: dict[str, Any]
    tables: dict[str, dict[str, Column]]


class ColumnTables(Mapping[str, Table]):
    """Tables whose numbers lie in a mapped file; held as long as any of them is used."""

    def __init__(
        self, tables: Mapping[str, Table], meta: Mapping[str, Any], num_bytes: int
    ) -> None:
        self.meta = meta
        """What was written with them: plain JSON data."""
        self.num_bytes = num_bytes
        """Of the file."""
        self._tables = tables

    def __getitem__(self, name: str) -> Table:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def write_columns(
    path: Path, tables: Mapping[str, Table], meta: Mapping[str, Any]
) -> None:
    """Write a column file that is there whole or not at all.

    Raises:
        OSError: it cannot be written; nothing is left behind.
        ValueError: a column is neither numbers nor texts.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            write_into(file, tables, meta)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_into(
    file: IO[bytes],
    tables: Mapping[str, Table],
    meta: Mapping[str, Any],
    *,
    as_they_are: bool = False,
) -> None:
    """Write a column file into an empty one.

    `as_they_are`: arrays keep their types, and are of that type again when they are
    mapped; else numbers become as narrow as they fit.

    Raises:
        OSError: it cannot be written.
        ValueError: a column is neither numbers nor texts.
    """
    out = _Out(file)
    out.append(_PREAMBLE)
    placed = {
        name: {
            key: _write_column(out, column, as_they_are)
            for key, column in table.items()
        }
        for name, table in tables.items()
    }
    header = msgspec.json.encode(Header(VERSION, dict(meta), placed))
    if len(header) > _MAX_HEADER:
        raise ValueError(f"the header would have {len(header)} bytes")
    at = out.at
    out.append(header)
    out.append(_FOOTER.pack(at, len(header), zlib.crc32(header), _END))
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
    try:
        tables = {
            name: {key: _column(data, column, end) for key, column in table.items()}
            for name, table in header.tables.items()
        }
    except UnicodeDecodeError as error:
        raise NotColumnsError("a text is not UTF-8") from error
    return ColumnTables(tables, header.meta, len(data))


class _Out:
    """A file and where it ends."""

    def __init__(self, file: IO[bytes]) -> None:
        self.at = 0
        self._file = file

    def append(self, data: Any) -> None:
        self._file.write(data)
        self.at += len(data)

    def align(self) -> None:
        self.append(b"\0" * (-self.at % _ALIGNMENT))


def _write_column(out: _Out, column: Any, as_it_is: bool = False) -> Column:
    if isinstance(column, tuple):
        return _write_texts(out, column)
    if isinstance(column, np.ndarray):
        if column.ndim != 1 or column.dtype.kind not in "iuf":
            raise ValueError(f"a column of type {column.dtype}, {column.ndim}-d")
        kind = column.dtype.str[1:] if as_it_is else _narrow_kind(column)
        if kind not in _TYPES:
            raise ValueError(f"a column of type {column.dtype}")
        starts = range(0, len(column), _TURN)
        return _write_numbers(
            out, kind, (column[start : start + _TURN] for start in starts)
        )
    if isinstance(column, ChunkedColumn):
        if column.is_float:
            return _write_numbers(out, "f8", column.chunks())
        bounds = column.bounds() if len(column) else (0, 0)
        return _write_numbers(out, _narrowest(*bounds), column.chunks())
    raise ValueError(f"a column cannot be a {type(column).__name__}")


def _write_numbers(out: _Out, kind: str, chunks: Iterator[Numbers]) -> Column:
    out.align()
    start, crc, num_rows = out.at, 0, 0
    for chunk in chunks:
        data = np.asarray(chunk, f"<{kind}").tobytes()
        crc = zlib.crc32(data, crc)
        out.append(data)
        num_rows += len(chunk)
    return Column(kind, num_rows, start, out.at - start, crc)


def _write_texts(out: _Out, texts: tuple[str, ...]) -> Column:
    encoded = [text.encode() for text in texts]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    ends = _write_column(out, np.cumsum(lengths))
    out.align()
    start, data = out.at, b"".join(encoded)
    out.append(data)
    return Column(_TEXT, len(texts), start, len(data), zlib.crc32(data), ends)


def _narrow_kind(column: Numbers) -> str:
    if column.dtype.kind == "f":
        return "f8"
    if not len(column):
        return _narrowest(0, 0)
    return _narrowest(int(column.min()), int(column.max()))


def _narrowest(least: int, most: int) -> str:
    for kind in _TYPES[:-2]:
        limits = np.iinfo(kind)
        if limits.min <= least and most <= limits.max:
            return kind
    return "i8"


def _header(data: mmap.mmap) -> tuple[Header, int]:
    """The header, and where the columns end."""
    footer_at = len(data) - _FOOTER.size
    if footer_at < _ALIGNMENT or data[:_ALIGNMENT] != _PREAMBLE:
        raise NotColumnsError("it is something else")
    offset, length, crc, end_mark = _FOOTER.unpack_from(data, footer_at)
    if end_mark != _END or length > _MAX_HEADER or offset + length != footer_at:
        raise NotColumnsError("its end is missing")
    encoded = data[offset : offset + length]
    if zlib.crc32(encoded) != crc:
        raise NotColumnsError("its header is damaged")
    try:
        header = msgspec.json.decode(encoded, type=Header)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise NotColumnsError(f"its header does not decode: {error}") from error
    if header.version != VERSION:
        raise NotColumnsError(f"it is of version {header.version}")
    return header, offset


def _column(data: mmap.mmap, column: Column, end: int) -> Any:
    if column.type == _TEXT:
        return _texts(data, column, end)
    if column.type not in _TYPES or column.ends is not None:
        raise NotColumnsError(f"a column of type {column.type!r}")
    width = int(column.type[1])
    if column.num_rows * width != column.num_bytes:
        raise NotColumnsError("a column's length is wrong")
    content = _content(data, column, end)
    numbers = np.frombuffer(content, f"<{column.type}")
    numbers.flags.writeable = False
    return numbers


def _content(data: mmap.mmap, column: Column, end: int) -> memoryview:
    stop = column.offset + column.num_bytes
    if (
        not 0 <= column.num_rows <= MAX_ROWS
        or column.offset % _ALIGNMENT
        or not _ALIGNMENT <= column.offset <= stop <= end
    ):
        raise NotColumnsError("a column lies outside")
    content = memoryview(data)[column.offset : stop]
    if zlib.crc32(content) != column.crc:
        raise NotColumnsError("a column is damaged")
    return content


def _texts(data: mmap.mmap, column: Column, end: int) -> tuple[str, ...]:
    if column.ends is None or column.ends.type == _TEXT:
        raise NotColumnsError("texts have no ends")
    ends = np.asarray(_column(data, column.ends, end), np.int64)
    starts = np.concatenate((np.zeros(1, np.int64), ends))[: len(ends)]
    if len(ends) != column.num_rows or (ends < starts).any():
        raise NotColumnsError("texts end before they begin")
    if column.num_bytes != (int(ends[-1]) if len(ends) else 0):
        raise NotColumnsError("texts are not as long as they say")
    content = bytes(_content(data, column, end))
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    return tuple(content[start:stop].decode() for start, stop in pairs)
