"""A recording that records nothing: switched off, failed to start, or sent elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collector.torch_profiler.kept import SavedTrace


class Inert:
    """Takes what recorders, spans, loaders and profiled functions tell, as `Recording`."""

    is_live: Final = False
    span_log: Final = None
    path: Final = None
    run_dir: Final = Path()
    rank: Final = 0
    attempt: Final = ""
    num_batches: Final = 0
    num_steps: Final = 0
    num_dropped: Final = 0
    saved_traces: Final[tuple[SavedTrace, ...]] = ()

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

    def close_for(self, error: BaseException | None) -> None:
        """Do nothing."""

    def __reduce__(self) -> tuple[Any, ...]:
        return inert, ()


INERT: Final[Any] = Inert()  # stands where a `Recording` does


def inert() -> Any:
    """The one there is: what a pickled recording becomes."""
    return INERT
