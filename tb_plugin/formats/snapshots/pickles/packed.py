"""Long columns of numbers in little memory, while a file is read.

Neighbours are alike: times rise slowly, addresses share their upper bytes, most rows have
the same stream. So every few thousand numbers are kept as their smallest, and the rest as
differences from it, in as few bytes as the largest of them needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    Numbers = npt.NDArray[Any]

_CHUNK: Final = 1 << 14
"""Fewer are not packed yet, more are packed in pieces."""
_WRAP: Final = 1 << 64


class _Chunk(NamedTuple):
    length: int
    least: int
    """As 64 bits without sign."""
    shift: int
    """Bits that all differences have at zero."""
    rest: Numbers | None
    """Differences; None where there are none."""


class PackedNumbers:
    """Numbers of 64 bits, integers or floats, that only grow."""

    def __init__(self, *, is_float: bool = False) -> None:
        self._is_float = is_float
        self._chunks: list[_Chunk | Numbers] = []
        self._loose: list[Numbers] = []
        self._num_loose = 0
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def is_float(self) -> bool:
        return self._is_float

    def append(self, numbers: Numbers) -> None:
        """Add some at the end."""
        self._length += len(numbers)
        self._num_loose += len(numbers)
        self._loose.append(numbers)
        if self._num_loose >= _CHUNK:
            self._pack()

    def pad(self, number: float, count: int) -> None:
        """Add the same number so many times."""
        self._pack()
        self._length += count
        if not count:
            return
        if self._is_float:
            self._chunks.append(np.broadcast_to(np.float64(number), count))
        else:
            self._chunks.append(_Chunk(count, int(number) % _WRAP, 0, None))

    def chunks(self) -> Iterator[Numbers]:
        """All of them, some at a time."""
        self._pack()
        for chunk in self._chunks:
            if not isinstance(chunk, _Chunk):
                yield chunk
            elif chunk.length > _CHUNK and chunk.rest is None:  # padding
                for start in range(0, chunk.length, _CHUNK):
                    length = min(_CHUNK, chunk.length - start)
                    yield _unpacked(chunk._replace(length=length))
            else:
                yield _unpacked(chunk)

    def rows(self, spans: Sequence[tuple[int, int]]) -> Iterator[Numbers]:
        """Those of some spans of rows, one span after the other."""
        for start, stop in spans:
            first = 0
            for chunk in self.chunks():
                if first >= stop:
                    break
                part = chunk[max(0, start - first) : stop - first]
                first += len(chunk)
                if len(part):
                    yield part

    def _pack(self) -> None:
        if not self._loose:
            return
        numbers = np.concatenate(self._loose)
        self._loose, self._num_loose = [], 0
        if self._is_float:
            self._chunks.append(numbers)
            return
        for start in range(0, len(numbers), _CHUNK):
            self._chunks.append(_packed(numbers[start : start + _CHUNK]))


def _packed(numbers: Numbers) -> _Chunk:
    least, most = int(numbers.min()), int(numbers.max())
    if least == most:
        return _Chunk(len(numbers), least % _WRAP, 0, None)
    base = np.uint64(least % _WRAP)
    rest = numbers.view(np.uint64) - base
    bits = int(np.bitwise_or.reduce(rest))
    shift = (bits & -bits).bit_length() - 1
    width = next(w for w in (8, 16, 32, 64) if (most - least) >> shift < 1 << w)
    if shift:
        rest >>= np.uint64(shift)
    return _Chunk(len(numbers), int(base), shift, rest.astype(f"u{width // 8}"))


def _unpacked(chunk: _Chunk) -> Numbers:
    base = np.uint64(chunk.least)
    if chunk.rest is None:
        return np.full(chunk.length, base).view(np.int64)
    numbers = chunk.rest.astype(np.uint64)
    if chunk.shift:
        numbers <<= np.uint64(chunk.shift)
    numbers += base
    return numbers.view(np.int64)
