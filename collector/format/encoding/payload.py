"""Payloads of records: a head as JSON, and blocks of bytes behind it.

::

    u32 bytes of the head, the highest bit set where it is deflated | head | blocks

Heads are msgspec structs: fields that a newer MemBoard added are ignored, a field that
is missing or of another type makes the payload corrupt.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from memboard.collector.format.errors import CorruptError
from memboard.collector.format.sizes import counted

if TYPE_CHECKING:
    T = TypeVar("T")

Int = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**62)]
Text = Annotated[str, Meta(max_length=10_000)]

MAX_HEAD_BYTES: Final = 1 << 26
_LENGTH: Final = struct.Struct("<I")
_DEFLATED: Final = 1 << 31
_DEFLATED_FROM: Final = 256
"""Bytes; a shorter head hardly gets smaller."""


def pack(head: Any, *blocks: bytes | memoryview) -> bytes:
    """A payload of any msgspec struct, or of plain data, and blocks.

    Raises:
        ValueError: the head is larger than one may be.
    """
    text = to_json(head)
    if len(text) > MAX_HEAD_BYTES:
        raise ValueError(f"a record's head is larger than {MAX_HEAD_BYTES} bytes")
    flag = 0
    if len(text) >= _DEFLATED_FROM:
        text, flag = zlib.compress(text, 6), _DEFLATED
    return b"".join((_LENGTH.pack(flag | len(text)), text, *blocks))


def unpack(payload: bytes | memoryview, head: type[T]) -> tuple[T, memoryview]:
    """The head of a payload, and its blocks end to end.

    Raises:
        CorruptError: the payload has no such head.
    """
    view = memoryview(payload)
    if len(view) < _LENGTH.size:
        raise CorruptError(f"a record has only {counted(len(view), 'byte')}")
    (length,) = _LENGTH.unpack_from(view)
    end = _LENGTH.size + (length & ~_DEFLATED)
    text: bytes | memoryview = view[_LENGTH.size : end]
    if length & _DEFLATED:
        text = inflate(text, MAX_HEAD_BYTES)
    return from_json(text, head), view[end:]


def cut(blocks: memoryview, sizes: list[int]) -> list[memoryview]:
    """Blocks by their sizes.

    Raises:
        CorruptError: there are fewer bytes.
    """
    pieces, position = [], 0
    for size in sizes:
        pieces.append(blocks[position : position + size])
        position += size
    if position > len(blocks):
        raise CorruptError("a record names blocks that it does not hold")
    return pieces


def to_json(data: Any) -> bytes:
    """JSON of structs and plain data: what is not finite as null, other things as text."""
    try:
        return msgspec.json.encode(data, enc_hook=_plain)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(data, enc_hook=_plain, str_keys=True)
        return msgspec.json.encode(_encodable(plain))


def from_json(text: bytes | memoryview, wanted: type[T]) -> T:
    """The struct, or list of structs, that a text holds.

    Raises:
        CorruptError: it holds none.
    """
    try:
        value: T = _decoder(wanted).decode(text)  # type: ignore[arg-type]
    except (ValueError, RecursionError) as error:  # all that msgspec raises
        raise CorruptError(f"a record does not decode: {error}") from error
    return value


def inflate(packed: bytes | memoryview, limit: int) -> bytes:
    """Inflate at most `limit` bytes: a deflate bomb is an error, not an allocation.

    Raises:
        CorruptError: this is no deflated data, or it is longer.
    """
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(packed, limit + 1)
    except zlib.error as error:
        raise CorruptError(f"deflated data does not decode: {error}") from error
    if len(data) > limit or not inflater.eof:
        raise CorruptError("deflated data is longer than its header says, or cut off")
    return data


@cache
def _decoder(wanted: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(wanted)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):  # one that is made when it is looked at
        return dict(value)
    return value.item() if isinstance(value, np.generic) else str(value)


def _encodable(plain: Any) -> Any:
    """Texts such that any UTF-8 holds them: undecodable paths have lone surrogates."""
    if isinstance(plain, str):
        return plain.encode("utf-8", "replace").decode()
    if isinstance(plain, dict):
        return {_encodable(key): _encodable(item) for key, item in plain.items()}
    if isinstance(plain, (list, tuple)):
        return list(map(_encodable, plain))
    return plain
