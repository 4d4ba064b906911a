"""Bytes of a rank's file: one growing file, or numbered segments read as one.

No descriptor outlives a `with`: thousands of ranks must not use up the process's limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tb_plugin import storage
from tb_plugin.formats.recording.frames.layout import Layout, end_to_end

if TYPE_CHECKING:
    from types import TracebackType

    from tb_plugin.storage.contract import Ranges


class Part(NamedTuple):
    """One file on disk, as it was when the directory was listed."""

    path: str
    size_bytes: int
    mtime_ns: int
    device: int
    inode: int
    segment: int | None

    def is_same_file(self, other: Part) -> bool:
        """Whether this may be a later state of the same append-only file."""
        return (
            self.inode == other.inode
            and self.device == other.device
            and self.path == other.path
        )


class PartsReader:
    """Reads ranges of a file by logical offsets."""

    def __init__(self, parts: Layout | tuple[Part, ...]) -> None:
        """`parts`: with their places, or all of them, which then lie end to end."""
        self.layout = parts if isinstance(parts, Layout) else end_to_end(parts)
        self._open: dict[int, Ranges] = {}
        self.size_bytes = self.layout.size_bytes

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
            index = self.layout.at(offset)
            if index is None:
                break
            _, start, end = self.layout.extents[index]
            want = min(length, end - offset)
            piece = self._file(index).pread(want, offset - start)
            pieces.append(piece)
            offset, length = offset + want, length - want
            if len(piece) < want:
                break
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _file(self, index: int) -> Ranges:
        file = self._open.get(index)
        if file is None:
            path = self.layout.extents[index].part.path
            file = self._open[index] = storage.at(path).ranges(path)
        return file


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
