"""What the training thread rings to wake the writer."""

from __future__ import annotations

import contextlib
from queue import Empty, SimpleQueue


class Bell:
    """Wakes one waiting thread.

    An Event's `set` takes a lock, so a signal handler that interrupts it and sets it
    again would wait for itself; a `SimpleQueue` may be entered again at any point.
    """

    def __init__(self) -> None:
        self._rings: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        """Wake who waits, or who will."""
        self._rings.put(None)

    def wait(self, timeout: float) -> None:
        """Until rung, at most `timeout` seconds; earlier rings count as one."""
        with contextlib.suppress(Empty):
            self._rings.get(timeout=timeout)
            while True:
                self._rings.get_nowait()
