"""The clock that stamps records: wall time when it started, monotonic from there.

A wall clock may be set while training runs, also backwards. The times of a recording do
not follow: differences between them stay true, and order stays order. How far the wall
clock has gone away is a figure of its own (`ahead_ns`), so that what other programs
stamped with the wall clock (torch's profiler) can be brought onto this clock.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from memboard.collector.format.records import ClockAnchor

if TYPE_CHECKING:
    from collections.abc import Callable

_READINGS: Final = 5
"""The wall clock is read between two readings of the other; the closest pair counts."""

_KEEP_NS: Final = 1_000_000
"""A wall clock this close needs no new start."""


class ProcessClock:
    """Nanoseconds since 1970, never going back. Safe to use from any thread."""

    def __init__(
        self,
        wall_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self.to_wall_ns = 0
        """Add it to a monotonic time to get a recorded one."""
        self.to_wall_ns = self.ahead_ns()

    def now_ns(self) -> int:
        """Now, as records are stamped."""
        return self._monotonic_ns() + self.to_wall_ns

    def ahead_ns(self) -> int:
        """How far the wall clock is ahead of this one: 0 until somebody sets it."""
        best, width = 0, -1
        for _ in range(_READINGS):
            before = self._monotonic_ns()
            wall = self._wall_ns()
            after = self._monotonic_ns()
            if width < 0 or after - before < width:
                width = after - before
                best = wall - (before + after) // 2
        return best - self.to_wall_ns

    def anchor(self) -> ClockAnchor:
        """Both clocks now: a recorded time is wall_ns plus what monotonic_ns has grown."""
        monotonic = self._monotonic_ns()
        return ClockAnchor(wall_ns=monotonic + self.to_wall_ns, monotonic_ns=monotonic)

    def restart(self) -> None:
        """Go by the wall clock again, where it was set. Not while anybody records."""
        ahead = self.ahead_ns()
        if abs(ahead) > _KEEP_NS:
            self.to_wall_ns += ahead


PROCESS_CLOCK: Final = ProcessClock()
"""Of this process: all its recordings share it."""

now_ns: Final = PROCESS_CLOCK.now_ns
"""Now, as records of this process are stamped."""
