"""The position of training, in the unit that the schedule counts.

Calls, steps and epochs are known when they begin. How many samples or tokens a step has is
said when it is over, so the step under way is taken to have as many as the one before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from memboard.collector.config.schedule import Action
from memboard.collector.core.guard import guarded

if TYPE_CHECKING:
    from memboard.collector.config.schedule import Schedule
    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.steps.progress import Progress

AMOUNTS: Final = ("sample", "token")
"""Units of which a step has as many as it says when it is over."""


_ONE_BY_ONE: Final = ("call", "step")
"""Units of which a step is one position."""


class Begins(NamedTuple):
    """Where positions start: training steps taken, their number, samples, tokens."""

    taken: int = 0
    step: int = 0
    samples: int = 0
    tokens: int = 0


class Place(msgspec.Struct, frozen=True):
    """The positions that a step or call covers.

    A named tuple takes five times as long to make, in every step whose position is read.
    """

    last: int
    first: int
    passed: int
    """The first one that the call before was not taken to cover, and had; else `first`."""
    is_part: bool = False
    """Whether further calls are at the same position."""


def place_of_call(number: int) -> Place:
    """Of a call by its own number."""
    return Place(number, number, number)


def _choose_failed(
    _where: str, error: BaseException, positions: Positions, *_: Any
) -> None:
    positions.stop()
    positions.warn_once(
        "schedule",
        "schedule.choose failed; no further call or step is collected. Correct it: it"
        " receives the number of a call and returns whether to collect it.",
        error=error,
    )


class Positions:
    """The schedule, and how far training is in its unit since the epoch or the start."""

    def __init__(
        self,
        schedule: Schedule,
        progress: Progress,
        warn_once: WarnOnce,
        *,
        unit: str,
        per_epoch: bool,
    ) -> None:
        self.unit = unit
        self.per_epoch = per_epoch
        self.begins = Begins()
        self.epoch = 0
        """Where positions are an epoch's own: epochs of this start that are over."""
        self.steps_left: int | None = None
        """Training steps to come in this epoch, where its length is known."""
        self._schedule: Schedule | None = schedule
        self._progress = progress
        self.warn_once = warn_once

    def stop(self) -> None:
        """Nothing is collected any more."""
        self._schedule = None

    def begin_epoch(self, length: int | None) -> None:
        """Another epoch begins, of `length` steps where that is known."""
        self.steps_left = length
        if self.per_epoch:
            train = self._progress.train
            self.epoch += train.num_steps > self.begins.taken
            self.begins = Begins(
                train.num_steps,
                train.next_step,
                train.samples or 0,
                train.tokens or 0,
            )

    def place(self, number: int) -> Place:
        """Of the training step under way, or of call `number` where calls are counted."""
        begins, progress = self.begins, self._progress
        if self.unit in _ONE_BY_ONE:
            if self.unit == "step":
                number = progress.train.next_step - begins.step
            return Place(number, number, number)
        if self.unit == "epoch":
            epoch = progress.epoch or 0
            return Place(epoch, epoch, epoch, is_part=True)
        total, (before, last) = self._amount()
        first = max(0, total)
        passed = min(first, max(0, total - last + max(1, before)))
        return Place(first + max(1, last) - 1, first, passed)

    def ended(self, place: Place) -> Place:
        """The place of a step that is over: with the samples or tokens that it had."""
        total, _ = self._amount()
        if total <= place.first:
            return place
        return msgspec.structs.replace(place, last=total - 1)

    @guarded(_choose_failed, instead=lambda *_: Action.SKIP)
    def action(self, place: Place, is_last: bool, /) -> Action:
        """What the schedule says of a place; the user's own `choose` may be asked."""
        if self._schedule is None:
            return Action.SKIP
        action = self._schedule.action(
            place.last,
            place.first,
            passed=place.passed,
            is_last=is_last,
            epoch=self.epoch,
        )
        goes_on = place.is_part and not is_last and action is Action.ACTIVE_AND_SAVE
        return Action.ACTIVE if goes_on else action

    def same_until(self, place: Place, action: Action) -> int:
        """Up to where it says the same; of units that pass by many at once, nowhere."""
        schedule = self._schedule
        if schedule is None or self.unit not in _ONE_BY_ONE:
            return place.last
        return schedule.same_until(place.last, action, epoch=self.epoch)

    def _amount(self) -> tuple[int, tuple[int, int]]:
        """Samples or tokens since the beginning, and what the last two reports added."""
        train = self._progress.train
        if self.unit == "sample":
            return (train.samples or 0) - self.begins.samples, train.samples_by
        return (train.tokens or 0) - self.begins.tokens, train.tokens_by
