"""What can be done with files, wherever they lie: a part of what `os` does.

OSError
└── StorageError         a store refused, or is away: what, and what to do
    └── PendingError     not known yet; it was asked for, and is there in a moment
"""

from __future__ import annotations

import errno
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from typing_extensions import Self


class StorageError(OSError):
    """A store gives nothing."""

    def __init__(self, what: str, remedy: str, code: int = errno.EIO) -> None:
        """`what` is a sentence."""
        super().__init__(code, what.rstrip("."))
        self.remedy = remedy

    def anew(self) -> StorageError:
        """The same to be raised again: one instance would keep every caller's frames."""
        return StorageError(str(self.strerror), self.remedy, self.errno or errno.EIO)


class PendingError(StorageError):
    """What was asked for is on its way."""

    def __init__(self) -> None:
        super().__init__("It is being read.", "Wait a moment.", errno.EAGAIN)


class Status(Protocol):
    """Of a file or folder; `os.stat_result` is one."""

    @property
    def st_mode(self) -> int:
        """What it is."""

    @property
    def st_size(self) -> int:
        """Bytes."""

    @property
    def st_mtime_ns(self) -> int:
        """When it was written."""

    @property
    def st_dev(self) -> int:
        """Where it lies."""

    @property
    def st_ino(self) -> int:
        """The same while it is the same file, which may grow."""


class FixedStatus(NamedTuple):
    """A status that somebody made."""

    st_mode: int
    st_size: int
    st_mtime_ns: int
    st_dev: int
    st_ino: int


class Entry(Protocol):
    """One name in a folder; `os.DirEntry` is one."""

    @property
    def name(self) -> str:
        """Base name."""

    @property
    def path(self) -> str:
        """The folder's path, a separator, the name."""

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a folder."""

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a plain file."""

    def is_symlink(self) -> bool:
        """Whether it is a link."""

    def stat(self, *, follow_symlinks: bool = True) -> Status:
        """Its status."""


class Ranges(Protocol):
    """A plain file, read piece by piece."""

    def __enter__(self) -> Self:
        """Itself."""

    def __exit__(self, *error: object) -> None:
        """Close it."""

    def status(self) -> Status:
        """Of what was opened."""

    def pread(self, length: int, offset: int) -> bytes:
        """At most `length` bytes from `offset`; fewer at the end."""

    def close(self) -> None:
        """Give back what it holds."""


class Storage(Protocol):
    """Files at one place. Every method may raise an OSError."""

    def scandir(self, path: str) -> AbstractContextManager[Iterator[Entry]]:
        """What a folder holds, as far as that is known."""

    def stat(self, path: str) -> Status:
        """Of what a path leads to."""

    def lstat(self, path: str) -> Status:
        """Of what lies at a path."""

    def realpath(self, path: str) -> str:
        """The path without links and `..`."""

    def isdir(self, path: str) -> bool:
        """Whether there is a folder."""

    def peek(self, path: str, start: int, length: int) -> bytes:
        """Some bytes of a plain file, of anything else none; `start` < 0: from its end.

        Raises:
            PendingError: they are being fetched; ask again.
        """

    def ranges(self, path: str) -> Ranges:
        """Open a plain file for pieces of it."""

    def open(self, path: str) -> tuple[IO[bytes], Status]:
        """Open a plain file to be read and sought in; no link is followed."""

    def descriptor(self, path: str, status: Status, *, follow: bool) -> IO[Any]:
        """A file with a descriptor that another process can read, at its start.

        `status`: what a listing said; a store's file is copied, if it still is that, into
        one without a name, which is gone when it is closed.
        """

    def ahead(self, paths: Iterable[str]) -> None:
        """Have both ends of files fetched that will be read next; does not wait."""

    def is_another(self, path: str, file: IO[Any], status: Status) -> bool:
        """Whether a file that `descriptor` gave was written to since it had a status."""
