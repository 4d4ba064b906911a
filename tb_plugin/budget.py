"""How long one request may work before it answers with what it has."""

from __future__ import annotations

import time
from typing import Final

MOST_STRETCH: Final = 4
"""A part may get so many times its own time, once the question was asked again."""


class Budget:
    """Seconds of work; whoever leaves work out because of it marks it exhausted."""

    def __init__(self, seconds: float, part_of: Budget | None = None) -> None:
        """`part_of` stretches this one, and learns what it puts off."""
        stretch: int = 1 if part_of is None else part_of.stretch
        self._most_seconds = seconds if part_of is None else seconds * MOST_STRETCH
        self._deadline = time.monotonic() + seconds * stretch
        self._part_of = part_of
        self.stretch: int = 1
        """How many times longer its parts may take, at most `MOST_STRETCH`."""
        self.exhausted = False
        """True once some work was left out."""
        self.put_off = False
        """True once work was left out that the same question may get another time."""

    def allows(self, seconds: float = 0.0) -> bool:
        """Whether work of about that length may still be done; notes a refusal."""
        if time.monotonic() + seconds <= self._deadline:
            return True
        self.exhausted = True
        if seconds <= self._most_seconds:
            self.come_back()
        return False

    def come_back(self) -> None:
        """Note that the same question may get a fuller answer another time."""
        self.put_off = True
        if self._part_of is not None:
            self._part_of.come_back()
