"""Splits a step's time on the training thread: each moment belongs to one part.

Parts lie inside one another (an optimizer's closure runs forward and backward): time
belongs to the innermost one. What all of them take is therefore never more than the step,
and what is in none of them is the rest.
"""

from __future__ import annotations

import threading
from typing import Final

from memboard.collector.format.columns import STEP_PARTS

INDEX: Final = {part: index for index, part in enumerate(STEP_PARTS)}
"""Index of each part, by name."""


class StepParts:
    """Of one recording. All but `innermost` is for the training thread alone."""

    def __init__(self) -> None:
        """On the thread that trains, as far as is known."""
        self.thread = threading.get_ident()
        self._fresh: list[float | None] = [None] * len(STEP_PARTS)
        """What a step begins with: 0 for each part that would be seen."""
        self._seconds = self._fresh.copy()
        """Of the step under way, by part; None: it would not be seen."""
        self._open: list[int] = []
        self._since_ns = 0

    def innermost(self) -> int:
        """The part under way on the calling thread, -1 where there is none."""
        if not self._open:
            return -1
        # A slice, as the list may be another thread's from one moment to the next.
        innermost = self._open[-1:]
        is_here = innermost and threading.get_ident() == self.thread
        return innermost[0] if is_here else -1

    def see(self, part: str, *, sees: bool = True) -> None:
        """Whether a part would be seen if it came."""
        index = INDEX[part]
        self._seconds[index] = (self._seconds[index] or 0.0) if sees else None
        self._fresh[index] = 0.0 if sees else None

    def begin(self, part: int, now_ns: int) -> int:
        """A part begins; what comes back is for its `end`."""
        under_way = self._open
        if under_way:
            self._pass(now_ns)
        else:
            self._since_ns = now_ns
        if self._seconds[part] is None:
            self._fresh[part] = self._seconds[part] = 0.0
        under_way.append(part)
        return len(under_way)

    def end(self, place: int, now_ns: int) -> None:
        """It has ended, and with it all that began within it and never ended."""
        under_way = self._open
        if len(under_way) >= place:
            self._pass(now_ns)
            del under_way[place - 1 :]

    def take(self, now_ns: int) -> list[float | None]:
        """Seconds by part since the last time; what is under way goes on."""
        self._pass(now_ns)
        self.thread = threading.get_ident()
        seconds, self._seconds = self._seconds, self._fresh.copy()
        return seconds

    def _pass(self, now_ns: int) -> None:
        """Time has passed: it belongs to the innermost part, where there is one."""
        for part in self._open[-1:]:
            so_far = self._seconds[part] or 0.0
            self._seconds[part] = so_far + (now_ns - self._since_ns) * 1e-9
        self._since_ns = now_ns
