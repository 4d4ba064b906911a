"""Files of this machine's disks."""

from __future__ import annotations

import io
import os
import stat
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from memboard.tb_plugin.storage.contract import Status

_FLAGS: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# A pipe that took the place of a file must not block the server.
_AT_ONCE: Final = _FLAGS | getattr(os, "O_NONBLOCK", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)


class LocalFile(io.FileIO):
    def __init__(self, path: str, more_flags: int = 0) -> None:
        super().__init__(
            path, opener=lambda name, _: os.open(name, _AT_ONCE | more_flags)
        )
        if not stat.S_ISREG(self.status().st_mode):
            self.close()
            raise OSError(f"{path} is not a regular file")

    def status(self) -> os.stat_result:
        return os.fstat(self.fileno())

    def pread(self, length: int, offset: int) -> bytes:
        """At most `length` bytes from `offset`; fewer at the end."""
        return os.pread(self.fileno(), length, offset)


class Local:
    """The disk: what `os` does, and a little more."""

    stat = staticmethod(os.stat)
    lstat = staticmethod(os.lstat)
    isdir = staticmethod(os.path.isdir)
    ranges = staticmethod(LocalFile)

    def scandir(self, path: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        return os.scandir(path)

    def realpath(self, path: str) -> str:
        """The path without links and `..`."""
        return os.path.realpath(path)

    def peek(self, path: str, start: int, length: int) -> bytes:
        """Some bytes of a plain file, of anything else none; `start` < 0: from its end."""
        descriptor = os.open(path, _AT_ONCE)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return b""
            offset = start if start >= 0 else max(0, status.st_size + start)
            return os.pread(descriptor, length, offset)
        finally:
            os.close(descriptor)

    def open(self, path: str) -> tuple[IO[bytes], os.stat_result]:
        """Open a plain file to be read and sought in; no link is followed."""
        file = LocalFile(path, _NO_LINK)
        return io.BufferedReader(file), file.status()

    def descriptor(self, path: str, status: Status, *, follow: bool) -> IO[Any]:
        """A file with a descriptor that another process can read, at its start."""
        del status
        flags = _AT_ONCE if follow else _AT_ONCE | _NO_LINK
        return os.fdopen(os.open(path, flags), "rb", buffering=0)

    def ahead(self, paths: Iterable[str]) -> None: ...

    def is_another(self, file: IO[Any], status: Status) -> bool:
        """Whether a file that `descriptor` gave was written to since it had a status."""
        now = os.fstat(file.fileno())
        return (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns) != (
            status.st_dev,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
        )


LOCAL: Final = Local()
