"""Frames of a file: walked in blocks of bounded size, and the last digest from its end."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from memboard.collector.format.capture import CAPTURE, decode_part
from memboard.collector.format.digest import DIGEST
from memboard.collector.format.encoding.framing import (
    Damage,
    FramedRecord,
    find_last_frame,
    is_cut_off,
    read_frames,
)
from memboard.collector.format.errors import CorruptError, FormatError
from memboard.collector.format.records import (
    CHUNK,
    CLOSE,
    SEGMENT,
    Close,
    Segment,
    decode_chunk_ref,
    decode_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.formats.recording.frames.parts import PartsReader

_BLOCK_BYTES: Final = 1 << 18
_MAX_BLOCK_BYTES: Final = 1 << 26
"""A record longer than this is given up. Ours stay far below."""

MISSING: Final = "a segment of the file is missing"

_TAIL_BYTES: Final = (1 << 12, 1 << 16, 1 << 20)
_MAX_FRAMES_BACK: Final = 32
_LENGTH: Final = struct.Struct("<Q")
_FRAME_BYTES: Final = 16
"""Of a frame, besides its data."""


def scan(
    reader: PartsReader, start: int, stop: int, budget: Budget, *, open_end: bool
) -> Iterator[FramedRecord | Damage]:
    """Intact records and damage between two offsets, in order.

    A gap, where segments are missing, is damage; what precedes it is cut off for good.
    With `open_end`, `stop` is where a file ends that may still grow: a record cut off
    there, and damage that reaches it, are not yielded; scan again from the last `end`
    when there is more. Ends early when the budget is exhausted.
    """
    offset, block = start, _BLOCK_BYTES
    while offset < stop and budget.allows():
        gap = reader.layout.gap_at(offset)
        if gap is not None:
            yield Damage(offset, min(gap.end, stop), MISSING)
            offset = gap.end
            continue
        here = min(stop, reader.layout.end_of_run(offset))
        is_open = open_end and here >= stop
        data = reader.read(offset, min(block, here - offset))
        if not data:
            return
        end_of_data = offset + len(data)
        last = end_of_data >= here
        before = offset
        for item in read_frames(data, offset, last=last and not is_open):
            unsure = isinstance(item, Damage) and item.end == end_of_data
            if unsure and (is_open or not last) and block < _MAX_BLOCK_BYTES:
                # The next intact record may begin inside and end behind this block.
                break
            yield item
            offset = item.end
        if offset > before:
            block = _BLOCK_BYTES
        elif last:
            return
        elif block < _MAX_BLOCK_BYTES:
            block *= 4
        else:
            yield Damage(offset, end_of_data, "a record is too long to be one of ours")
            offset, block = end_of_data, _BLOCK_BYTES


def ends_cut_off(reader: PartsReader, offset: int) -> bool:
    """Whether what lies from there to the end is a record that was not written whole.

    Raises:
        OSError: the file cannot be read.
    """
    num_bytes = min(reader.size_bytes - offset, _MAX_BLOCK_BYTES)
    return is_cut_off(reader.read(offset, num_bytes))


def end_of_frame(reader: PartsReader, offset: int) -> int:
    """Where the frame at `offset` ends, by its length, which its reader checks.

    Raises:
        CorruptError: there is none.
        OSError: the file cannot be read.
    """
    head = reader.read(offset, _LENGTH.size)
    if len(head) < _LENGTH.size:
        raise CorruptError(f"the file ends at {offset}")
    (length,) = _LENGTH.unpack(head)
    if length > _MAX_BLOCK_BYTES:
        raise CorruptError(f"no record at {offset}")
    return offset + _FRAME_BYTES + int(length)


def latest_digest_offset(reader: PartsReader) -> int:
    """Where the last digest starts, as the last records say; 0 where none does.

    Raises:
        OSError: the file cannot be read.
    """
    size = reader.size_bytes
    start = reader.layout.start_of_run(size)
    for reach in _TAIL_BYTES:
        base = max(start, size - reach)
        tail = reader.read(base, size - base)
        for _ in range(_MAX_FRAMES_BACK):
            frame_offset = find_last_frame(tail)
            if frame_offset is None:
                break
            frame = next(
                read_frames(memoryview(tail)[frame_offset:], base + frame_offset)
            )
            if isinstance(frame, FramedRecord):
                offset = _digest_offset_in(frame)
                if offset is not None:
                    return offset if offset < size else 0
            tail = tail[:frame_offset]
        if base == start:
            return 0
    return 0


def _digest_offset_in(frame: FramedRecord) -> int | None:
    try:
        if frame.kind == DIGEST:
            return frame.offset
        if frame.kind == CHUNK:
            return decode_chunk_ref(frame.payload, 0, 0)[1]
        if frame.kind == CAPTURE:
            return decode_part(frame.payload)[0].digest_offset
        if frame.kind in (SEGMENT, CLOSE):
            record = decode_record(frame.kind, frame.payload)
            if isinstance(record, (Segment, Close)):
                return record.digest_offset
    except FormatError:
        return None
    return None
