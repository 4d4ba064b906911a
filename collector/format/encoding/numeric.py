"""Columns of numbers to few bytes and back, without loss.

A column becomes 64-bit integers (floats: their bits), these the differences from row to
row, and these are byte-shuffled, so that equal high bytes meet, and deflated. A block is
a set of equal-length columns, some of them deflated together, so that few columns of a
long table are read without the others, and the columns of a short one share one stream::

    block  u32 num_rows | u16 num_columns | groups
    group  u32 bytes | deflated: u8 type of each column | u8 width of differences
           | first values, all first bytes, then all second bytes ... | differences, too
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from collector.format.encoding.payload import inflate
from collector.format.errors import CorruptError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.format.columns import Dtype

Values: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.float64]

ABSENT: Final = -(2**63)
"""Stands in int64 columns where nothing was recorded. Absence is not zero."""

MAX_ROWS: Final = 1 << 24
"""More rows than any chunk or rollup holds: a claim above it is corrupt."""

_HEAD: Final = struct.Struct("<IH")
_LENGTH: Final = struct.Struct("<I")
_GROUP_BYTES: Final = 1 << 15
"""Of columns in memory: what is inflated at least to read one."""
_WIDTHS: Final = (0, 1, 2, 4, 8)
"""Bytes of a difference: those of numbers. What is too wide deflates to nothing."""
_DTYPES: Final[tuple[Dtype, ...]] = ("i8", "f4", "f8")


def encode_block(columns: Sequence[Values], dtypes: Sequence[Dtype]) -> bytes:
    """Encode equal-length columns; `dtypes` says how floats are to be stored."""
    num_rows = len(columns[0]) if columns else 0
    width = _columns_per_group(num_rows)
    parts = [_HEAD.pack(num_rows, len(columns))]
    for at in range(0, len(columns), width):
        group = _encode_group(columns[at : at + width], dtypes[at : at + width])
        parts += [_LENGTH.pack(len(group)), group]
    return b"".join(parts)


def block_num_rows(block: bytes | memoryview) -> int:
    """Rows of an encoded block, without decoding it.

    Raises:
        CorruptError: the bytes are not a block.
    """
    if len(block) < _HEAD.size:
        raise CorruptError(f"a block of columns has only {len(block)} bytes")
    num_rows = int(_HEAD.unpack_from(block)[0])
    if num_rows > MAX_ROWS:
        raise CorruptError(f"a block claims {num_rows} rows")
    return num_rows


def decode_block(
    block: bytes | memoryview, wanted: Iterable[int] | None = None
) -> list[Values]:
    """Decode a block: the columns whose indices are in `wanted`, or all of them.

    Raises:
        CorruptError: the bytes are not a block, or it lacks a column.
    """
    num_rows = block_num_rows(block)
    num_columns = int(_HEAD.unpack_from(block)[1])
    indices = list(range(num_columns) if wanted is None else wanted)
    if indices and not 0 <= min(indices) <= max(indices) < num_columns:
        raise CorruptError(f"a block of {num_columns} columns lacks one")
    width = _columns_per_group(num_rows)
    view, at = memoryview(block), _HEAD.size
    decoded: dict[int, Values] = {}
    for first in range(0, max(indices, default=-1) + 1, width):
        if at + _LENGTH.size > len(view):
            raise CorruptError("the columns of a block are cut off")
        (size,) = _LENGTH.unpack_from(view, at)
        at += _LENGTH.size
        count = min(width, num_columns - first)
        mine = [index for index in indices if first <= index < first + count]
        if mine:
            places = [index - first for index in mine]
            found = _decode_group(view[at : at + size], num_rows, count, places)
            decoded.update(zip(mine, found, strict=True))
        at += size
    return [decoded[index] for index in indices]


def _columns_per_group(num_rows: int) -> int:
    return max(1, _GROUP_BYTES // (8 * max(1, num_rows)))


def _encode_group(columns: Sequence[Values], dtypes: Sequence[Dtype]) -> bytes:
    values = np.stack(
        [_as_integers(v, dtype) for v, dtype in zip(columns, dtypes, strict=True)]
    )
    values[:, 1:] -= values[:, :-1].copy()  # wraps around, as the sum will
    codes = ((values << 1) ^ (values >> 63)).view(np.uint64)  # small if near zero
    differences = codes[:, 1:]
    highest = int(differences.max(initial=0)).bit_length()
    width = next(one for one in _WIDTHS if highest <= 8 * one)
    raw = b"".join(
        (
            bytes(map(_DTYPES.index, dtypes)),
            bytes([width]),
            _shuffled(codes[:, :1], 8),
            _shuffled(differences, width),
        )
    )
    return zlib.compress(raw, 6 if len(raw) <= _GROUP_BYTES else 1)


def _decode_group(
    packed: memoryview, num_rows: int, num_columns: int, places: list[int]
) -> list[Values]:
    """The columns of a group at some places."""
    raw = inflate(packed, num_columns * (1 + 8 * num_rows) + 1)
    dtypes, at = raw[:num_columns], num_columns + 1
    width = raw[num_columns] if len(raw) > num_columns else 9
    num_rest = max(0, num_rows - 1)
    middle = at + 8 * num_columns * (num_rows - num_rest)
    end = middle + width * num_columns * num_rest
    if (
        width not in _WIDTHS
        or end != len(raw)
        or any(d >= len(_DTYPES) for d in dtypes)
    ):
        raise CorruptError("the columns of a block have the wrong length or type")
    if not num_rows:
        codes_of_none = np.empty((len(places), 0), np.int64)
        return [_as_values(codes_of_none[0], dtypes[p]) for p in places]
    first = np.frombuffer(raw, np.uint8, middle - at, at).reshape(8, num_columns)
    rest = np.frombuffer(raw, np.uint8, end - middle, middle)
    rest = rest.reshape(width, num_columns, num_rest)
    codes = np.zeros((len(places), num_rows), np.uint64)
    codes[:, :1] = np.ascontiguousarray(first[:, places].T).view(np.uint64)
    if width and num_rest:
        as_bytes = np.empty((len(places), num_rest, width), np.uint8)
        for place, bytes_of_all in enumerate(rest[:, places]):
            as_bytes[:, :, place] = bytes_of_all
        codes[:, 1:] = as_bytes.view(f"<u{width}")[:, :, 0]
    values = codes.view(np.int64)
    is_negative = values & 1
    codes >>= np.uint64(1)
    values ^= np.negative(is_negative, out=is_negative)
    np.cumsum(values, axis=1, out=values)
    # Columns that were decoded together need not be kept together.
    rows = [row.copy() for row in values] if len(values) > 1 else values
    return [_as_values(row, dtypes[p]) for row, p in zip(rows, places, strict=True)]


def _as_integers(values: Values, dtype: Dtype) -> npt.NDArray[np.int64]:
    if dtype == "f4":
        return np.asarray(values, "<f4").view("<i4").astype(np.int64)
    if dtype == "f8":
        return np.asarray(values, "<f8").view(np.int64)
    return np.asarray(values, np.int64)


def _as_values(integers: npt.NDArray[np.int64], dtype: int) -> Values:
    if _DTYPES[dtype] == "f4":
        return integers.astype("<i4").view("<f4").astype(np.float64)
    return integers.view(np.float64) if _DTYPES[dtype] == "f8" else integers


def _shuffled(codes: Any, width: int) -> bytes:
    """All lowest bytes, then all second bytes ..., as many as are not all zero."""
    as_bytes = np.ascontiguousarray(codes).view(np.uint8).reshape(-1, 8)
    shuffled: bytes = as_bytes[:, :width].T.tobytes()
    return shuffled
