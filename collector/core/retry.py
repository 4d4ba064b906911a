"""Pauses between two tries of what has failed: each is longer than the one before.

Being out of file descriptors, say, passes. What comes and goes must not fill a recording
with notes and a log with lines, though: pauses that only ever grow see to that.
"""

from __future__ import annotations

import time
from typing import Final

FIRST_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 600.0


class Retry:
    """Of one thing that can fail."""

    __slots__ = ("_due", "_num_failures")

    def __init__(self) -> None:
        self._num_failures = 0
        self._due = 0.0

    def failed(self) -> float:
        """It has failed, once more perhaps: the pause from now, in seconds."""
        # Past this many doublings the longest pause holds anyway.
        doublings = min(self._num_failures, 30)
        pause = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0**doublings)
        self._num_failures += 1
        self._due = time.monotonic() + pause
        return pause

    def is_due(self) -> bool:
        """Whether it may be tried now."""
        return time.monotonic() >= self._due
