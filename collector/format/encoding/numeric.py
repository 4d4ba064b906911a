"""Columns of numbers to few bytes and back, without loss.

A column becomes 64-bit integers (floats: their bits), these the differences from row to
row, or in long columns what they lie above the lowest, whichever deflates better, and
these are byte-shuffled, so that equal high bytes meet, and deflated. A block is a set of
equal-length columns, some of them deflated together, so that few columns of a long table
are read without the others, and the columns of a short one share one stream::

    block  u32 num_rows | u16 num_columns | groups
    group  u32 bytes | deflated: u8 type of each column | u8 bytes of a code, and `_ABOVE`
           | first or lowest values, all first bytes, then all second bytes ...
           | codes of the differences, or of all values, too
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from memboard.collector.format.encoding.payload import inflate
from memboard.collector.format.errors import CorruptError
from memboard.collector.format.sizes import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memboard.collector.format.columns import Dtype

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
"""Bytes of a code: those of numbers. What is too wide deflates to nothing."""
_ABOVE: Final = 0x80
"""With the width: codes are what values lie above the lowest."""
_MANY_ROWS: Final = 4096
"""Rows beyond which encodings are tried on eight samples of `_SAMPLE` rows."""
_SAMPLE: Final = 512
_DTYPES: Final[tuple[Dtype, ...]] = ("i8", "f4", "f8")


def encode_block(columns: Sequence[Values], dtypes: Sequence[Dtype]) -> bytes:
    """Encode equal-length columns; `dtypes` says how floats are to be stored."""
    num_rows = len(columns[0]) if columns else 0
    width = _columns_per_group(num_rows)
    parts = [_HEAD.pack(num_rows, len(columns))]
    for first in range(0, len(columns), width):
        group = _encode_group(
            columns[first : first + width], dtypes[first : first + width]
        )
        parts += [_LENGTH.pack(len(group)), group]
    return b"".join(parts)


def block_num_rows(block: bytes | memoryview) -> int:
    """Rows of an encoded block, without decoding it.

    Raises:
        CorruptError: the bytes are not a block.
    """
    if len(block) < _HEAD.size:
        raise CorruptError(f"a block of columns has only {counted(len(block), 'byte')}")
    num_rows = int(_HEAD.unpack_from(block)[0])
    if num_rows > MAX_ROWS:
        raise CorruptError(f"a block claims {counted(num_rows, 'row')}")
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
        raise CorruptError(f"a block of {counted(num_columns, 'column')} lacks one")
    width = _columns_per_group(num_rows)
    view, position = memoryview(block), _HEAD.size
    decoded: dict[int, Values] = {}
    for first in range(0, max(indices, default=-1) + 1, width):
        if position + _LENGTH.size > len(view):
            raise CorruptError("the columns of a block are cut off")
        (size,) = _LENGTH.unpack_from(view, position)
        position += _LENGTH.size
        count = min(width, num_columns - first)
        mine = [index for index in indices if first <= index < first + count]
        if mine:
            places = [index - first for index in mine]
            group_values = _decode_group(
                view[position : position + size], num_rows, count, places
            )
            decoded.update(zip(mine, group_values, strict=True))
        position += size
    return [decoded[index] for index in indices]


def _columns_per_group(num_rows: int) -> int:
    return max(1, _GROUP_BYTES // (8 * max(1, num_rows)))


def _encode_group(columns: Sequence[Values], dtypes: Sequence[Dtype]) -> bytes:
    values = np.stack(
        [_as_integers(v, dtype) for v, dtype in zip(columns, dtypes, strict=True)]
    )
    bases = values[:, :1]
    steps = values[:, 1:] - values[:, :-1]  # wraps around, as the sum will
    codes = ((steps << 1) ^ (steps >> 63)).view(np.uint64)  # small if near zero
    how = 0
    if values.shape[1] >= _MANY_ROWS:
        lowest = values.min(axis=1, keepdims=True)
        above = (values - lowest).view(np.uint64)
        if len(_deflated_sample(above)) <= len(_deflated_sample(codes)):
            bases, codes, how = lowest, above, _ABOVE
    width = _width(codes)
    raw = b"".join(
        (
            bytes(map(_DTYPES.index, dtypes)),
            bytes([width | how]),
            _shuffled(bases, 8),
            _shuffled(codes, width),
        )
    )
    return zlib.compress(raw, 6 if len(raw) <= _GROUP_BYTES else 1)


def _width(codes: npt.NDArray[np.uint64]) -> int:
    bits = int(codes.max(initial=0)).bit_length()
    return next(width for width in _WIDTHS if bits <= 8 * width)


def _deflated_sample(codes: npt.NDArray[np.uint64]) -> bytes:
    apart = codes.shape[1] // 8
    rows = [codes[:, index * apart : index * apart + _SAMPLE] for index in range(8)]
    sample = np.concatenate(rows, axis=1)
    return zlib.compress(_shuffled(sample, _width(sample)), 1)


def _decode_group(
    packed: memoryview, num_rows: int, num_columns: int, places: list[int]
) -> list[Values]:
    """The columns of a group at some places."""
    raw = inflate(packed, num_columns * (9 + 8 * num_rows) + 1)
    dtypes, start = raw[:num_columns], num_columns + 1
    coding = raw[num_columns] if len(raw) > num_columns else 0
    width, is_above = coding & ~_ABOVE, coding & _ABOVE
    num_codes = num_rows if is_above else max(0, num_rows - 1)
    middle = start + (8 * num_columns if num_rows else 0)
    end = middle + width * num_columns * num_codes
    if width not in _WIDTHS or end != len(raw) or max(dtypes) >= len(_DTYPES):
        raise CorruptError("the columns of a block have the wrong length or type")
    # All columns from the first to the last of these: much faster than one by one.
    low, high = min(places), max(places) + 1
    values = np.zeros((high - low, num_rows), np.int64)
    if num_rows:
        planes = np.frombuffer(raw, np.uint8)
        firsts = planes[start:middle].reshape(8, num_columns)[:, low:high].T
        bases = np.ascontiguousarray(firsts).view(np.int64)
        shuffled = planes[middle:end].reshape(width, num_columns, num_codes)
        codes = _unshuffled(shuffled[:, low:high])
        if is_above:
            values[...] = codes
            values += bases
        else:
            values[:, :1] = bases
            values[:, 1:] = _signed(codes)
            np.add.accumulate(values, axis=1, out=values)
    # Columns that were decoded together need not be kept together.
    is_apart = len(values) > 1
    rows = [values[p - low].copy() if is_apart else values[0] for p in places]
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


def _unshuffled(shuffled: npt.NDArray[np.uint8]) -> Any:
    """Unsigned integers of as many bytes as there are planes; what `_shuffled` had."""
    width = len(shuffled)
    if not width:
        return np.zeros(shuffled.shape[1:], np.uint8)
    as_bytes = np.empty((*shuffled.shape[1:], width), np.uint8)
    for place, plane in enumerate(shuffled):
        as_bytes[:, :, place] = plane
    return as_bytes.view(f"<u{width}")[:, :, 0]


def _signed(codes: Any) -> Any:
    """0, -1, 1, -2 ... of 0, 1, 2, 3 ..., as wide as these."""
    halves = codes >> 1
    halves ^= np.negative(codes & 1)
    return halves.view(f"<i{codes.itemsize}")
