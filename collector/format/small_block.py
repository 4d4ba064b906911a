"""Blocks of up to three rows, which is what slow steps leave in a chunk.

A directory entry per column would outweigh so few values. Here all integers lie
together, each column's first value and then what is added to it from row to row, and
behind them all floats; byte-shuffled and deflated as one::

    u8 kind of each column | i64 first values | i64 zigzag differences | f4 | f8

Differences wrap around, so that every value comes back, `ABSENT` included.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from collector.format.errors import CorruptError
from collector.format.packing import inflate, shuffle, unshuffle

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.format.columns import Dtype
    from collector.format.numeric import Values

MAX_ROWS: Final = 3

_KINDS: Final[tuple[Dtype, ...]] = ("i8", "f4", "f8")
_FLOATS: Final = ((1, "<f4", 4), (2, "<f8", 8))
"""Kind, type on disk and its bytes."""


def encode_rows(columns: Sequence[Values], dtypes: Sequence[Dtype]) -> bytes:
    """Encode 1 to `MAX_ROWS` rows."""
    kinds = bytes(map(_KINDS.index, dtypes))
    parts = [kinds]
    ints = [v for v, kind in zip(columns, kinds, strict=True) if kind == 0]
    if ints:
        held = np.array(ints, "<i8")
        added = held[:, 1:] - held[:, :-1]
        parts.append(shuffle(held[:, 0].tobytes(), 8))
        parts.append(shuffle(((added << 1) ^ (added >> 63)).tobytes(), 8))
    for number, stored, width in _FLOATS:
        floats = [v for v, kind in zip(columns, kinds, strict=True) if kind == number]
        parts.append(shuffle(np.array(floats, stored).tobytes(), width))
    return zlib.compress(b"".join(parts), 9)


def decode_rows(
    body: bytes | memoryview,
    num_rows: int,
    num_columns: int,
    wanted: Iterable[int] | None,
) -> list[Values]:
    """Decode what `encode_rows` made: the columns at `wanted`, or all.

    Raises:
        CorruptError, ValueError, IndexError, zlib.error: it is none.
    """
    if not 1 <= num_rows <= MAX_ROWS:
        raise CorruptError(f"a block of few rows claims {num_rows}")
    data = inflate(body, num_columns * (1 + 8 * num_rows))
    kinds, at = data[:num_columns], num_columns
    num_ints = kinds.count(0)
    first = np.frombuffer(unshuffle(data[at : at + 8 * num_ints], 8), "<i8")
    at += 8 * num_ints
    size = 8 * num_ints * (num_rows - 1)
    added = np.frombuffer(unshuffle(data[at : at + size], 8), "<u8")
    at += size
    added = (added >> np.uint64(1)) ^ (np.uint64(0) - (added & np.uint64(1)))
    ints = np.empty((num_ints, num_rows), np.int64)
    ints[:, 0] = first
    ints[:, 1:] = added.view(np.int64).reshape(num_ints, num_rows - 1)
    tables: list[Any] = [np.cumsum(ints, axis=1)]
    for number, stored, width in _FLOATS:
        size = width * kinds.count(number) * num_rows
        floats = np.frombuffer(unshuffle(data[at : at + size], width), stored)
        tables.append(floats.astype(np.float64).reshape(-1, num_rows))
        at += size
    if at != len(data) or any(kind >= len(_KINDS) for kind in kinds):
        raise CorruptError("a block of few rows has the wrong length")
    return [
        tables[kinds[index]][kinds[:index].count(kinds[index])]
        for index in (range(num_columns) if wanted is None else wanted)
    ]
