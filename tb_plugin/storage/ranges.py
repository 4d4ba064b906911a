"""Files of a store that were listed, read piece by piece or as files of the disk are."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from tb_plugin.storage.blocks import Content

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from tb_plugin.storage.contract import Status


class RemoteRanges:
    """A file that was listed; see `contract.Ranges`."""

    __slots__ = ("_content", "_read", "_status")

    def __init__(
        self, read: Callable[[Content, int, int], bytes], path: str, status: Status
    ) -> None:
        """`read` gives bytes of a content: from where, and how many at most."""
        self._read = read
        self._status = status
        self._content = Content.of(path, status)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def status(self) -> Status:
        """See `contract.Ranges`."""
        return self._status

    def pread(self, length: int, offset: int) -> bytes:
        """See `contract.Ranges`."""
        return self._read(self._content, offset, length)

    def close(self) -> None:
        """See `contract.Ranges`: there is nothing to give back."""


class RangedFile(io.RawIOBase):
    """A file that was listed, to be read and sought in."""

    def __init__(self, ranges: RemoteRanges) -> None:
        super().__init__()
        self._ranges = ranges
        self._at = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Where the next read begins."""
        size = self._ranges.status().st_size
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read as much as there is room for, and as there is."""
        data = self._ranges.pread(len(buffer), self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
