"""A request's time: when it is over, the request answers with what it has."""

from __future__ import annotations

import time


class Budget:
    """Seconds of work; whoever leaves work out because of it marks it exhausted."""

    def __init__(self, seconds: float, part_of: Budget | None = None) -> None:
        """`part_of` learns what this one puts off."""
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._part_of = part_of
        self.exhausted = False
        """True once some work was left out."""
        self.put_off = False
        """True once work was left out that the same question may get another time."""

    def allows(self, seconds: float = 0.0) -> bool:
        """Whether work of about that length may still be done; notes a refusal."""
        if time.monotonic() + seconds <= self._deadline:
            return True
        self.exhausted = True
        if seconds <= self._seconds:
            self.come_back()
        return False

    def come_back(self) -> None:
        """Note that the same question may get a fuller answer another time."""
        self.put_off = True
        if self._part_of is not None:
            self._part_of.come_back()
