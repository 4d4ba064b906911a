"""Locks that guard what is one for the whole process, in forked children too."""

from __future__ import annotations

import os
import threading
from typing import Final


class ProcessLock:
    """Held as `with lock.now:`. A forked child has a new one, which nobody holds.

    Another thread may have held the old one at the fork, and is not there to let it go.
    """

    def __init__(self) -> None:
        self.now = threading.RLock()
        """The lock of this process: to be asked for each time."""
        _locks.append(self)


_locks: Final[list[ProcessLock]] = []
"""All there are: they stand in modules and are never given up."""


def _after_fork() -> None:
    for lock in _locks:
        lock.now = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
