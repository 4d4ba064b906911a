"""One append-only file whose bytes are always whole frames."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
_CREATE |= getattr(os, "O_BINARY", 0)  # Windows would turn every 0x0A into two bytes


_PIECE_BYTES: Final = 1 << 18
"""A slower disk than this for the time that `Writer.close` waits is taken for one that hangs."""


class DeletedError(OSError):
    """The file has no name any more, or the descriptor is another file's."""


class AppendFile:
    """A file this process alone created and alone appends to.

    Either all of an `append` lies in the file or none of it: what a full disk cuts off
    is taken back, so a reader never meets half a batch in the middle of a file.
    """

    def __init__(self, path: Path) -> None:
        """Create `path` and its directories.

        Raises:
            OSError: it cannot be created, or is there already (never append to
                another process's file).
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.end = 0
        """Bytes in the file: where the next append will start."""
        self.num_written = 0
        """Bytes written so far, those of an append that is under way among them."""
        self._fd = os.open(path, _CREATE, 0o644)
        self._torn = False
        status = os.fstat(self._fd)
        self._identity = status.st_dev, status.st_ino

    def lock(self) -> None:
        """Let others see that this process is at it, where the file system has locks."""
        _lock(self._fd, exclusive=True)

    def append(self, data: bytes) -> int:
        """Append all of `data`; returns the offset at which it starts.

        Raises:
            DeletedError: somebody has removed the file or closed its descriptor.
            OSError: nothing was appended.
        """
        if not self._is_ours():
            raise DeletedError(errno.EBADF, "the descriptor was closed", str(self.path))
        if self._torn:
            self._take_back()
        start = self.end
        rest = memoryview(data)
        try:
            while rest:  # in pieces, so that who waits sees that it goes on
                written = os.write(self._fd, rest[:_PIECE_BYTES])
                rest = rest[written:]
                self.num_written += written
        except OSError:
            self._torn = True
            self._take_back()
            raise
        self.end += len(data)
        # Looked at afterwards, so that no batch is believed to be safe that is not.
        if self.is_deleted():
            raise DeletedError(errno.ESTALE, "the file was deleted", str(self.path))
        return start

    def sync(self) -> None:
        """Have what was appended on the disk itself, where the file system can say so."""
        with contextlib.suppress(OSError):  # it is written; only a power cut could tell
            os.fsync(self._fd)

    def is_deleted(self) -> bool:
        """Whether somebody removed the file: writing would go nowhere, silently."""
        try:
            return os.fstat(self._fd).st_nlink == 0
        except OSError:  # a network file system says so by ESTALE
            return True

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        """Give the descriptor back. Safe to call again."""
        is_ours, fd, self._fd = self._is_ours(), self._fd, -1
        if is_ours:
            os.close(fd)

    def _is_ours(self) -> bool:
        """Whether the descriptor still is this file's.

        A program that closes all descriptors, to become a daemon, say, may since have
        given the number to a file of its own.
        """
        try:
            status = os.fstat(self._fd)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity

    def _take_back(self) -> None:
        os.ftruncate(self._fd, self.end)
        self._torn = False


def is_locked(path: Path) -> bool:
    """Whether a live process is at a file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _lock(fd, exclusive=False)
    finally:
        os.close(fd)


def _lock(fd: int, *, exclusive: bool) -> bool:
    """Lock without waiting; whether nobody else holds it, as far as one can tell."""
    try:
        import fcntl

        kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # Windows, or a file system without locks
        return True
    return True
