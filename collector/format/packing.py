"""Bytes rearranged so that they deflate well, and inflated within bounds."""

from __future__ import annotations

import zlib

import numpy as np

from collector.format.errors import CorruptError


def shuffle(raw: bytes, width: int) -> bytes:
    """All first bytes, then all second bytes ...: equal high bytes meet and deflate."""
    if width == 1 or not raw:
        return raw
    shuffled: bytes = np.frombuffer(raw, np.uint8).reshape(-1, width).T.tobytes()
    return shuffled


def unshuffle(raw: bytes | memoryview, width: int) -> bytes:
    """The inverse of `shuffle`; ValueError where the bytes do not divide by `width`."""
    if width == 1 or not len(raw):
        return bytes(raw)
    plain: bytes = np.frombuffer(raw, np.uint8).reshape(width, -1).T.tobytes()
    return plain


def inflate(packed: bytes | memoryview, limit: int) -> bytes:
    """Inflate at most `limit` bytes: a deflate bomb is an error, not an allocation."""
    inflater = zlib.decompressobj()
    data = inflater.decompress(packed, limit + 1)
    if len(data) > limit or not inflater.eof:
        raise CorruptError("deflated data is longer than its header says, or cut off")
    return data
