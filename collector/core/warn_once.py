"""Warnings while training runs: each logged once, with its remedy, never raised."""

from __future__ import annotations

import errno
import logging
from typing import Final

from memboard.collector.core.plain import forgiving

logger: Final = logging.getLogger("memboard")

OUT_OF_FILES: Final = {errno.EMFILE, errno.ENFILE}
_FILES_REMEDY: Final = (
    "Raise the limit on open files (ulimit -n), or find what leaves files open."
)
_NO_SPACE: Final = {errno.ENOSPC, errno.EDQUOT}
_NOT_ALLOWED: Final = {errno.EACCES, errno.EPERM, errno.EROFS}
_NOT_THERE: Final = {errno.ENOENT, errno.ENOTDIR, errno.ESTALE, errno.EEXIST}


class WarnOnce:
    """Logs a warning once for each key."""

    def __init__(self) -> None:
        self._told: dict[str, object] = {}

    def __call__(
        self, key: str, message: str, *args: object, error: BaseException | None = None
    ) -> None:
        """Log a warning, with the traceback of `error`, the first time for `key`."""
        # In one step, and without a lock that a fork may leave held in the child.
        mine = object()
        if self._told.setdefault(key, mine) is not mine:
            return
        warn(message, *args, error=error)


def warn(message: str, *args: object, error: BaseException | None = None) -> None:
    """Log a warning; a handler of the user's that raises must not stop training."""
    with forgiving:
        logger.warning(f"memboard: {message}", *args, exc_info=error)  # noqa: G004


def remedy_for(error: OSError) -> str:
    """What the user can do about a file that cannot be written."""
    if error.errno in _NO_SPACE:
        return "Free space there, or record into another directory."
    if error.errno in _NOT_ALLOWED:
        return "Make the directory writable, or record into another one."
    if error.errno in _NOT_THERE:
        return "Make sure that the path is a directory, or record into another one."
    if error.errno in OUT_OF_FILES:
        return _FILES_REMEDY
    if error.errno == errno.ENAMETOOLONG:
        return "Record into a directory with a shorter path."
    return "Check the file system, or record into another directory."


def remedy_of(setting: str, error: BaseException) -> str:
    """What the user can do about a part that raised; it is tried again by itself."""
    if isinstance(error, OSError) and error.errno in OUT_OF_FILES:
        return f"{_FILES_REMEDY} MemBoard tries again from time to time."
    return (
        "MemBoard tries again from time to time. If it goes on failing, switch it off"
        f" with {setting}=False, and report this."
    )
