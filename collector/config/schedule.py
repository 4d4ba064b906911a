"""The schedule of steps and calls: pure arithmetic on positions, no clock, no state.

    schedule = mb.Schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=1)
    "".join(schedule.action(step).value for step in range(8))  # "..wAS..."

A position is how far something is, from 0: the number of a training step, of a call, of
samples, tokens or epochs (`ScheduleConfig.unit`), in the whole run or in each epoch
(`ScheduleConfig.per_epoch`). `skip_first` positions pass once, then come `repeat` cycles of
wait, warmup and active: 1 is one of them, 0 is one after the other until the end.

A call may cover many positions at once, as a batch covers samples: it is collected where
any of them is. Where more of them passed than anybody knew, and all that was to be
collected lay among those, the next call stands for it. The last one of an epoch whose length is known ends the cycle under way
(ACTIVE_AND_SAVE); where an epoch ends without having said its length, whoever records
keeps what it has so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from memboard.collector.config.keywords import InitKeywords
from memboard.collector.config.values import resolve
from memboard.collector.core.plain import described, whole_number
from memboard.collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.collector.config.sections import ScheduleConfig


class Action(Enum):
    """What happens with a step or call."""

    SKIP = "."
    WARMUP = "w"
    """What is cheap is recorded already, what is costly is made ready for the next."""
    ACTIVE = "A"
    """It is collected; more of its cycle are to come."""
    ACTIVE_AND_SAVE = "S"
    """It is collected, as the last one of its cycle."""

    @property
    def collects(self) -> bool:
        """Whether the call is collected."""
        return self in (Action.ACTIVE, Action.ACTIVE_AND_SAVE)


_LONGEST_STRETCH: Final = 1 << 16
"""Steps that `Schedule.same_until` looks ahead."""


@dataclass(frozen=True, slots=True)
class Cycles(metaclass=InitKeywords):
    """`repeat` cycles of wait, warmup and active after `skip_first`; 0: no end.

    `active` 0: one cycle without an end.
    """

    skip_first: int = 0
    wait: int = 0
    warmup: int = 1
    active: int = 4
    repeat: int = 1

    def __post_init__(self) -> None:
        for field in self.__slots__:
            value = getattr(self, field)
            if whole_number(value) is None:
                raise _odd(field, value)
            if value < 0:
                raise ConfigError(
                    f"'schedule.{field}' is {value}: no part of a cycle is negative."
                    " Correct it."
                )

    def _cycles(self, position: int) -> tuple[int, int]:
        """Whole cycles below `position`, and how far the one under way is."""
        if not self.active:
            return 0, max(0, position - self.skip_first)
        length = self.wait + self.warmup + self.active
        whole, rest = divmod(max(0, position - self.skip_first), length)
        return (self.repeat, 0) if 0 < self.repeat <= whole else (whole, rest)

    def num_warmups(self, position: int) -> int:
        # Warmup positions below `position`
        whole, rest = self._cycles(position)
        return whole * self.warmup + min(max(0, rest - self.wait), self.warmup)

    def num_active(self, position: int) -> int:
        # Collected positions below `position`
        whole, rest = self._cycles(position)
        return whole * self.active + max(0, rest - self.wait - self.warmup)

    def num_ends(self, position: int) -> int:
        """Last collected positions of a cycle below `position`."""
        return self._cycles(position)[0]


class Schedule(metaclass=InitKeywords):
    """What happens with the step or call at a position."""

    def __init__(
        self,
        pattern: Cycles | Callable[[int], object] | None = None,
        *,
        skip_first: int = 0,
        wait: int = 0,
        warmup: int = 1,
        active: int = 4,
        repeat: int = 1,
        resume: int = 0,
    ) -> None:
        """Cycles of the numbers given, or another pattern, or a function that decides.

        Args:
            pattern: `Cycles`, or a function of the position (of several:
                of the first); its answer is an `Action`, or whether to collect. None:
                cycles of what follows.
            skip_first: positions before the first cycle.
            wait: positions of each cycle that pass by.
            warmup: positions after those that warm up.
            active: collected positions of a cycle, its last ones; 0: no end.
            repeat: number of cycles; 0: one after the other until the end.
            resume: positions that an earlier start of a resumed training has seen; they
                pass by, once.

        Raises:
            ConfigError: a ValueError: no position would ever be collected.
        """
        if whole_number(resume) is None:
            raise _odd("resume", resume)
        if pattern is None:
            pattern = Cycles(skip_first, wait, warmup, active, repeat)
        elif not callable(pattern) and not issubclass(type(pattern), Cycles):
            raise ConfigError(
                "the pattern of a Schedule must be Cycles, or a function of the"
                f" position, got {described(pattern)}."
            )
        self._choose = pattern if callable(pattern) else None
        self._pattern = None if callable(pattern) else pattern
        self._resume = resume

    def action(
        self,
        position: int,
        first: int | None = None,
        *,
        passed: int | None = None,
        is_last: bool = False,
        epoch: int = 0,
    ) -> Action:
        """What happens with a call that covers `first` to `position`.

        Args:
            position: where it is; of several positions the last one it covers.
            first: the first one it covers; None: it covers one.
            passed: from here to before `first` they passed before it was known that they
                were; what is to be collected and lies among them is this call's, unless
                the call before had its beginning. None: there are none.
            is_last: nothing follows in this epoch: a cycle under way ends here.
            epoch: where positions are an epoch's own, the epochs that this start has
                been through: of the first one alone an earlier start may have seen some.
        """
        start = position if first is None else min(first, position)
        if self._choose is not None:
            chosen = self._choose(start)
            action = chosen if isinstance(chosen, Action) else _plain(bool(chosen))
        else:
            seen = self._resume if epoch == 0 else 0
            if position < seen:
                return Action.SKIP
            start = max(0, start - seen)
            if passed is not None and self._begins_anew(max(0, passed - seen)):
                start = min(start, max(0, passed - seen))
            action = self._between(start, position - seen + 1)
        ends = is_last and action is Action.ACTIVE
        return Action.ACTIVE_AND_SAVE if ends else action

    def same_until(self, position: int, action: Action, *, epoch: int = 0) -> int:
        """Where a stretch of single positions ends that all have one action.

        Args:
            position: its first one.
            action: what `action` says of it.
            epoch: as for `action`.

        Returns:
            The position after the stretch; it may go on there. At least the next one.
        """
        pattern = self._pattern
        if pattern is None or position < 0:  # a function may change its mind anywhere
            return position + 1
        seen = self._resume if epoch == 0 else 0
        if position < seen:
            return seen
        start, length = position - seen, 1
        while length < _LONGEST_STRETCH and _is_one_stretch(
            pattern, action, start, 2 * length
        ):
            length *= 2
        return position + length

    def _begins_anew(self, position: int) -> bool:
        """Whether nothing that is collected goes on from the position before."""
        pattern = self._pattern
        assert pattern is not None  # noqa: S101  # as in `_between`
        return pattern.num_active(position) == pattern.num_active(max(0, position - 1))

    def _between(self, start: int, end: int) -> Action:
        """What holds for positions from `start` to before `end` as a whole."""
        pattern = self._pattern
        assert pattern is not None  # noqa: S101  # or `_choose` would have decided
        if pattern.num_active(end) > pattern.num_active(start):
            goes_on = pattern.num_active(end) > pattern.num_active(end - 1)
            ends_here = pattern.num_ends(end) > pattern.num_ends(end - 1)
            return (
                Action.ACTIVE if goes_on and not ends_here else Action.ACTIVE_AND_SAVE
            )
        if pattern.num_warmups(end) > pattern.num_warmups(start):
            return Action.WARMUP
        return Action.SKIP


def _odd(field: str, value: object) -> ConfigError:
    return ConfigError(
        f"'schedule.{field}' must be a whole number, got {described(value)}. Correct it."
    )


def _is_one_stretch(pattern: Cycles, action: Action, start: int, length: int) -> bool:
    """Whether `length` positions from `start` on all have this action."""
    end = start + length
    num_active = pattern.num_active(end) - pattern.num_active(start)
    if action is Action.ACTIVE:
        return num_active == length and pattern.num_ends(end) == pattern.num_ends(start)
    num_warmups = pattern.num_warmups(end) - pattern.num_warmups(start)
    if action is Action.WARMUP:
        return num_warmups == length and not num_active
    return action is Action.SKIP and not num_active and not num_warmups


def _plain(collect: bool) -> Action:
    # Of a yes-or-no nobody knows whether another yes follows.
    return Action.ACTIVE_AND_SAVE if collect else Action.SKIP


def schedule_of(config: ScheduleConfig) -> Schedule:
    """The schedule that the settings describe.

    Raises:
        ConfigError: it would never collect anything, or `choose` does not import.
    """
    if config.choose is not None:
        return Schedule(resolve(config.choose, "schedule.choose"))
    return Schedule(
        skip_first=config.skip_first,
        wait=config.wait,
        warmup=config.warmup,
        active=config.active,
        repeat=config.repeat,
        resume=config.resume,
    )
