"""Where the one schedule stands with the training step under way.

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

from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from collector.config.schedule import Action, schedule_of
from collector.steps.positions import (
    AMOUNTS,
    Begins,
    action_at,
    ended,
    here,
    place_of,
    place_of_call,
)
from collector.steps.progress import TRAIN

if TYPE_CHECKING:
    from collector.config.schedule import Schedule
    from collector.config.sections import ScheduleConfig
    from collector.core.warn_once import Troubles
    from collector.steps.positions import Place
    from collector.steps.progress import Progress

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

_ONE_BY_ONE: Final = ("call", "step")
"""Units of which a step is one position."""


class Cycles:
    """Of one recording. `Recorder` tells what happens, under its lock; never raises."""

    def __init__(
        self,
        settings: ScheduleConfig,
        progress: Progress,
        troubles: Troubles,
        *,
        needed: bool = True,
    ) -> None:
        """`needed`: whether anybody asks; where not, `action` stays SKIP for nothing.

        Raises:
            ConfigError: the schedule cannot be; see `collector.config.schedule.schedule_of`.
        """
        self.action = Action.SKIP
        """Of the training step under way. Read on any thread."""
        self.cycle = 0
        """Number of the cycle under way, or of the last one; 0 before the first."""
        self.needed = needed
        """Whether `action` is kept up to date."""
        self._schedule: Schedule | None = schedule_of(settings)
        self._unit = settings.unit
        self._per_epoch = settings.per_epoch
        self._progress = progress
        self._troubles = troubles
        self._listeners: tuple[StepListener, ...] = ()
        """Never changed but replaced, as one may go while they are told."""
        self._edge_listeners: tuple[StepListener, ...] = ()
        """Those that are told of cycles alone."""
        self._told_cycle = 0
        """Which one they were told of last."""
        self._same = _NOWHERE
        """Positions with the action of the step under way, to be found there unasked."""
        self._number = 0
        """Training steps that have ended."""
        self._epoch = 0
        self._begins = Begins()
        self._looks_back = settings.unit in AMOUNTS and settings.choose is None
        self._place = place_of_call(0)
        """Of the step under way."""
        self._steps_left: int | None = None
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
        if self._unit == "step":
            position = progress.train.next_step - self._begins.step
        else:  # of other units than these two `_same` holds none
            position = self._number - self._begins.taken
        if position not in self._same or self._steps_left == 1:
            self._choose()

    def begin_step(self) -> None:
        """It begins. After `choose`."""
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
        self._number += 1
        if self._steps_left is not None:
            self._steps_left -= 1
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
        self._steps_left = length
        if self._number > self._begins.taken:
            self._epoch += 1
        if self._per_epoch:
            self._begins = here(self._progress, self._number)
        before = self.action, self.cycle
        if self._is_open and self._has_ended_step:
            self._cut("epoch")
        if self._interrupted or self._progress.phase.name != TRAIN:
            return  # the step begins again when that phase has ended
        self._choose()
        if (self.action, self.cycle) != before:
            self._tell_begin()

    def close(self, error: BaseException | None) -> None:
        """The recording ends."""
        self._cut("close" if error is None else "exception")
        self.forget()

    def forget(self) -> None:
        """Be dead: closed, or in a forked child."""
        self.needed = False
        self.action = Action.SKIP
        self._schedule = None
        self._listeners = self._edge_listeners = ()

    # Behind them.

    def _choose(self) -> None:
        action = self._evaluated()
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
        for listener in (*self._listeners, *self._edge_listeners):
            try:
                listener.cut(why)
            except Exception as error:  # noqa: BLE001, PERF203  # others are told
                self._drop(listener, error)
        if self._has_ended_step:
            self._is_open = self._has_ended_step = False

    def _tell_begin(self) -> None:
        step, told = self._progress.train_step, self._listeners
        if self.cycle != self._told_cycle:
            self._told_cycle = self.cycle
            told += self._edge_listeners
        for listener in told:
            try:
                listener.begin(step)
            except Exception as error:  # noqa: BLE001, PERF203  # others are told
                self._drop(listener, error)

    def _tell_end(self, step: int | None, *, is_last: bool) -> None:
        number = self._progress.train_step if step is None else step
        for listener in self._listeners + (self._edge_listeners if is_last else ()):
            try:
                listener.end(number)
            except Exception as error:  # noqa: BLE001, PERF203  # others are told
                self._drop(listener, error)

    def _drop(self, listener: StepListener, error: Exception) -> None:
        """One that failed must not cost the others."""
        self._listeners = tuple(at for at in self._listeners if at is not listener)
        self._edge_listeners = tuple(
            at for at in self._edge_listeners if at is not listener
        )
        self._troubles.tell(
            f"cycles {type(listener).__name__}",
            "%s failed and is told of no further step; the rest of the recording"
            " goes on. Please report this.",
            type(listener).__name__,
            error=error,
        )

    def _evaluated(self) -> Action:
        self._same = _NOWHERE
        schedule = self._schedule
        if schedule is None:
            return Action.SKIP
        place = self._place = self._found_place()
        is_last, epoch = self._steps_left == 1, self._epoch
        try:
            action = action_at(schedule, place, is_last=is_last, epoch=epoch)
            if self._unit in _ONE_BY_ONE and not is_last:
                until = schedule.same_until(place.last, action, epoch=epoch)
                self._same = range(place.last, until)
        except Exception as error:  # noqa: BLE001  # the user's own `choose`
            self._schedule = None
            self._troubles.tell(
                "schedule",
                "schedule.choose failed; no further call or step is collected. Correct"
                " it: it is given the number of a call and returns whether to collect"
                " it.",
                error=error,
            )
            return Action.SKIP
        return action

    def _found_place(self) -> Place:
        if self._unit == "call":
            return place_of_call(self._number - self._begins.taken)
        return place_of(self._unit, self._progress, self._begins)

    def _look_back(self) -> None:
        """The step is over and has said what it had: so it ends its cycle, or does not."""
        place = ended(self._place, self._unit, self._progress, self._begins)
        is_last = self._steps_left == 1
        schedule = self._schedule
        if schedule is not None and place != self._place:
            was = action_at(schedule, place, is_last=is_last, epoch=self._epoch)
            is_end = was is Action.ACTIVE_AND_SAVE
            self.action = Action.ACTIVE_AND_SAVE if is_end else Action.ACTIVE
