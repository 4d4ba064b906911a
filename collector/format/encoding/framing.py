"""Payloads to TFRecord-framed `Event` protobufs and back.

A frame is `u64 length | u32 masked CRC32C of the length | data | u32 masked CRC32C of
the data`. The data is an `Event` with one summary value: tag `memboard/<kind>`, a
string tensor holding the payload, and (at least in the first of each kind) `plugin_data`
naming the plugin, so any TensorBoard tool can read the file (`tensorboard --inspect
--event_file`).

Reading survives anything: a torn tail is where reading resumes later, a flipped bit
costs one record, and behind a broken length the next intact frame is found again.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import google_crc32c

from memboard.collector.format.encoding.event import (
    DATA_CLASS_TENSOR,
    Description,
    read_event,
    text_event,
    version_event,
)
from memboard.collector.format.names import PLUGIN_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

TAG_PREFIX: Final = f"{PLUGIN_NAME}/"

FILE_VERSION: Final = "brain.Event:2"
"""First event of every event file, as TensorBoard's readers expect."""

MAX_EVENT_BYTES: Final = 1 << 30
"""A length above this is damage, whatever its CRC says: protobuf ends at 2 GiB."""

_FRAME_HEAD: Final = struct.Struct("<QI")
_UPPER_HALF: Final = bytes(4)
_CRC: Final = struct.Struct("<I")
_OURS: Final = Description(PLUGIN_NAME, DATA_CLASS_TENSOR)
_MARKER: Final = TAG_PREFIX.encode()
_MARKER_REACH: Final = 64
"""The tag starts at most this many bytes behind the start of its frame."""


@dataclass(frozen=True, slots=True)
class FramedRecord:
    """An intact record of a file."""

    offset: int
    """Where its frame starts in the file."""
    end: int
    """Where the next frame starts."""
    kind: str
    """Empty for events that are not ours."""
    payload: bytes


@dataclass(frozen=True, slots=True)
class Damage:
    """A stretch of a file that holds no intact record."""

    offset: int
    end: int
    what: str


def frame_record(
    kind: str, payload: bytes, *, wall_time: float, step: int, described: bool = False
) -> bytes:
    """One record, ready to append to a rank's file.

    `described`: a record of this kind precedes it. TensorBoard keeps only the first
    one's metadata, so the others need none.
    """
    description = None if described else _OURS
    return frame(text_event(TAG_PREFIX + kind, payload, (wall_time, step), description))


def frame_version(wall_time: float) -> bytes:
    """The first event of an event file."""
    return frame(version_event(wall_time, FILE_VERSION))


def frame(data: bytes) -> bytes:
    """Wrap the bytes of one event in a TFRecord frame."""
    length = struct.pack("<Q", len(data))
    return b"".join(
        (
            length,
            _CRC.pack(_masked_crc(length)),
            data,
            _CRC.pack(_masked_crc(data)),
        )
    )


def read_frames(
    buffer: bytes | memoryview, base: int = 0, *, last: bool = False
) -> Iterator[FramedRecord | Damage]:
    """Walk the frames of `buffer`, which starts at offset `base` of its file.

    Yields what is intact and what is damaged, in order, and stops before a tail that
    is not complete: the caller reads again from the last yielded `end`. With `last`,
    an incomplete tail is reported as damage (nobody will complete it).
    """
    view = memoryview(buffer)
    position = 0
    while position < len(view):
        end, damage = _frame_at(view, position)
        if not damage and end is None:
            if last:
                yield Damage(base + position, base + len(view), "the record is cut off")
            return
        if end is None:
            end = find_frame(view, position + 1)
            if end is None:
                yield Damage(base + position, base + len(view), damage)
                if not last:  # the next intact frame may not have arrived yet
                    return
                end = len(view)
            else:
                yield Damage(base + position, base + end, damage)
        elif damage:
            yield Damage(base + position, base + end, damage)
        else:
            parsed = _parse(view[position + _FRAME_HEAD.size : end - _CRC.size])
            if parsed is None:
                yield Damage(base + position, base + end, "the event does not parse")
            else:
                yield FramedRecord(base + position, base + end, *parsed)
        position = end


def is_cut_off(tail: bytes | memoryview) -> bool:
    """Whether the last bytes of a file are the beginning of a frame, and no damaged one."""
    return _frame_at(memoryview(tail), 0) == (None, "")


def find_frame(buffer: bytes | memoryview, start: int = 0) -> int | None:
    """Offset of the first intact frame of ours at or behind `start`, or None."""
    data = bytes(buffer)
    position = start
    while (marker := data.find(_MARKER, position)) >= 0:
        frame_start = _frame_around(data, start, marker)
        if frame_start is not None:
            return frame_start
        position = marker + 1
    return None


def find_last_frame(buffer: bytes | memoryview) -> int | None:
    """Offset of the last intact frame of ours in `buffer`, or None."""
    data = bytes(buffer)
    end = len(data)
    while (marker := data.rfind(_MARKER, 0, end)) >= 0:
        frame_start = _frame_around(data, 0, marker)
        if frame_start is not None:
            return frame_start
        end = marker + len(_MARKER) - 1
    return None


def _frame_around(data: bytes, start: int, marker: int) -> int | None:
    """Where the intact frame with the tag at `marker` starts.

    No length reaches 2**32, so its upper half is zero: looking for that first makes the
    search cheap, also over bytes that were made to look like many tags.
    """
    position = max(start, marker - _MARKER_REACH)
    while (zeros := data.find(_UPPER_HALF, position + 4, marker)) >= 0:
        end, damage = _frame_at(memoryview(data), zeros - 4)
        if end is not None and not damage:
            return zeros - 4
        position = zeros - 3
    return None


def _frame_at(view: memoryview, position: int) -> tuple[int | None, str]:
    """Where the frame ends, if its length can be trusted, and what is wrong with it.

    Neither: there are not enough bytes to say yet.
    """
    if len(view) - position < _FRAME_HEAD.size:
        return None, ""
    length, length_crc = _FRAME_HEAD.unpack_from(view, position)
    if (
        _masked_crc(bytes(view[position : position + 8])) != length_crc
        or length > MAX_EVENT_BYTES
    ):
        return None, "the length of a record fails its checksum"
    end = position + _FRAME_HEAD.size + length + _CRC.size
    if end > len(view):
        return None, ""
    data = bytes(view[position + _FRAME_HEAD.size : end - _CRC.size])
    if _masked_crc(data) != _CRC.unpack_from(view, end - _CRC.size)[0]:
        return end, "the data of a record fails its checksum"
    return end, ""


def _parse(data: memoryview) -> tuple[str, bytes] | None:
    """(kind, payload) of an event; kind is empty where it is not ours."""
    try:
        tag_and_payload = read_event(data)
    except ValueError:
        return None
    if tag_and_payload is None or not tag_and_payload[0].startswith(TAG_PREFIX):
        return "", b""
    tag, payload = tag_and_payload
    return None if payload is None else (tag[len(TAG_PREFIX) :], payload)


def _masked_crc(data: bytes) -> int:
    crc = int(google_crc32c.value(data))
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
