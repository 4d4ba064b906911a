"""Where the parts of a rank's file lie in it: end to end, or with gaps between segments.

Offsets are logical (see `collector.format.records`). Segments that are all there lie end
to end; only where a number is missing, or what is there is shorter than it should be, the
heads are asked for the offsets at which their segments begin.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from collector.format.codec import SEGMENT, decode_record
from collector.format.errors import FormatError
from collector.format.framing import Framed, read_frames
from collector.format.records import Segment
from tb_plugin import storage

if TYPE_CHECKING:
    from collections.abc import Callable

    from tb_plugin.formats.recording.frames.parts import Part

_HEAD_BYTES: Final = (1 << 13, 1 << 20)
_MOST_OFFSET: Final = 1 << 62
_MAX_NAMED: Final = 20


class Extent(NamedTuple):
    """Bytes of one part."""

    part: Part
    start: int
    """Logical offset of its first byte."""
    end: int


class Gap(NamedTuple):
    """Bytes that were written and are not here."""

    start: int
    end: int


class Layout:
    """Extents in order, and what lies between them."""

    def __init__(self, extents: tuple[Extent, ...]) -> None:
        self.extents = extents
        self._starts = [extent.start for extent in extents]
        before = (0, *(extent.end for extent in extents))
        self.gaps = tuple(
            Gap(at, extent.start)
            for at, extent in zip(before, extents, strict=False)
            if extent.start > at
        )
        self.size_bytes = extents[-1].end if extents else 0
        """Logical: gaps count."""

    def at(self, offset: int) -> int | None:
        """Index of the extent that holds `offset`; None in a gap or behind the end."""
        index = bisect_right(self._starts, offset) - 1
        # Of empty parts that begin at the same offset the last one is found.
        if index >= 0 and offset < self.extents[index].end:
            return index
        return None

    def end_of_run(self, offset: int) -> int:
        """Where the bytes that follow `offset` without a gap end; `offset` in a gap."""
        for gap in self.gaps:
            if gap.start <= offset < gap.end:
                return offset
            if gap.start > offset:
                return gap.start
        return max(offset, self.size_bytes)

    def start_of_run(self, offset: int) -> int:
        """Where the bytes that precede `offset` without a gap begin."""
        ends = [gap.end for gap in self.gaps if gap.end <= offset]
        return ends[-1] if ends else 0

    def resumes_at(self, offset: int) -> int | None:
        """The end of the gap that holds `offset`."""
        for gap in self.gaps:
            if gap.start <= offset < gap.end:
                return gap.end
        return None

    def lacks(self, offset: int) -> bool:
        """Whether what was written at `offset` is not here."""
        return self.resumes_at(offset) is not None

    def missing_segments(self) -> list[tuple[int, int]]:
        """Numbers of segments that are not here: first and last of each stretch."""
        found, expected = [], 0
        for extent in self.extents:
            number = extent.part.segment or 0
            if number > expected:
                found.append((expected, number - 1))
            expected = number + 1
        return found


def end_to_end(parts: tuple[Part, ...]) -> Layout:
    """All parts, none of which is missing."""
    extents, at = [], 0
    for part in parts:
        extents.append(Extent(part, at, at + part.size_bytes))
        at += part.size_bytes
    return Layout(tuple(extents))


def lay_out(parts: tuple[Part, ...], base_of: Callable[[Part], int | None]) -> Layout:
    """Where parts lie that may not all be there.

    Args:
        parts: in the order of their numbers.
        base_of: the offset at which a segment says that it begins; see `written_head`.
    """
    simple = end_to_end(parts)
    if not parts or parts[-1].segment in (None, 0):
        return simple
    if not simple.missing_segments():
        base = base_of(parts[-1])
        if base is None or base == simple.extents[-1].start:
            return simple
    extents: list[Extent] = []
    at = 0
    for part in parts:
        base = base_of(part) if part.segment else 0
        start = at if base is None else base
        if extents and start < at:  # what is too long there is none of ours
            last = extents[-1]
            start = max(start, last.start)
            extents[-1] = last._replace(end=start)
        extents.append(Extent(part, start, start + part.size_bytes))
        at = start + part.size_bytes
    return Layout(tuple(extents))


def written_head(part: Part) -> Segment | None:
    """What a segment says of itself; None where it does not say.

    Raises:
        OSError: it cannot be read.
    """
    with storage.at(part.path).ranges(part.path) as file:
        if file.status().st_ino != part.inode:
            return None
        for reach in _HEAD_BYTES:
            for item in read_frames(file.pread(reach, 0)):
                if not isinstance(item, Framed):
                    return None
                if item.kind:
                    return _segment_in(item)
            if reach >= part.size_bytes:
                break
    return None


def _segment_in(item: Framed) -> Segment | None:
    try:
        record = (
            decode_record(item.kind, item.payload) if item.kind == SEGMENT else None
        )
    except FormatError:
        return None
    if isinstance(record, Segment) and record.base_offset <= _MOST_OFFSET:
        return record
    return None


def in_words(missing: list[tuple[int, int]]) -> str:
    """Numbers of segments, e.g. `0003, 0005 to 0007`."""
    named = [
        f"{first:04d}" if first == last else f"{first:04d} to {last:04d}"
        for first, last in missing[:_MAX_NAMED]
    ]
    more = len(missing) - _MAX_NAMED
    return ", ".join(named) + (f" and {more} more stretches" if more > 0 else "")
