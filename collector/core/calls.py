"""The contract between collected calls, the kinds of collecting, and who takes results.

A call is one execution of a profiled function (or of a whole step, function `step`).
For each call that the schedule chooses, `begin` and `end` of every kind that has the
function in its set are called on the calling thread. A kind that raises is switched
off with one warning, like a source; the call itself goes on.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from memboard.collector.config.templates import Kind as RemoteKind
    from memboard.collector.core.source import SourceInfo
    from memboard.collector.format.columns import Column
    from memboard.collector.format.records import Capture, CaptureTable

Value = TypeVar("Value")

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

    A step may turn out so at any time, so the rows of its start wait for its end. Captures
    of its start do not: they are large, and what one wants to have after a crash.
    """

    def __init__(self, sink: Sink) -> None:
        self.shut = False
        """Rows and captures go nowhere; notes still pass."""
        self._sink = sink
        self._held: list[tuple[Any, ...]] = []
        self._holding = False
        self.note_kind = sink.note_kind
        self.artifact_dir = sink.artifact_dir
        self.mirror = sink.mirror

    @property
    def rank(self) -> int:
        """This process's rank, as far as it is known by now."""
        return self._sink.rank

    def hold(self) -> None:
        """Keep rows for `release` or `drop`, until `pass_on`."""
        self._holding = True

    def pass_on(self) -> None:
        """Hold no more of them."""
        self._holding = False

    def drop(self) -> None:
        self._held = []

    def release(self) -> None:
        """Pass on what is held."""
        held, self._held = self._held, []
        for table, phase, columns, row, rolled_up in held:
            self._sink.put_row(table, phase, columns, row, rolled_up=rolled_up)

    def put_capture(self, capture: Capture) -> bool:
        """Pass it on, or drop it where the gate is shut."""
        return self.shut or self._sink.put_capture(capture)

    def put_row(
        self,
        table: str,
        phase: str,
        columns: tuple[Column, ...],
        row: Sequence[int | float | None],
        *,
        rolled_up: bool = True,
    ) -> None:
        """Pass it on, hold it or drop it."""
        if self._holding:
            self._held.append((table, phase, columns, row, rolled_up))
        elif not self.shut:
            self._sink.put_row(table, phase, columns, row, rolled_up=rolled_up)


class LazyMapping(Mapping[str, Value]):
    """A mapping that is made when it is first asked for: on the writer's thread.

    Training does not wait for it: what happened is handed on as it was noted, and what
    that comes to is worked out where it is encoded.
    """

    def __init__(self, make: Callable[[], Mapping[str, Value]]) -> None:
        self._make: Callable[[], Mapping[str, Value]] | None = make
        self._values: Mapping[str, Value] = {}
        self._lock = threading.Lock()

    @property
    def is_made(self) -> bool:
        """Whether it has let go of what it is made from."""
        return self._make is None

    def made(self) -> Mapping[str, Value]:
        with self._lock:
            if self._make is not None:
                self._values, self._make = self._make(), None
            return self._values

    def __getitem__(self, name: str) -> Value:
        return self.made()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.made())

    def __len__(self) -> int:
        return len(self.made())

    # To be counted while it waits it must have a place in sets, unmade.

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


class LaterTables(LazyMapping["CaptureTable"]):
    def __init__(
        self,
        make: Callable[[], Mapping[str, CaptureTable]],
        size_bytes: int,
        num_rows: int = 0,
    ) -> None:
        """`size_bytes`: of what is held until they are made, or of them, about.

        `num_rows`: of what must not wait in any number.
        """
        super().__init__(make)
        self.size_bytes = size_bytes
        self.num_rows = num_rows


class LaterNumber(partial["float | None"]):
    """A number in a row: what a function returns when the row is encoded.

    None: there is none, it is NaN. The function may be called several times.
    """

    __slots__ = ()

    def __int__(self) -> int:
        found = self()
        return int(math.nan if found is None else found)

    def __float__(self) -> float:
        found = self()
        return math.nan if found is None else float(found)
