"""The progress of training: phases, their step counters, and what the user reported.

Each phase counts its own steps from 0, or from where the user's own numbers lead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memboard.collector.core.compiling import untraced
from memboard.collector.core.plain import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from typing_extensions import Self

TRAIN: Final = "train"
"""The phase a recording starts in."""

OTHER: Final = "other"
"""Stands for all phases beyond `MAX_PHASES`."""

MAX_PHASES: Final = 32
"""Each phase costs a table; names made up in a loop must not cost memory for ever."""

_MAX_NAME: Final = 200


@dataclass(slots=True, eq=False)
class Phase:
    name: str
    next_step: int = 0
    num_steps: int = 0
    """Steps taken, whatever their numbers."""
    last_ns: int | None = None
    """Monotonic end of the step before; None where the next has no beginning."""
    samples: int | None = None
    tokens: int | None = None
    """Totals; None as long as nobody reported any."""
    samples_by: tuple[int, int] = (0, 0)
    tokens_by: tuple[int, int] = (0, 0)
    """What the last two reports added, the newer one last; 0: there was none."""


class Progress:
    """The phases of one recording, one of them current."""

    def __init__(self) -> None:
        self.train = Phase(TRAIN)
        self.phases: dict[str, Phase] = {TRAIN: self.train}
        self.phase = self.train
        self.epoch: int | None = None
        self.moment: Callable[[], Mapping[str, object]] | None = None
        """What the training itself counts, by `memboard.collector.config.templates.MOMENT`'s names;
        goes before what is counted here."""
        self._left: tuple[int, type, str] | None = None
        """The exception that left a phase's block, and that phase. Not the object, which
        would hold tensors."""

    @property
    def train_step(self) -> int:
        """The training step under way: rows of timed sources belong to it."""
        return self.train.next_step

    def enter(self, name: object, now_ns: int) -> Phase:
        """Make a phase the current one; its next step begins now."""
        text = text_of(name, _MAX_NAME) or TRAIN
        if text not in self.phases and len(self.phases) >= MAX_PHASES:
            text = OTHER
        phase = self.phases.setdefault(text, Phase(text))
        phase.last_ns = now_ns
        self.phase = phase
        return phase

    def advance(self, step: int | None) -> tuple[int, int | None]:
        """Count a step of the current phase: its number, and the one it went back from.

        A number that does not grow is taken as it is; the second is None where it does.
        """
        phase = self.phase
        number = phase.next_step if step is None else step
        self._left = None  # whatever left a block was caught, as training goes on
        back = phase.next_step - 1 if phase.num_steps else None
        phase.next_step = number + 1
        phase.num_steps += 1
        return number, back if back is not None and number < back else None

    def left_by(self, error: BaseException) -> None:
        """An exception leaves the current phase's block; of nested ones the first counts."""
        if self._left is None or self._left[:2] != (id(error), type(error)):
            self._left = id(error), type(error), self.phase.name

    def phase_of(self, error: BaseException | None) -> str:
        """The phase an exception came from, where it left a block; else the current one."""
        left = self._left
        if error is None or left is None or left[:2] != (id(error), type(error)):
            return self.phase.name
        return left[2]

    def report(self, *, tokens: int | None, samples: int | None) -> None:
        """Add to the current phase's totals."""
        phase = self.phase
        if tokens is not None:
            phase.tokens_by = (phase.tokens_by[1], tokens)
            phase.tokens = (phase.tokens or 0) + tokens
        if samples is not None:
            phase.samples_by = (phase.samples_by[1], samples)
            phase.samples = (phase.samples or 0) + samples


class PhaseBlock:
    """The `with` half of `Recorder.phase`: afterwards the phase before continues."""

    __slots__ = ("_before", "_enter", "_progress")

    def __init__(
        self,
        enter: Callable[[str], object],
        before: str | None,
        progress: Progress | None = None,
    ) -> None:
        """`progress`: is told of an exception that leaves the block."""
        self._enter = enter
        self._before = before
        self._progress = progress

    def __enter__(self) -> Self:
        return self

    @untraced
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._before is not None:
            if error is not None and self._progress is not None:
                self._progress.left_by(error)
            self._enter(self._before)
