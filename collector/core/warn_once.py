"""What goes wrong while training runs: told once each, with the remedy, never raised."""

from __future__ import annotations

import contextlib
import errno
import logging
from typing import Final

from collector.sources.contract import FILES_REMEDY, OUT_OF_FILES

logger: Final = logging.getLogger("memboard")

_NO_SPACE: Final = {errno.ENOSPC, errno.EDQUOT}
_NOT_ALLOWED: Final = {errno.EACCES, errno.EPERM, errno.EROFS}
_NOT_THERE: Final = {errno.ENOENT, errno.ENOTDIR, errno.ESTALE, errno.EEXIST}


class Troubles:
    """Tells each kind of trouble once; thereafter it is silent about it."""

    def __init__(self) -> None:
        self._told: dict[str, object] = {}

    def tell(
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
    with contextlib.suppress(Exception):
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
        return FILES_REMEDY
    if error.errno == errno.ENAMETOOLONG:
        return "Record into a directory with a shorter path."
    return "Check the file system, or record into another directory."
