"""Forked children: what must be made anew in them, and locks that nobody there holds.

Another thread of the parent may have held a lock at the fork, or have been at work, and is
not there to end it.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Final, Protocol

from memboard.collector.core.plain import forgiving


class ForkResource(Protocol):
    """Something that a forked child must not use as it is."""

    def after_fork(self) -> None:
        """Be as new, or dead: this is a forked child."""


_watched: Final[weakref.WeakSet[ForkResource]] = weakref.WeakSet()


def watch(resource: ForkResource) -> None:
    """Have `after_fork` of it called in each forked child, for as long as it lives."""
    _watched.add(resource)


class ProcessLock:
    """Held as `with lock.now:`. A forked child has a new one, which nobody holds."""

    def __init__(self) -> None:
        self.now = threading.RLock()
        """The lock of this process: to be read each time."""
        watch(self)

    def after_fork(self) -> None:
        # See `ForkResource`
        self.now = threading.RLock()


def _after_fork() -> None:
    for resource in tuple(_watched):
        with forgiving:  # one that fails must not leave the others as the parent's
            resource.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
