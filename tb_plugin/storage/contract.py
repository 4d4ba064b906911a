"""Files wherever they lie: a part of what `os` does.

OSError
└── StorageError         a store refused, or is away: what, and what to do
    └── PendingError     not known yet; it was requested, and is there in a moment
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import os


class StorageError(OSError):
    def __init__(self, what: str, remedy: str, code: int = errno.EIO) -> None:
        # `what` is a sentence
        super().__init__(code, what.rstrip("."))
        self.remedy = remedy

    def anew(self) -> StorageError:
        """The same to be raised again: one instance would keep every caller's frames."""
        return StorageError(str(self.strerror), self.remedy, self.errno or errno.EIO)


class PendingError(StorageError):
    """What was requested is on its way."""

    def __init__(self) -> None:
        super().__init__("It is being read.", "Wait a moment.", errno.EAGAIN)


class FixedStatus(NamedTuple):
    """A status that somebody made."""

    st_mode: int
    st_size: int
    st_mtime_ns: int
    st_dev: int
    st_ino: int
    """The same while it is the same file, which may grow."""


Status: TypeAlias = "os.stat_result | FixedStatus"
