"""A recorder that is switched off: no thread, no file, no import, every call a return."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from collector.recorder import Recorder
from collector.steps.compiled import traced_as
from collector.steps.progress import PhaseBlock
from collector.steps.spans.spans import NoSpan, Span, no_span

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from collector.steps.loader import RecordedLoader
    from collector.steps.spans.how import States
    from collector.torch_profiler.kept import SavedTrace

Batch = TypeVar("Batch")

_NO_SPAN = NoSpan()
_NO_BLOCK = PhaseBlock(str, None)


class NullRecorder(Recorder):
    """What `record` returns where it is switched off or cannot start."""

    def __init__(self) -> None:  # the live recorder's would start one
        pass

    def step(
        self,
        step: int | None = None,
        *,
        tokens: int | None = None,
        samples: int | None = None,
    ) -> None:
        """Do nothing."""

    def attach(
        self, *, model: Any = None, optimizer: Any = None, mesh: Any = None
    ) -> None:
        """Do nothing."""

    def track_inputs(self, *inputs: Any) -> None:
        """Do nothing."""

    def epoch(self, n: int, length: int | None = None) -> None:
        """Do nothing."""

    def phase(self, name: str) -> PhaseBlock:  # noqa: ARG002
        """Return a block that does nothing."""
        return _NO_BLOCK

    def loader(self, dataloader: Iterable[Batch]) -> RecordedLoader[Batch]:
        """Return the dataloader itself."""
        return dataloader  # type: ignore[return-value]  # it is all that a wrapper is

    def span(  # as the live recorder's
        self,
        name: str,  # noqa: ARG002
        *,
        category: str = "",  # noqa: ARG002
        states: States = None,  # noqa: ARG002
        args: dict[str, Any] | None = None,  # noqa: ARG002
        memory: bool = False,  # noqa: ARG002
    ) -> Span:
        """Return a span that does nothing; as a decorator, the function itself."""
        return _NO_SPAN

    traced_as(span, no_span)

    def instant(self, name: str, *, states: States = None, **args: Any) -> None:
        """Do nothing."""

    def log(self, values: Mapping[str, float], *, states: States = None) -> None:
        """Do nothing."""

    def mark(self, label: str) -> None:
        """Do nothing."""

    def snapshot(self, label: str) -> bool:  # noqa: ARG002
        """There is nothing to capture."""
        return False

    def flush(self, timeout: float = 0.0) -> bool:  # noqa: ARG002
        """Nothing is pending, and nothing is on disk."""
        return False

    def close(self) -> None:
        """Do nothing."""

    def _enter_phase(self, name: str) -> None:
        """For what was pickled with a live recorder."""

    @property
    def path(self) -> Path | None:
        """There is no file."""
        return None

    @property
    def run_dir(self) -> Path:
        """There is none; where the process runs."""
        return Path()

    @property
    def rank(self) -> int:
        """Not asked for; 0."""
        return 0

    @property
    def attempt(self) -> str:
        """There is none."""
        return ""

    @property
    def num_batches(self) -> int:
        """Nothing is counted."""
        return 0

    @property
    def num_steps(self) -> int:
        """Nothing is counted."""
        return 0

    @property
    def num_dropped(self) -> int:
        """Nothing is dropped."""
        return 0

    @property
    def saved_traces(self) -> tuple[SavedTrace, ...]:
        """There are none."""
        return ()
