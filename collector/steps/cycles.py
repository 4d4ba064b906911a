"""Evaluates the one schedule for each training step, and numbers its cycles.

Whatever is costly asks here: torch's profiler, spans kept one by one, clock samples. The
schedule is evaluated once per whole training step, and each of its cycles has a number.

Defined where one might wonder:

- While another phase is under way, the training step that it interrupted is: its action
  stands, and its listeners are told that the cycle was cut there. The step begins anew,
  under the same number, where training goes on.
- What is cut after a step of its cycle has ended is a cycle of its own: what goes on
  afterwards has the next number, so that a number never stands for two stretches.
- An epoch ends the cycle under way, also one that had not said its length; positions
  start anew with it where the schedule is `per_epoch`.
- The step that begins after the last one never ends. Listeners are told at the close.

As most steps are like the one before, what holds for a stretch of them is found once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from memboard.collector.config.schedule import Action, schedule_of
from memboard.collector.core.guard import guarded
from memboard.collector.steps.positions import AMOUNTS, Positions, place_of_call
from memboard.collector.steps.progress import TRAIN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memboard.collector.config.sections import ScheduleConfig
    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.steps.progress import Progress

Cut: TypeAlias = Literal["epoch", "phase", "schedule", "close", "exception"]
"""Why a cycle ends before its last step: another epoch or phase begins, the schedule goes
back, the recording ends, by itself or by an exception."""


class StepListener(Protocol):
    """Who is told of training steps, on the thread that trains.

    One that raises is told nothing any more.
    """

    def begin(self, step: int) -> None:
        """A training step begins; `Cycles.action` and `.cycle` are its own by now.

        May come again for a step that has not ended, where an epoch begins or another
        phase has been in between.
        """

    def end(self, step: int) -> None:
        """It is done; `Cycles.action` and `.cycle` are still its own."""

    def cut(self, why: Cut) -> None:
        """The step under way does not end, or not now, and so ends its cycle."""


_NOWHERE: Final = range(0)


def _drop(
    _where: str, error: BaseException, cycles: Cycles, listener: StepListener, *_: Any
) -> None:
    cycles.drop(listener, error)


class Cycles:
    """Of one recording. `Recorder` tells what happens, under its lock; never raises."""

    def __init__(
        self,
        settings: ScheduleConfig,
        progress: Progress,
        warn_once: WarnOnce,
        *,
        needed: bool = True,
    ) -> None:
        """`needed`: whether anybody asks; where not, `action` stays SKIP for nothing.

        Raises:
            ConfigError: the schedule cannot be; see `memboard.collector.config.schedule.schedule_of`.
        """
        self.action = Action.SKIP
        """Of the training step under way. Read on any thread."""
        self.cycle = 0
        """Number of the cycle under way, or of the last one; 0 before the first."""
        self.needed = needed
        """Whether `action` is kept up to date."""
        self._positions = Positions(
            schedule_of(settings),
            progress,
            warn_once,
            unit=settings.unit,
            per_epoch=settings.per_epoch,
        )
        self._progress = progress
        self._warn_once = warn_once
        self._listeners: tuple[StepListener, ...] = ()
        """Never changed but replaced, as one may go while they are told."""
        self._edge_listeners: tuple[StepListener, ...] = ()
        """Those that are told of cycles alone."""
        self._told_cycle = 0
        """Which one they were told of last."""
        self._same = _NOWHERE
        """Positions with the action of the step under way, to be found there unasked."""
        self._counts_numbers = settings.unit == "step"
        """Else steps are counted; of other units than these two `_same` holds none."""
        self._begin = 0
        """The position in `_same` where the epoch began, or 0."""
        self._looks_back = settings.unit in AMOUNTS and settings.choose is None
        self._place = place_of_call(0)
        """Of the step under way."""
        self._is_open = False
        """Whether the cycle numbered `cycle` may go on."""
        self._has_ended_step = False
        """Whether a step of the cycle under way has ended."""
        self._interrupted = False

    def listen(self, listener: StepListener) -> None:
        """Tell it of every training step from the next beginning on."""
        self.needed = True
        self._listeners += (listener,)

    def listen_to_edges(self, listener: StepListener) -> None:
        """Tell it where a cycle's first step begins and where its last one ends."""
        self.needed = True
        self._edge_listeners += (listener,)

    # What the recorder tells.

    def choose(self) -> None:
        """The current phase's next step is about to begin: evaluate the schedule."""
        progress = self._progress
        if not self.needed or progress.phase.name != TRAIN:
            return
        train = progress.train
        position = train.next_step if self._counts_numbers else train.num_steps
        position -= self._begin
        if position not in self._same or self._positions.steps_left == 1:
            self._choose()

    def begin_step(self) -> None:
        # It begins. After `choose`
        if (
            self._listeners or self.cycle != self._told_cycle
        ) and self._progress.phase.name == TRAIN:
            self._interrupted = False
            self._tell_begin()

    def end_step(self, step: int | None) -> None:
        """The step under way is done; `step`: its number where training gave one."""
        if not self.needed or self._progress.phase.name != TRAIN:
            return
        if self._looks_back and self.action.collects:
            self._look_back()
        is_last = self.action is Action.ACTIVE_AND_SAVE
        if self._listeners or is_last:
            self._tell_end(step, is_last=is_last)
        if self._positions.steps_left is not None:
            self._positions.steps_left -= 1
        self._has_ended_step = self._is_open
        if is_last:
            self._is_open = self._has_ended_step = False

    def entered(self) -> None:
        """Another phase begins, or the same one again. Before `choose`."""
        if not self.needed:
            return
        if self._progress.phase.name == TRAIN:
            self._interrupted = False
        elif not self._interrupted:
            self._interrupted = True
            self._cut("phase")

    def epoch(self, length: int | None) -> None:
        """Another epoch begins, of `length` steps where that is known."""
        if not self.needed:
            return
        self._same = _NOWHERE
        self._positions.begin_epoch(length)
        begins = self._positions.begins
        self._begin = begins.step if self._counts_numbers else begins.taken
        before = self.action, self.cycle
        if self._is_open and self._has_ended_step:
            self._cut("epoch")
        if self._interrupted or self._progress.phase.name != TRAIN:
            return  # the step begins again when that phase has ended
        self._choose()
        if (self.action, self.cycle) != before:
            self._tell_begin()

    def close(self, error: BaseException | None) -> None:
        self._cut("close" if error is None else "exception")
        self.after_fork()

    def after_fork(self) -> None:
        """Be dead: closed, or in a forked child."""
        self.needed = False
        self.action = Action.SKIP
        self._positions.stop()
        self._listeners = self._edge_listeners = ()

    # Behind them.

    def _choose(self) -> None:
        positions, taken = self._positions, self._progress.train.num_steps
        place = self._place = positions.place(taken - positions.begins.taken)
        is_last = positions.steps_left == 1
        action = positions.action(place, is_last)
        until = place.last if is_last else positions.same_until(place, action)
        self._same = range(place.last, until)
        if action is Action.SKIP:
            if self._is_open:
                if self._has_ended_step:
                    self._cut("schedule")
                self._is_open = False
        elif not self._is_open:
            self._is_open, self._has_ended_step = True, False
            self.cycle += 1
        elif action is Action.WARMUP and self._has_ended_step and self.action.collects:
            self._cut("schedule")
            self._is_open = True
            self.cycle += 1
        self.action = action

    def _cut(self, why: Cut) -> None:
        self._same = _NOWHERE  # the same action may be another cycle's
        self._tell((*self._listeners, *self._edge_listeners), "cut", why)
        if self._has_ended_step:
            self._is_open = self._has_ended_step = False

    def _tell_begin(self) -> None:
        told = self._listeners
        if self.cycle != self._told_cycle:
            self._told_cycle = self.cycle
            told += self._edge_listeners
        self._tell(told, "begin", self._progress.train_step)

    def _tell_end(self, step: int | None, *, is_last: bool) -> None:
        number = self._progress.train_step if step is None else step
        told = self._listeners + (self._edge_listeners if is_last else ())
        self._tell(told, "end", number)

    def _tell(self, listeners: Iterable[StepListener], event: str, about: Any) -> None:
        for listener in listeners:
            self._call(listener, event, about)

    @guarded(_drop)
    def _call(self, listener: StepListener, event: str, about: Any) -> None:
        getattr(listener, event)(about)

    def drop(self, listener: StepListener, error: BaseException) -> None:
        """One that failed must not cost the others."""
        self._listeners = tuple(
            other for other in self._listeners if other is not listener
        )
        self._edge_listeners = tuple(
            other for other in self._edge_listeners if other is not listener
        )
        self._warn_once(
            f"cycles {type(listener).__name__}",
            "%s failed and gets no further steps; the rest of the recording goes on."
            " Please report this.",
            type(listener).__name__,
            error=error,
        )

    def _look_back(self) -> None:
        """The step is over and has said what it had: so it ends its cycle, or does not."""
        place = self._positions.ended(self._place)
        if place != self._place:
            is_last = self._positions.steps_left == 1
            was = self._positions.action(place, is_last)
            is_end = was is Action.ACTIVE_AND_SAVE
            self.action = Action.ACTIVE_AND_SAVE if is_end else Action.ACTIVE
