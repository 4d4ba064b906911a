"""What is left of a recording in a process that it was sent to: nothing is recorded."""

from __future__ import annotations

from typing import Any


class Inert:
    """Takes what spans, loaders and profiled functions tell, as `Recording` does."""

    span_log = None

    def begin_batch(self, iterator: Any) -> None:
        """Do nothing."""

    def end_batch(self, begun: Any, *, has_come: bool) -> None:
        """Do nothing."""

    def begin_call(self, function: str) -> None:
        """Do nothing."""

    def end_call(self, call: Any, error: BaseException | None) -> None:
        """Do nothing."""

    def passed(self, error: BaseException) -> None:
        """Do nothing."""
