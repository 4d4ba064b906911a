"""The recording of a program on a virtual GPU, which ends after a few steps.

The steps are those of whoever records: the program, its trainer, or its optimizers. At
the end figures and a capture of the allocator are taken, and `StepLimitReached` is raised where the
step was told: `finally` and `with` blocks of the program run, and it exits with 0.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, Final, NoReturn

from memboard.collector.format.prediction import NOTE
from memboard.collector.process import lifecycle
from memboard.collector.running.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from memboard.collector.format.prediction import Prediction
    from memboard.collector.running.session import Settings

CAPTURE: Final = "the end of the prediction"
"""The label of the capture."""

_MORE_ITERATIONS: Final = 2
"""Iterations beyond the steps, before a program whose recorder does not step is stopped."""

CLOSE_SECONDS: Final = 100.0
"""A prediction waits for its recording: both are one answer."""

_END_SECONDS: Final = 30.0
"""Time for a program to end by itself, before it is ended."""


class StepLimitReached(SystemExit):
    pass


class StoppingSession(Session):
    """A session that ends the program."""

    close_seconds = CLOSE_SECONDS

    def __init__(
        self,
        settings: Settings,
        steps: int,
        *,
        earlier: Prediction,
        ending: Callable[[BaseException | None], Prediction],
        between: Callable[[], None],
        stop: Callable[[], None],
    ) -> None:
        """What recordings are told, and who is told that it is enough.

        Args:
            settings: of the recording.
            steps: how many are enough.
            earlier: what is known before the program begins.
            ending: what is known where a recording ends by that exception, or by none.
            between: called after each step that is followed by others.
            stop: called once, before `StepLimitReached` is raised; it must not raise.
        """
        super().__init__(settings)
        self._known = earlier
        self._ending = ending
        self._between = between
        self._notes: list[lifecycle.Note] = []
        """Of the recordings that live."""
        self._is_told = False
        self.is_stopped = False
        self._steps = steps
        self._stop = stop
        self._num_iterations = 0

    def recording_begins(self, run_dir: Path) -> Path:
        """Whatever the program calls its run: a real one must not be mixed with this."""
        super().recording_begins(run_dir)
        return self._settings.run_dir

    def recording_begun(self, note: lifecycle.Note) -> None:
        """It has the estimates from its beginning: the process may not live to its end."""
        self._notes.append(note)
        self._guarded("note it", lambda: note(NOTE, self._known.to_note()))

    def recording_ends(self, note: lifecycle.Note, error: BaseException | None) -> None:
        """One that ends before the process does has what is known by then."""
        if note not in self._notes:
            return  # it could not begin
        if not self._is_told:
            self._guarded("judge it", lambda: note(NOTE, self._ending(error).to_note()))
        self._notes.remove(note)

    def tell(self, prediction: Prediction) -> None:
        """What came of the process; nothing more is told."""
        self._is_told = True
        self._known = prediction
        for note in self._notes:
            note(NOTE, prediction.to_note())

    def step_taken(self, recorder: Any) -> None:
        """Stop where it was the last one."""
        super().step_taken(recorder)
        if recorder.num_steps >= self._steps:
            self._end()
        self._between()

    def iterated(self) -> None:
        """Stop where the program's recorder does not step, or far too seldom."""
        super().iterated()
        self._num_iterations += 1
        if self._num_iterations >= self._steps + _MORE_ITERATIONS:
            self._end()

    def said(self) -> str:
        """Nothing: `memboard run --on` says it."""
        return ""

    def capture(self) -> None:
        """Have the allocator's state and history in the recording."""
        live = lifecycle.newest()
        if live is not None:
            live.recorder.snapshot(CAPTURE)

    def _end(self) -> NoReturn:
        if not self.is_stopped:
            self.is_stopped = True
            self.capture()
            self._stop()
            # A program that is stopped on another thread may wait for it for ever.
            timer = threading.Timer(_END_SECONDS, _interrupt)
            timer.daemon = True
            timer.start()
        raise StepLimitReached(0)


def _interrupt() -> None:
    import _thread

    print(  # noqa: T201
        "memboard: the program was stopped and does not end; it is interrupted",
        file=sys.stderr,
    )
    _thread.interrupt_main()
