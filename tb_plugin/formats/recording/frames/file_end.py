"""Reads a file from its end: where its last digest lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector.format.capture_parts import CAPTURE, decode_part
from collector.format.codec import (
    CHUNK,
    CLOSE,
    DIGEST,
    SEGMENT,
    decode_chunk_span,
    decode_record,
)
from collector.format.errors import FormatError
from collector.format.framing import Framed, find_last_frame, read_frames
from collector.format.records import Close, Segment

if TYPE_CHECKING:
    from tb_plugin.formats.recording.frames.parts import PartsReader

_TAIL_BYTES: Final = (1 << 12, 1 << 16, 1 << 20)
_MAX_LOOKS_BACK: Final = 32


def latest_digest_offset(reader: PartsReader) -> int:
    """Where the last digest starts, as the last records say; 0 where none does."""
    size = reader.size_bytes
    start = reader.layout.start_of_run(size)
    for reach in _TAIL_BYTES:
        base = max(start, size - reach)
        tail = reader.read(base, size - base)
        for _ in range(_MAX_LOOKS_BACK):
            at = find_last_frame(tail)
            if at is None:
                break
            frame = next(read_frames(memoryview(tail)[at:], base + at))
            if isinstance(frame, Framed):
                offset = _digest_offset_in(frame)
                if offset is not None:
                    return offset if 0 < offset < size else 0
            tail = tail[:at]
        if base == start:
            return 0
    return 0


def _digest_offset_in(frame: Framed) -> int | None:
    try:
        if frame.kind == DIGEST:
            return frame.offset
        if frame.kind == CHUNK:
            return decode_chunk_span(frame.payload).digest_offset
        if frame.kind == CAPTURE:
            return decode_part(frame.payload).digest_offset
        if frame.kind == SEGMENT:
            segment = decode_record(SEGMENT, frame.payload)
            return segment.digest_offset if isinstance(segment, Segment) else None
        if frame.kind == CLOSE:
            close = decode_record(CLOSE, frame.payload)
            if isinstance(close, Close) and isinstance(close.digest_offset, int):
                return close.digest_offset
    except FormatError:
        return None
    return None
