"""Bytes of a rank's file: one growing file, or numbered segments read as one.

No descriptor outlives a `with`: thousands of ranks must not use up the process's limit.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from types import TracebackType

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# A pipe that took the place of a file must not block the server.
_FLAGS |= getattr(os, "O_NONBLOCK", 0)


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
    """Reads ranges of the parts laid end to end."""

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self._parts = parts
        self._open: dict[int, int] = {}
        self.size_bytes = sum(part.size_bytes for part in parts)

    def __enter__(self) -> PartsReader:  # noqa: PYI034  # Self needs Python 3.11
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def read(self, offset: int, length: int) -> bytes:
        """At most `length` bytes from `offset`; fewer at the end.

        Raises:
            OSError: a part cannot be read, or is no longer a regular file.
        """
        pieces = []
        start = 0
        for index, part in enumerate(self._parts):
            end = start + part.size_bytes
            if offset < end and length > 0:
                want = min(length, end - offset)
                piece = os.pread(self._descriptor(index), want, offset - start)
                pieces.append(piece)
                offset, length = offset + want, length - want
                if len(piece) < want:
                    break
            start = end
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _descriptor(self, index: int) -> int:
        descriptor = self._open.get(index)
        if descriptor is None:
            descriptor = os.open(self._parts[index].path, _FLAGS)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise OSError(f"{self._parts[index].path} is not a regular file")
            self._open[index] = descriptor
        return descriptor


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
