"""Rates from the running counters that the system keeps."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Rates:
    """Turns counters into rates per second between two calls.

    None where there is none: at the first call, and where a counter went back (it
    wrapped, or a device left) or no time has passed.
    """

    def __init__(
        self,
        counters: Callable[[], Sequence[int]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`counters` returns equally many numbers each time."""
        self._counters = counters
        self._clock = clock
        self._before: Sequence[int] | None = None
        self._time = 0.0

    def __call__(self) -> Sequence[float | None]:
        """One rate per counter."""
        now, time_now = self._counters(), self._clock()
        before, elapsed = self._before, time_now - self._time
        self._before, self._time = now, time_now
        if before is None or elapsed <= 0:
            return [None] * len(now)
        return [
            (new - old) / elapsed if new >= old else None
            for new, old in zip(now, before, strict=True)
        ]
