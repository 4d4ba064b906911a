"""A pickle as the few megabytes of it that are being looked at.

Plain or gzipped, it passes once from start to end and is never whole in memory. Frames
are hints for readers of files: their opcodes are taken out on the way, as far as one
follows the other, so that nothing splits the events.
"""

from __future__ import annotations

import gzip
import zlib
from bisect import bisect_right
from typing import IO, TYPE_CHECKING, Final

from memboard.tb_plugin.formats.file_size import size_of
from memboard.tb_plugin.worker.errors import RefusedError
from memboard.tb_plugin.worker.limits import GZIP

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_TEXT: Final = 1 << 20
MARGIN: Final = MAX_TEXT + 64
"""No opcode with its argument is longer."""

_READ: Final = 2 << 20
_MAX_INFLATED: Final = 16 << 30
_MAX_RATIO: Final = 200
"""Snapshots deflate 20 to 60 times; what deflates more is no snapshot."""
_ALWAYS_INFLATED: Final = 1 << 20
_FRAME: Final = 0x95
_FRAME_BYTES: Final = 9


class Window:
    """`data` from some place of the pickle on; `fill` moves it forward."""

    def __init__(
        self, file: IO[bytes], report: Callable[[float], None] | None = None
    ) -> None:
        """`report` is told the share of the file that was read."""
        self.data = b""
        self.low = 0
        """From here on `fill` is due: less than `MARGIN` is left."""
        self._file = file
        self._report = report
        self._size = max(1, size_of(file))
        self._source: IO[bytes] = file
        self._at_end = False
        self._inflated: int | None = None
        if file.read(len(GZIP)) == GZIP:
            self._source = gzip.GzipFile(fileobj=file)  # type: ignore[assignment]
            self._inflated = 0
        file.seek(0)
        self._start = 0
        """Of the window, in the pickle."""
        self._cuts: list[int] = []
        """Places in the window where a frame's opcode was taken out."""
        self._held = b""
        """Bytes behind the window that may belong to a frame's opcode."""
        self._until_frame: int | None = None
        """Bytes until the next one; None: nobody knows."""

    @property
    def at_end(self) -> bool:
        """Whether `data` reaches to the end."""
        return self._at_end

    def fill(self, place: int, num_bytes: int = 0) -> int:
        """Drop what lies before `place` and read on, at least so many bytes if there are.

        Returns where `place` is now.
        """
        num_bytes = num_bytes or MARGIN + _READ
        self._drop(place)
        parts = [self.data[place:]]
        length = len(parts[0])
        while not self._at_end and length < num_bytes:
            parts.append(self._without_frames(self._more(), length))
            length += len(parts[-1])
        self._take(b"".join(parts))
        return 0

    def frame(self, place: int, length: int) -> None:
        """The window's next `length` bytes from `place` on are a frame.

        Raises:
            RefusedError: it lies within another one; the offset is in the window, as
                in all errors of reading.
        """
        if self._until_frame is not None:
            raise RefusedError("a frame begins within another", place)
        self._until_frame = length
        rest = self.data[place:] + self._held
        self._held = b""
        self._take(self.data[:place] + self._without_frames(rest, place))

    @property
    def is_cut_off(self) -> bool:
        """Whether the file is known to end before its last frame does."""
        return self._at_end and bool(self._until_frame)

    @property
    def num_bytes(self) -> int:
        """Of the file, as it lies there."""
        return self._size

    def offset(self, place: int) -> int:
        """Where in the pickle a place of the window is."""
        return self._start + place + _FRAME_BYTES * bisect_right(self._cuts, place)

    def _take(self, data: bytes) -> None:
        self.data = data
        self.low = len(data) if self._at_end else max(0, len(data) - MARGIN)

    def _drop(self, place: int) -> None:
        passed = bisect_right(self._cuts, place)
        self._start += place + _FRAME_BYTES * passed
        self._cuts = [cut - place for cut in self._cuts[passed:]]

    def _more(self) -> bytes:
        """What follows; at the end nothing."""
        try:
            piece = self._source.read(_READ)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise RefusedError(f"the file does not inflate: {error}", 0) from error
        if self._inflated is not None:
            self._inflated += len(piece)
            most = max(_ALWAYS_INFLATED, self._size * _MAX_RATIO)
            if self._inflated > min(_MAX_INFLATED, most):
                raise RefusedError("the file inflates to more than a snapshot", 0)
        self._at_end = not piece
        if self._report is not None:
            self._report(self._file.tell() / self._size)
        return piece

    def _without_frames(self, data: bytes, place: int) -> bytes:
        """The bytes without the opcodes of frames; `place`: theirs in the window."""
        data = self._held + data
        self._held = b""
        parts: list[bytes] = []
        end = 0
        while self._until_frame is not None:
            inside = min(self._until_frame, len(data) - end)
            parts.append(data[end : end + inside])
            end, place = end + inside, place + inside
            self._until_frame -= inside
            if self._until_frame:
                return b"".join(parts)
            if end < len(data) and data[end] != _FRAME:
                self._until_frame = None
            elif len(data) - end >= _FRAME_BYTES:
                length = data[end + 1 : end + _FRAME_BYTES]
                self._until_frame = int.from_bytes(length, "little")
                self._cuts.append(place)
                end += _FRAME_BYTES
            elif self._at_end:
                self._until_frame = None
            else:
                self._held = data[end:]
                return b"".join(parts)
        return b"".join((*parts, data[end:]))
