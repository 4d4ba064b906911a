"""Queues the measurements of collected calls until they are rows and captures.

A call's end is in the middle of training, so it only hands over what it has found, and
rows and captures are made of that on the writer's thread. Where that is late, because a
disk hangs, the thread that trains makes them itself: so their own queues, which are
bounded and count what they drop, stay the only ones that drop anything.
"""

from __future__ import annotations

import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.guard import Block, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.collector.core.calls import Later, Results, Write
    from memboard.collector.core.warn_once import WarnOnce

_MANY_BYTES: Final = 1 << 24
_MANY: Final = 1024
"""So many wait for the writer, or so large, before training makes rows of them itself."""

_PATIENCE_SECONDS: Final = 0.1
"""Longest wait of the writer for training that does so: a signal may have interrupted it,
and its handler may wait for the writer."""


class CallQueue:
    """`put` is for training, one thread at a time; the rest for any thread."""

    def __init__(self, results: Results, warn_once: WarnOnce) -> None:
        self._results = results
        self._warn_once = warn_once
        self._waiting: deque[Later] = deque()
        self._bytes_put = self._bytes_written = 0
        # Reentrant: a recording may end in the middle of `write`, by an exception.
        self._lock = threading.RLock()

    def put(self, size_bytes: int, write: Write, *findings: Any) -> None:
        """Have `write(results, *findings)` called soon, in the order of calls of this."""
        self.put_all([(size_bytes, write, findings)])

    def put_all(self, findings: Sequence[Later]) -> None:
        """The same for several, in their order."""
        waiting = self._waiting
        waiting.extend(findings)
        for size_bytes, _, _ in findings:
            self._bytes_put += size_bytes
        is_much = self._bytes_put - self._bytes_written > _MANY_BYTES
        if (is_much or len(waiting) > _MANY) and self._lock.acquire(blocking=False):
            try:
                self._write_all()
            finally:
                self._lock.release()

    def write(self) -> None:
        """Make rows and captures of all that waits; never raises."""
        is_mine = self._lock.acquire(timeout=_PATIENCE_SECONDS)
        try:
            self._write_all()
        finally:
            if is_mine:
                self._lock.release()

    def forget(self) -> None:
        """In a forked child: it is the parent's."""
        self._waiting.clear()

    def _write_all(self) -> None:
        for _ in range(len(self._waiting)):  # not what comes meanwhile, without an end
            try:
                size_bytes, write, findings = self._waiting.popleft()
            except IndexError:  # another thread was faster
                return
            self._bytes_written += size_bytes
            with Block(partial(say, self._warn_once, "collecting")):
                write(self._results, *findings)
