"""Files of this machine's disks."""

from __future__ import annotations

import os
import stat
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from typing_extensions import Self

    from tb_plugin.storage.contract import Ranges, Status, Storage

_FLAGS: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# A pipe that took the place of a file must not block the server.
_AT_ONCE: Final = _FLAGS | getattr(os, "O_NONBLOCK", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)


class _Local:
    """See `contract.Storage`."""

    stat = staticmethod(os.stat)
    lstat = staticmethod(os.lstat)
    isdir = staticmethod(os.path.isdir)

    @staticmethod
    def scandir(path: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        """See `contract.Storage`."""
        return os.scandir(path)

    @staticmethod
    def realpath(path: str) -> str:
        """See `contract.Storage`."""
        return os.path.realpath(path)

    @staticmethod
    def peek(path: str, start: int, length: int) -> bytes:
        """See `contract.Storage`."""
        descriptor = os.open(path, _AT_ONCE)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return b""
            if start:
                at = start if start > 0 else max(0, status.st_size + start)
                os.lseek(descriptor, at, os.SEEK_SET)
            return os.read(descriptor, length)
        finally:
            os.close(descriptor)

    @staticmethod
    def ranges(path: str) -> Ranges:
        """See `contract.Storage`."""
        return _LocalRanges(path)

    @staticmethod
    def open(path: str) -> tuple[IO[bytes], os.stat_result]:
        """See `contract.Storage`."""
        file = os.fdopen(os.open(path, _AT_ONCE | _NO_LINK), "rb")
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            file.close()
            raise _no_plain_file(path)
        return file, status

    @staticmethod
    def descriptor(path: str, status: Status, *, follow: bool) -> IO[Any]:
        """See `contract.Storage`."""
        del status
        flags = _AT_ONCE if follow else _AT_ONCE | _NO_LINK
        return os.fdopen(os.open(path, flags), "rb", buffering=0)

    @staticmethod
    def ahead(paths: Iterable[str]) -> None:
        """See `contract.Storage`: they are there."""
        del paths

    @staticmethod
    def is_another(path: str, file: IO[Any], status: Status) -> bool:
        """See `contract.Storage`."""
        del path
        now = os.fstat(file.fileno())
        return (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns) != (
            status.st_dev,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
        )


LOCAL: Final[Storage] = _Local()


class _LocalRanges:
    """A plain file."""

    __slots__ = ("_descriptor", "_status")

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, _AT_ONCE)
        self._status = os.fstat(self._descriptor)
        if not stat.S_ISREG(self._status.st_mode):
            self.close()
            raise _no_plain_file(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def status(self) -> os.stat_result:
        """See `contract.Ranges`."""
        return self._status

    def pread(self, length: int, offset: int) -> bytes:
        """See `contract.Ranges`."""
        return os.pread(self._descriptor, length, offset)

    def close(self) -> None:
        """See `contract.Ranges`."""
        os.close(self._descriptor)


def _no_plain_file(path: str) -> OSError:
    return OSError(f"{path} is not a regular file")
