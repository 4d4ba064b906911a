"""Bytes of a rank's file: one growing file, or numbered segments read as one.

Offsets are logical (see `memboard.collector.format.records`). Segments that are all there lie end
to end; only where a number is missing, or what is there is shorter than it should be, the
heads say at which offsets their segments begin. No descriptor outlives a `with`:
thousands of ranks must not use up the process's limit.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from memboard.tb_plugin import storage
from memboard.tb_plugin.formats.plain_files import text_of_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from memboard.tb_plugin.storage import Ranges

_COMPARED_BYTES: Final = 64
"""Of what was read, to see whether it is still there when the file has grown."""


class Part(NamedTuple):
    """One file on disk, as it was when the directory was listed."""

    path: str
    size_bytes: int
    mtime_ns: int
    device: int
    inode: int
    segment: int | None
    shown_path: str
    """Relative to the logdir, for people."""
    target: str
    """Where it lies, if that is outside of the logdir; else empty."""

    @property
    def path_text(self) -> str:
        """Its shown path, and behind it where it lies if that is outside of the logdir."""
        return text_of_path(self.shown_path, self.target)

    def is_same_file(self, other: Part) -> bool:
        """Whether this may be a later state of the same append-only file."""
        return (
            self.inode == other.inode
            and self.device == other.device
            and self.path == other.path
        )


class Extent(NamedTuple):
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

    def __init__(self, extents: tuple[Extent, ...] = ()) -> None:
        self.extents = extents
        self._starts = [extent.start for extent in extents]
        before = (0, *(extent.end for extent in extents))
        self.gaps = tuple(
            Gap(end, extent.start)
            for end, extent in zip(before, extents, strict=False)
            if extent.start > end
        )
        self.size_bytes = extents[-1].end if extents else 0  # Logical: gaps count

    def at(self, offset: int) -> Extent | None:
        """The extent that holds `offset`; None in a gap or behind the end."""
        index = bisect_right(self._starts, offset) - 1
        # Of empty parts that begin at the same offset the last one is found.
        if index >= 0 and offset < self.extents[index].end:
            return self.extents[index]
        return None

    def gap_at(self, offset: int) -> Gap | None:
        """The gap that holds `offset`: what was written there is not here."""
        return next((gap for gap in self.gaps if gap.start <= offset < gap.end), None)

    def end_of_run(self, offset: int) -> int:
        """Where the bytes that follow `offset` without a gap end; `offset` in a gap."""
        starts = [max(offset, gap.start) for gap in self.gaps if gap.end > offset]
        return starts[0] if starts else max(offset, self.size_bytes)

    def start_of_run(self, offset: int) -> int:
        """Where the bytes that precede `offset` without a gap begin."""
        ends = [gap.end for gap in self.gaps if gap.end <= offset]
        return ends[-1] if ends else 0

    def missing_segments(self) -> list[tuple[int, int]]:
        """Numbers of segments that are not here: first and last of each stretch."""
        missing, expected = [], 0
        for extent in self.extents:
            number = extent.part.segment or 0
            if number > expected:
                missing.append((expected, number - 1))
            expected = number + 1
        return missing


def end_to_end(parts: tuple[Part, ...]) -> Layout:
    """All parts, none of which is missing."""
    extents, offset = [], 0
    for part in parts:
        extents.append(Extent(part, offset, offset + part.size_bytes))
        offset += part.size_bytes
    return Layout(tuple(extents))


def lay_out(parts: tuple[Part, ...], base_of: Callable[[Part], int | None]) -> Layout:
    """Where parts lie that may not all be there.

    Args:
        parts: in the order of their numbers.
        base_of: the offset at which a segment says that it begins; see `headers`.
    """
    simple = end_to_end(parts)
    if not parts or parts[-1].segment in (None, 0):
        return simple
    if not simple.missing_segments():
        base = base_of(parts[-1])
        if base is None or base == simple.extents[-1].start:
            return simple
    extents: list[Extent] = []
    end = 0
    for part in parts:
        base = base_of(part) if part.segment else 0
        start = end if base is None else base
        if extents and start < end:  # what is too long there is none of ours
            last = extents[-1]
            start = max(start, last.start)
            extents[-1] = last._replace(end=start)
        end = start + part.size_bytes
        extents.append(Extent(part, start, end))
    return Layout(tuple(extents))


class PartsReader:
    """Reads ranges of a file by logical offsets."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.size_bytes = layout.size_bytes
        self._open: dict[str, Ranges] = {}

    def __enter__(self) -> PartsReader:  # noqa: PYI034  # Self needs Python 3.11
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()

    def read(self, offset: int, length: int) -> bytes:
        """At most `length` bytes from `offset`; fewer at the end and before a gap.

        Raises:
            OSError: a part cannot be read, or is no longer a regular file.
        """
        pieces = []
        while length > 0:
            extent = self.layout.at(offset)
            if extent is None:
                break
            want = min(length, extent.end - offset)
            piece = self._file(extent.part.path).pread(want, offset - extent.start)
            pieces.append(piece)
            offset, length = offset + want, length - want
            if len(piece) < want:
                break
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _file(self, path: str) -> Ranges:
        if path not in self._open:
            self._open[path] = storage.at(path).ranges(path)
        return self._open[path]


class ContentSample:
    """A little of what was read: the first bytes, and the last before where it went on."""

    def __init__(self) -> None:
        self._held: dict[int, bytes] = {}

    def keep_first(self, start: int, head: bytes) -> None:
        """Keep the beginning of what begins at `start`."""
        self._held[start] = head[:_COMPARED_BYTES]

    def keep_last(self, reader: PartsReader, end: int) -> None:
        """Keep what lies before `end`, beside the first bytes."""
        last = max(0, end - _COMPARED_BYTES)
        kept = {last: reader.read(last, end - last)}
        # At a store each place is a request of its own; files are replaced whole there.
        path = reader.layout.extents[0].part.path
        if 0 in self._held and not storage.is_remote(path):
            kept.setdefault(0, self._held[0])
        self._held = kept

    def differs(self, reader: PartsReader) -> bool:
        """Whether it is no longer what is there, though the file has grown.

        As where it was written over; the whole of it is not read again to see that.
        """
        return any(reader.read(offset, len(b)) != b for offset, b in self._held.items())


def continues(before: tuple[Part, ...], now: tuple[Part, ...]) -> bool:
    """Whether what was read of the parts `before` still holds in `now`."""
    if len(now) < len(before):
        return False
    for old, new in zip(before, now, strict=False):
        if old == new:
            continue
        # Only the last part grows; the same size at another time is another content.
        is_last = old is before[-1]
        if not (is_last and new.is_same_file(old) and new.size_bytes > old.size_bytes):
            return False
    return True
