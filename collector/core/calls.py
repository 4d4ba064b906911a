"""The contract between collected calls, the kinds of collecting, and who takes results.

A call is one execution of a profiled function (or of a whole step, function `step`).
For each call that the schedule chooses, `begin` and `end` of every kind that has the
function in its set are called on the calling thread. A kind that raises is switched
off with one warning, like a source; the call itself goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import TypeAlias

    from memboard.collector.config.templates import Kind as RemoteKind
    from memboard.collector.core.source import SourceInfo
    from memboard.collector.format.columns import Column
    from memboard.collector.format.records import Capture, CaptureTable

    Write: TypeAlias = "Callable[..., None]"
    """Writes what was found in a call, given `Results` and the findings."""
    Later: TypeAlias = "tuple[int, Write, tuple[Any, ...]]"
    """About how many bytes the findings hold, what writes them, and the findings."""

WHOLE_STEP: Final = "step"
"""The function that stands for everything between two calls of `rec.step()`."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One execution of a profiled function.

    A frozen dataclass takes twenty times as long to make, in every collected step.
    """

    function: str
    phase: str
    iteration: int
    """1-based, counted per function and phase."""
    step: int
    """The training step under way."""


class Results(Protocol):
    """Who takes rows and captures: the engine. Never raises, never blocks."""

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


class Sink(Protocol):
    """Who takes what kinds find. Never raises, never blocks."""

    def put_capture(self, capture: Capture) -> bool:
        """Queue a capture; False where it had to be dropped (and was counted)."""

    def put_later(self, size_bytes: int, write: Write, *findings: Any) -> None:
        """Have `write(results, *findings)` called on the writer's thread.

        Training may change nothing of `findings` any more. `size_bytes`: what they hold,
        about.
        """

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


class StepSink(Sink, Protocol):
    """Who takes what `Gate` passes on: the engine."""

    def put_all_later(self, findings: Sequence[Later]) -> None:
        """`put_later` for each, in their order: one hand-over for all of a step."""


class Kind(Protocol):
    """One kind of collecting: snaps, hooks, activations, modules, history."""

    @property
    def info(self) -> SourceInfo:
        """Its name (the key in the configuration) and what it costs."""

    def begin(self, call: Call) -> None: ...

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


class Gate:
    """Passes on what kinds find, unless the call turned out to be none.

    A step may turn out so at any time, so what its start leaves for later waits for its
    end, and goes on with that of the end. Captures of its start do not wait: they are
    large, and what one wants to have after a crash.
    """

    def __init__(self, sink: StepSink) -> None:
        self.shut = False
        """What is found goes nowhere; notes still pass."""
        self._sink = sink
        self.is_holding = False
        """What is put for later waits for `release` or `drop`."""
        self._held: list[Later] = []
        self.note_kind = sink.note_kind
        self.artifact_dir = sink.artifact_dir
        self.mirror = sink.mirror

    @property
    def rank(self) -> int:
        """This process's rank, as far as it is known by now."""
        return self._sink.rank

    def drop(self) -> None:
        self._held = []

    def release(self) -> None:
        """Pass on what is held."""
        held_findings, self._held = self._held, []
        if held_findings:
            self._sink.put_all_later(held_findings)

    def put_capture(self, capture: Capture) -> bool:
        """Pass it on, or drop it where the gate is shut."""
        return self.shut or self._sink.put_capture(capture)

    def put_later(self, size_bytes: int, write: Write, *findings: Any) -> None:
        """Pass it on, hold it or drop it."""
        if self.is_holding:
            self._held.append((size_bytes, write, findings))
        elif not self.shut:
            self._sink.put_later(size_bytes, write, *findings)


class LaterTables(Mapping[str, "CaptureTable"]):
    """A capture's tables, made when they are first read: on the writer's thread.

    Training does not wait for them: what happened is handed on as it was noted, and what
    that comes to is worked out where it is encoded.
    """

    def __init__(
        self,
        make: Callable[[], Mapping[str, CaptureTable]],
        size_bytes: int,
        num_rows: int = 0,
    ) -> None:
        """`size_bytes`: of what is held until they are made, or of them, about.

        `num_rows`: of what must not wait in any number.
        """
        self.size_bytes = size_bytes
        self.num_rows = num_rows
        self._make: Callable[[], Mapping[str, CaptureTable]] | None = make
        self._tables: Mapping[str, CaptureTable] = {}
        self._lock = threading.Lock()

    @property
    def is_made(self) -> bool:
        """Whether they have let go of what they are made from."""
        return self._make is None

    def made(self) -> Mapping[str, CaptureTable]:
        with self._lock:
            if self._make is not None:
                self._tables, self._make = self._make(), None
            return self._tables

    def __getitem__(self, name: str) -> CaptureTable:
        return self.made()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.made())

    def __len__(self) -> int:
        return len(self.made())

    # To be counted while they wait they must have a place in sets, unmade.

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)
