"""How far training is, in the unit that the schedule counts.

Calls, steps and epochs are known when they begin. How many samples or tokens a step has is
said when it is over, so the step under way is taken to have as many as the one before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from collector.config.schedule import Action
from collector.steps.progress import TRAIN

if TYPE_CHECKING:
    from collector.config.schedule import Schedule
    from collector.steps.progress import Progress

AMOUNTS: Final = ("sample", "token")
"""Units of which a step has as many as it says when it is over."""


class Begins(NamedTuple):
    """Where positions start: training steps taken, their number, samples, tokens."""

    taken: int = 0
    step: int = 0
    samples: int = 0
    tokens: int = 0


class Place(NamedTuple):
    """The positions that a step or call covers."""

    last: int
    first: int
    passed: int
    """The first one that the call before was not taken to cover, and had; else `first`."""
    is_part: bool = False
    """Whether further calls are at the same position."""


def here(progress: Progress, taken: int) -> Begins:
    """Positions start here; `taken`: training steps so far."""
    train = progress.phases[TRAIN]
    return Begins(taken, train.next_step, train.samples or 0, train.tokens or 0)


def place_of_call(number: int) -> Place:
    """Of a call by its own number."""
    return Place(number, number, number)


def place_of(unit: str, progress: Progress, begins: Begins) -> Place:
    """Of the training step under way, in any unit but calls."""
    if unit == "epoch":
        return place_of_call(progress.epoch or 0)._replace(is_part=True)
    if unit == "step":
        return place_of_call(progress.train_step - begins.step)
    total, (before, last) = _amount(unit, progress, begins)
    first = max(0, total)
    passed = min(first, max(0, total - last + max(1, before)))
    return Place(first + max(1, last) - 1, first, passed)


def ended(place: Place, unit: str, progress: Progress, begins: Begins) -> Place:
    """The place of a step that is over: with the samples or tokens that it had."""
    total, _ = _amount(unit, progress, begins)
    return place if total <= place.first else place._replace(last=total - 1)


def action_at(schedule: Schedule, place: Place, *, is_last: bool, epoch: int) -> Action:
    """What the schedule says of a place; see `Schedule.action`."""
    action = schedule.action(
        place.last, place.first, passed=place.passed, is_last=is_last, epoch=epoch
    )
    goes_on = place.is_part and not is_last and action is Action.ACTIVE_AND_SAVE
    return Action.ACTIVE if goes_on else action


def _amount(
    unit: str, progress: Progress, begins: Begins
) -> tuple[int, tuple[int, int]]:
    """Samples or tokens since `begins`, and what the last two reports added."""
    train = progress.phases[TRAIN]
    if unit == "sample":
        return (train.samples or 0) - begins.samples, train.samples_by
    return (train.tokens or 0) - begins.tokens, train.tokens_by
