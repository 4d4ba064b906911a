"""torch's one recording of allocator history, kept on while somebody here needs it.

There is one per process, and it may be the program's own, with settings of its own: then
it is used as it is and never touched. Where it is ours, it is turned off when the last
holder lets go, unless the program has turned it on itself meanwhile. To know that, the
functions that turn it on and off are watched for as long as it is ours.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from collector.history.allocator import Allocator


class Recording:
    """The recording of one allocator. Safe to use from any thread."""

    def __init__(self, allocator: Allocator) -> None:
        self.allocator = allocator
        self._holders: set[Hashable] = set()
        self._is_ours = False
        self._watched: list[tuple[Any, str, Any, Any]] = []
        """Owner, name, what stood there before, and what stands there now."""
        self._lock = threading.RLock()
        _recordings.add(self)

    @property
    def is_ours(self) -> bool:
        """Whether it is on because of us."""
        return self._is_ours

    def hold(self, holder: Hashable, *, max_entries: int, stacks: str) -> bool:
        """Have it on from now on; whether it is on: not before the device is in use.

        Where it is on already, it goes on as it is.
        """
        with self._lock:
            if not self.allocator.in_use():
                return False
            is_known = self._is_ours or not self.allocator.says_whether_recording
            if holder in self._holders and is_known:
                return True
            self._holders.add(holder)
            if not self.allocator.is_recording():
                self.allocator.start(max_entries=max_entries, stacks=stacks)
                self._is_ours = True
                self._watch()
            return True

    def let_go(self, holder: Hashable) -> None:
        """One holder less; the last one's leaves torch as it was found."""
        with self._lock:
            self._holders.discard(holder)
            if self._holders:
                return
            self._unwatch()
            if self._is_ours:
                self._is_ours = False
                self.allocator.stop()

    def _watch(self) -> None:
        if self._watched:
            return
        for owner, name in self.allocator.entry_points:
            before = getattr(owner, name)
            wrapper = self._wrapper(before)
            setattr(owner, name, wrapper)
            self._watched.append((owner, name, before, wrapper))

    def _unwatch(self) -> None:
        """Put the functions back; one that somebody wrapped since stays, idle."""
        for owner, name, before, wrapper in self._watched:
            if getattr(owner, name) is wrapper:
                setattr(owner, name, before)
        self._watched.clear()

    def _wrapper(self, before: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(before)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            result = before(*args, **kwargs)
            self._is_ours = False  # the program has decided, whichever way
            return result

        return wrapper

    def _after_fork(self) -> None:
        # Another thread may have held the lock at the fork, and is gone now.
        self._lock = threading.RLock()
        self._holders.clear()
        self._is_ours = False


def shared(allocator: Allocator) -> Recording:
    """The recording of a device type, the same for all recorders of the process."""
    with _lock:
        recording = _shared.get(allocator.device_type)
        if recording is None:
            recording = _shared[allocator.device_type] = Recording(allocator)
        return recording


_recordings: Final[weakref.WeakSet[Recording]] = weakref.WeakSet()
_shared: Final[weakref.WeakValueDictionary[str, Recording]] = (
    weakref.WeakValueDictionary()
)
_lock = threading.Lock()


def _after_fork() -> None:
    global _lock  # noqa: PLW0603  # another thread may have held it at the fork
    _lock = threading.Lock()
    for recording in tuple(_recordings):
        recording._after_fork()  # noqa: SLF001


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
