"""Whether a thread that somebody waits for still does anything."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable


class ThreadProgress:
    """Watches one thread for whoever waits: it writes, computes, or does neither."""

    def __init__(self, thread: threading.Thread, count: Callable[[], int]) -> None:
        """`count`: rises with what it has done: bytes written, pieces of work."""
        self._thread = thread
        self._count = count
        self._done = self._progress()
        self._moved = time.monotonic()

    def idle_seconds(self) -> float:
        """How long it has done nothing, as far as this was asked."""
        now, before, self._done = time.monotonic(), self._done, self._progress()
        if self._done != before:
            self._moved = now
        return now - self._moved

    def _progress(self) -> tuple[int, float]:
        """What it has done, and seconds of a processor."""
        seconds = 0.0
        clock = getattr(time, "pthread_getcpuclockid", None)  # not on macOS and Windows
        ident = self._thread.ident
        if clock is not None and ident is not None and self._thread.is_alive():
            with contextlib.suppress(OSError):  # it has just ended
                seconds = time.clock_gettime(clock(ident))
        return self._count(), seconds
