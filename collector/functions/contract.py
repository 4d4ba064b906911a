"""What is collected around a call: the kinds, and who takes what they find.

A call is one execution of a profiled function (or of a whole step, function `step`).
For each call that the schedule chooses, `begin` and `end` of every kind that has the
function in its set are called on the calling thread. A kind that raises is switched
off with one warning, like a source; the call itself goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from collector.format.columns import Column
    from collector.format.records import Capture
    from collector.mirror.contract import Kind as RemoteKind
    from collector.sources.contract import SourceInfo

WHOLE_STEP: Final = "step"
"""The function that stands for everything between two calls of `rec.step()`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One execution of a profiled function."""

    function: str
    phase: str
    iteration: int
    """1-based, counted per function and phase."""
    step: int
    """The training step under way."""


class Sink(Protocol):
    """Who takes what kinds find: the engine. Never raises, never blocks."""

    def put_capture(self, capture: Capture) -> bool:
        """Queue a capture; False where it had to be dropped (and was counted)."""

    def put_row(
        self,
        table: str,
        phase: str,
        columns: tuple[Column, ...],
        row: Sequence[int | float | None],
        *,
        rolled_up: bool = True,
    ) -> None:
        """Queue a row; `columns` and `row` begin with the axes (time_ns, step)."""

    def note_kind(
        self, info: SourceInfo, status: str, reason: str, remedy: str
    ) -> None:
        """Say that a kind records, or why it does not; as a "source" note."""

    @property
    def rank(self) -> int:
        """This process's rank, as far as it is known by now."""

    def artifact_dir(self) -> Path | None:
        """Directory for files beside the rank's own, which may not be there yet.

        None as long as the rank has no file; on the writer's thread it has one.
        """

    def mirror(self, kind: RemoteKind, path: Path) -> None:
        """Have a finished file copied to the mirror, where there is one."""


class Kind(Protocol):
    """One kind of collecting: snaps, hooks, activations, modules, history."""

    @property
    def info(self) -> SourceInfo:
        """Its name (the key in the configuration) and what it costs."""

    def begin(self, call: Call) -> None:
        """A collected call starts."""

    def end(self, call: Call, error: BaseException | None) -> None:
        """It has ended; what was found goes to the sink, also after an error."""

    def attach(self, model: Any, optimizers: Sequence[Any]) -> None:
        """The model and optimizers are known, or others than before."""

    def release(self) -> None:
        """The last window has ended: leave model, optimizer and torch as they were.

        May be called again, and before any call.
        """

    def close(self) -> None:
        """The recording ends: `release`, and give back everything else."""
