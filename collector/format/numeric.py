"""Columns of numbers to few bytes and back, without loss.

Each column is coded alone, so that one column of a big chunk is read without the
others. Integers are stored relative to a base in the narrowest of 0, 1, 2, 4 or 8
bytes, either as they are (frame of reference) or as differences (counters, clocks),
whichever is narrower; float32 columns as float32, float64 as float64. Values wider
than a byte are byte-shuffled, then deflated at level 1 where that helps: measured, this
equals zstd at a fraction of the dependency.

A block (`encode_block`) is a set of equal-length columns::

    u32 num_rows | u16 num_columns | u8 flags | u8 0 | u32 directory_bytes | directory
    | data

Small blocks are deflated whole (flag 1), because the directory would outweigh them;
those of up to three rows have none (flag 2, see `small_block`). The directory holds,
column-major: u8 coding, u8 width, u32 stored bytes, i64 base, i64 step. A column equal
to one before it is stored as that one's index (as its base): a rollup whose buckets
hold one row each has the same maximum, minimum and mean.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from collector.format.errors import CorruptError
from collector.format.packing import inflate, shuffle, unshuffle
from collector.format.small_block import MAX_ROWS as FEW_ROWS
from collector.format.small_block import decode_rows, encode_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.format.columns import Dtype

Values: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.float64]

ABSENT: Final = -(2**63)
"""Stands in int64 columns where nothing was recorded. Absence is not zero."""

MAX_ROWS: Final = 1 << 24
"""More rows than any chunk or rollup holds: a claim above it is corrupt."""

_HEAD: Final = struct.Struct("<IHBxI")
_WHOLE: Final = 1
_FEW: Final = 2
_ENTRY_BYTES: Final = 1 + 1 + 4 + 8 + 8
_WHOLE_BELOW_ROWS: Final = 48

# Codings. The high bit says that the stored bytes are deflated.
_ALL_ABSENT: Final = 0
_INTS: Final = 1
_INTS_WITH_ABSENT: Final = 2
_DELTAS: Final = 3
_FLOAT64: Final = 4
_FLOAT32: Final = 5
_SAME: Final = 6
_DEFLATED: Final = 0x80

_UNSIGNED: Final[dict[int, np.dtype[np.unsignedinteger[Any]]]] = {
    1: np.dtype("<u1"),
    2: np.dtype("<u2"),
    4: np.dtype("<u4"),
    8: np.dtype("<u8"),
}


def encode_block(columns: Sequence[Values], dtypes: Sequence[Dtype]) -> bytes:
    """Encode equal-length columns; `dtypes` says how floats are to be stored."""
    num_rows = len(columns[0]) if columns else 0
    if 1 <= num_rows <= FEW_ROWS:
        head = _HEAD.pack(num_rows, len(columns), _FEW, 0)
        return head + encode_rows(columns, dtypes)
    codings, widths, bases, steps, payloads = [], [], [], [], []
    whole = num_rows < _WHOLE_BELOW_ROWS
    seen: dict[tuple[str, bytes], int] = {}
    for index, (values, dtype) in enumerate(zip(columns, dtypes, strict=True)):
        twin = seen.setdefault((dtype, values.tobytes()), index)
        if twin != index:
            coding, width, base, step, payload = _SAME, 0, twin, 0, b""
        else:
            coding, width, base, step, payload = _encode_column(values, dtype)
        if not whole and payload:
            packed = zlib.compress(payload, 1)
            if len(packed) < len(payload):
                coding, payload = coding | _DEFLATED, packed
        codings.append(coding)
        widths.append(width)
        bases.append(base)
        steps.append(step)
        payloads.append(payload)
    directory = b"".join(
        (
            bytes(codings),
            bytes(widths),
            shuffle(np.array([len(p) for p in payloads], "<u4").tobytes(), 4),
            shuffle(np.array(bases, "<i8").tobytes(), 8),
            shuffle(np.array(steps, "<i8").tobytes(), 8),
        )
    )
    data = b"".join(payloads)
    if whole:
        body = zlib.compress(directory + data, 6)
        return _HEAD.pack(num_rows, len(columns), _WHOLE, len(directory)) + body
    packed_directory = zlib.compress(directory, 6)
    head = _HEAD.pack(num_rows, len(columns), 0, len(packed_directory))
    return head + packed_directory + data


def block_num_rows(block: bytes | memoryview) -> int:
    """Rows of an encoded block, without decoding it."""
    return _head(block)[0]


def decode_block(
    block: bytes | memoryview, wanted: Iterable[int] | None = None
) -> list[Values]:
    """Decode a block: the columns whose indices are in `wanted`, or all of them.

    Raises:
        CorruptError: the bytes are not a block.
    """
    num_rows, num_columns, flags, directory_bytes = _head(block)
    if num_rows > MAX_ROWS:
        raise CorruptError(f"a block claims {num_rows} rows")
    try:
        if flags & _FEW:
            return decode_rows(block[_HEAD.size :], num_rows, num_columns, wanted)
        if flags & _WHOLE:
            # A column of n rows is at most 8n bytes: anything longer is a bomb.
            limit = num_columns * (_ENTRY_BYTES + 8 * num_rows) + 64
            body = memoryview(inflate(block[_HEAD.size :], limit))
            directory, data = body[:directory_bytes], body[directory_bytes:]
        else:
            end = _HEAD.size + directory_bytes
            packed = block[_HEAD.size : end]
            directory = memoryview(inflate(packed, num_columns * _ENTRY_BYTES))
            data = memoryview(block)[end:]
        return _decode_columns(directory, data, num_rows, num_columns, wanted)
    except (zlib.error, struct.error, ValueError, IndexError, KeyError) as error:
        raise CorruptError(f"a block of columns does not decode: {error}") from error


def _head(block: bytes | memoryview) -> tuple[int, int, int, int]:
    if len(block) < _HEAD.size:
        raise CorruptError(f"a block of columns has only {len(block)} bytes")
    num_rows, num_columns, flags, directory_bytes = _HEAD.unpack_from(block)
    return num_rows, num_columns, flags, directory_bytes


def _decode_columns(
    directory: memoryview,
    data: memoryview,
    num_rows: int,
    num_columns: int,
    wanted: Iterable[int] | None,
) -> list[Values]:
    if len(directory) != num_columns * _ENTRY_BYTES:
        raise CorruptError("the directory of a block has the wrong length")
    n = num_columns
    codings, widths = directory[:n], directory[n : 2 * n]
    sizes = np.frombuffer(unshuffle(directory[2 * n : 6 * n], 4), "<u4")
    bases = np.frombuffer(unshuffle(directory[6 * n : 14 * n], 8), "<i8")
    steps = np.frombuffer(unshuffle(directory[14 * n :], 8), "<i8")
    ends = np.cumsum(sizes, dtype=np.int64)
    if num_columns and int(ends[-1]) > len(data):
        raise CorruptError("the columns of a block are cut off")
    decoded = []
    for index in range(n) if wanted is None else wanted:
        if codings[index] == _SAME:
            index = _twin(int(bases[index]), index, codings)  # noqa: PLW2901
        end = int(ends[index])
        stored = data[end - int(sizes[index]) : end]
        coding, width = codings[index], widths[index]
        if coding & _DEFLATED:
            stored = memoryview(inflate(stored, num_rows * 8))
            coding &= ~_DEFLATED
        base, step = int(bases[index]), int(steps[index])
        decoded.append(_decode_column(coding, width, base, step, stored, num_rows))
    return decoded


def _twin(of: int, index: int, codings: memoryview) -> int:
    if not 0 <= of < index or codings[of] == _SAME:
        raise CorruptError(f"a column claims to be the same as column {of}")
    return of


def _encode_column(values: Values, dtype: Dtype) -> tuple[int, int, int, int, bytes]:
    """(coding, width, base, step, bytes)."""
    if dtype == "f4":
        raw = np.asarray(values, "<f4").tobytes()
        return _FLOAT32, 4, 0, 0, shuffle(raw, 4)
    if dtype == "f8":
        raw = np.asarray(values, "<f8").tobytes()
        return _FLOAT64, 8, 0, 0, shuffle(raw, 8)
    ints = np.asarray(values, np.int64)
    absent = ints == ABSENT
    if absent.any():
        if absent.all():
            return _ALL_ABSENT, 0, 0, 0, b""
        present = ints[~absent]
        low, high = int(present.min()), int(present.max())
        # Zero means absent, so the codes of present values start at one.
        if high - low + 1 < 2**64:
            codes = np.where(absent, 0, ints.view(np.uint64) - np.uint64(low % 2**64))
            codes[~absent] += np.uint64(1)
            width = _width(high - low + 1)
            return _INTS_WITH_ABSENT, width, low, 0, _pack(codes, width)
        raise ValueError("integers of more than 63 bits cannot be stored with gaps")
    if len(ints) == 0:
        return _INTS, 0, 0, 0, b""
    low, high = int(ints.min()), int(ints.max())
    width = _width(high - low)
    if width > 1 and len(ints) > 2 and high - low < 2**63:  # no difference wraps
        deltas = np.diff(ints)
        least, most = int(deltas.min()), int(deltas.max())
        if _width(most - least) < width:
            narrow = _width(most - least)
            codes = deltas.view(np.uint64) - np.uint64(least % 2**64)
            return _DELTAS, narrow, int(ints[0]), least, _pack(codes, narrow)
    codes = ints.view(np.uint64) - np.uint64(low % 2**64)
    return _INTS, width, low, 0, _pack(codes, width)


def _decode_column(
    coding: int, width: int, base: int, step: int, stored: memoryview, num_rows: int
) -> Values:
    if coding == _ALL_ABSENT:
        return np.full(num_rows, ABSENT, np.int64)
    if coding in (_FLOAT32, _FLOAT64):
        dtype = "<f4" if coding == _FLOAT32 else "<f8"
        raw = unshuffle(stored, 4 if coding == _FLOAT32 else 8)
        floats = np.frombuffer(raw, dtype).astype(np.float64)
        return _checked(floats, num_rows)
    if coding == _INTS:
        codes = _unpack(stored, width, num_rows)
        return _checked((codes + np.uint64(base % 2**64)).view(np.int64), num_rows)
    if coding == _INTS_WITH_ABSENT:
        codes = _unpack(stored, width, num_rows)
        ints = (codes + np.uint64((base - 1) % 2**64)).view(np.int64)
        ints[codes == 0] = ABSENT
        return _checked(ints, num_rows)
    if coding == _DELTAS:
        codes = _unpack(stored, width, num_rows - 1)
        deltas = codes + np.uint64(step % 2**64)
        ints = np.empty(num_rows, np.uint64)
        ints[0] = np.uint64(base % 2**64)
        np.cumsum(deltas, out=ints[1:])
        ints[1:] += ints[0]
        return _checked(ints.view(np.int64), num_rows)
    raise CorruptError(f"column coding {coding} is not known")


def _checked(values: Values, num_rows: int) -> Values:
    if len(values) != num_rows:
        raise CorruptError(f"a column has {len(values)} values, expected {num_rows}")
    return values


def _width(spread: int) -> int:
    """Bytes needed for 0..spread; 0 where all values are equal."""
    if spread == 0:
        return 0
    if spread < 1 << 8:
        return 1
    if spread < 1 << 16:
        return 2
    return 4 if spread < 1 << 32 else 8


def _pack(codes: npt.NDArray[np.uint64], width: int) -> bytes:
    if width == 0:
        return b""
    return shuffle(codes.astype(_UNSIGNED[width]).tobytes(), width)


def _unpack(stored: memoryview, width: int, num_rows: int) -> npt.NDArray[np.uint64]:
    if width == 0:
        return np.zeros(max(num_rows, 0), np.uint64)
    raw = unshuffle(stored, width)
    return np.frombuffer(raw, _UNSIGNED[width]).astype(np.uint64)
