"""How long one request may work before it answers with what it has."""

from __future__ import annotations

import time


class Budget:
    """Seconds of work; whoever leaves work out because of it marks it exhausted."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self.exhausted = False
        """True once some work was left out."""

    def allows(self, seconds: float = 0.0) -> bool:
        """Whether work of about that length may still be done; notes a refusal."""
        if time.monotonic() + seconds <= self._deadline:
            return True
        self.exhausted = True
        return False
