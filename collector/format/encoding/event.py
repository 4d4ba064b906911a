"""TensorBoard's `Event` as bytes and back: the few fields that event files of ours hold.

Protobuf's wire format, in order of field numbers as protobuf itself writes it. Field
numbers are those of TensorBoard's `event.proto`, `summary.proto` and `tensor.proto`. A
recording node so needs neither TensorBoard nor protobuf.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DOUBLE: Final = struct.Struct("<d")
_FLOAT: Final = struct.Struct("<f")
_Parts: TypeAlias = tuple[bytes, ...]

DT_FLOAT: Final = 1
DT_STRING: Final = 7
DATA_CLASS_SCALAR: Final = 1
DATA_CLASS_TENSOR: Final = 2


class Description(NamedTuple):
    """Metadata of a tag, of which TensorBoard keeps the first event's only."""

    plugin: str
    data_class: int
    """Unset would hide the tag."""
    title: str = ""


def version_event(wall_time: float, version: str) -> bytes:
    """The first event of a file."""
    return b"".join((_double(1, wall_time), *_nested(3, (version.encode(),))))


def text_event(
    tag: str,
    payload: bytes,
    time_and_step: tuple[float, int],
    description: Description | None,
) -> bytes:
    """One string tensor, `time_and_step` a wall time in seconds and a step."""
    return _event(tag, time_and_step, description, DT_STRING, _nested(8, (payload,)))


def scalar_event(
    tag: str,
    value: float,
    time_and_step: tuple[float, int],
    description: Description | None,
) -> bytes:
    """One float32 tensor, `time_and_step` a wall time in seconds and a step."""
    number = _nested(5, (_FLOAT.pack(value),))
    return _event(tag, time_and_step, description, DT_FLOAT, number)


def read_event(data: memoryview) -> tuple[str, bytes | None] | None:
    """Tag and string of an event with one summary value; None where it has not one.

    The string is None where the value is not one string.

    Raises:
        ValueError: these bytes are no event.
    """
    values = [
        value
        for number, summary in _fields(data)
        if number == 5
        for number_inside, value in _fields(summary)
        if number_inside == 1
    ]
    if len(values) != 1:
        return None
    tag = ""
    strings: list[memoryview] = []
    for number, field in _fields(values[0]):
        if number == 1:
            tag = str(field, "utf-8")
        elif number == 8:
            strings += [
                string for number_inside, string in _fields(field) if number_inside == 8
            ]
    return tag, bytes(strings[0]) if len(strings) == 1 else None


def _event(
    tag: str,
    time_and_step: tuple[float, int],
    description: Description | None,
    dtype: int,
    content: _Parts,
) -> bytes:
    wall_time, step = time_and_step
    metadata: _Parts = ()
    if description is not None:
        plugin = _nested(1, _nested(1, (description.plugin.encode(),)))
        title = _nested(2, (description.title.encode(),)) if description.title else ()
        data_class = _number(4, description.data_class)
        metadata = _nested(9, (*plugin, *title, data_class))
    tensor = (_number(1, dtype), *_nested(2, ()), *content)
    value = (*_nested(1, (tag.encode(),)), *_nested(8, tensor), *metadata)
    summary = _nested(5, _nested(1, value))
    return b"".join((_double(1, wall_time), _number(2, step), *summary))


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    """Zero is left out, as protobuf does."""
    return bytes((field << 3 | _VARINT,)) + _varint(value) if value else b""


def _double(field: int, value: float) -> bytes:
    packed = _DOUBLE.pack(value)
    return bytes((field << 3 | _FIXED64,)) + packed if any(packed) else b""


def _nested(field: int, parts: _Parts) -> _Parts:
    """A text or message, whose parts are copied once, when all are joined."""
    return bytes((field << 3 | _BYTES,)) + _varint(sum(map(len, parts))), *parts


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Number and content of the fields with a length; the others are passed over."""
    position, end = 0, len(data)
    while position < end:
        key = data[position]
        position += 1
        if key >= 0x80:
            key, position = _varint_at(data, position - 1)
        kind = key & 7
        if kind == _BYTES:
            length, position = _varint_at(data, position)
            if length > end - position:
                raise ValueError("a field ends beyond its message")
            yield key >> 3, data[position : position + length]
            position += length
        elif kind == _VARINT:
            _, position = _varint_at(data, position)
        elif kind in {_FIXED64, _FIXED32}:
            position += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"a field of wire type {kind}")
    if position > end:
        raise ValueError("a number ends beyond its message")


def _varint_at(data: memoryview, position: int) -> tuple[int, int]:
    """A varint and where it ends."""
    value = shift = 0
    for place in range(position, min(position + 10, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place + 1
        shift += 7
    raise ValueError("a number without an end")
