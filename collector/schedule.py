"""Which calls are collected: pure arithmetic on positions, no clock and no state.

A position is how far something is, from 0: the number of a call, of a training step, of
samples, tokens or epochs (`ScheduleConfig.unit`). Two patterns:

- a window: positions from `warmup_iters` up to, not including, `max_iter`;
- cycles: `skip_first` positions once, then `repeat` times wait, warmup, active.

A call may cover many positions at once, as a batch covers samples: it is collected where
any of them is. What an end of the epoch or run cuts short is complete as it is: every
collected call is recorded by itself, so there is nothing to lose.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from collector.config_code import resolve
from collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.config_sections import ScheduleConfig


class Action(Enum):
    """What happens with a call."""

    SKIP = "."
    """It passes by."""
    WARMUP = "w"
    """It passes by, and what collects the next ones is made ready."""
    ACTIVE = "A"
    """It is collected; more of its cycle are to come."""
    SAVE = "S"
    """It is collected, as the last one of its cycle."""

    @property
    def collects(self) -> bool:
        """Whether the call is collected."""
        return self in (Action.ACTIVE, Action.SAVE)


class Pattern(Protocol):
    """How many positions of each sort there are before a given one."""

    def num_warmups(self, position: int) -> int:
        """Warmup positions below `position`."""

    def num_active(self, position: int) -> int:
        """Collected positions below `position`."""

    def num_ends(self, position: int) -> int:
        """Last collected positions of a cycle below `position`."""


@dataclass(frozen=True, slots=True)
class Window:
    """Positions from `warmup_iters` to before `max_iter`; `max_iter` 0: no end."""

    warmup_iters: int = 1
    max_iter: int | None = None
    """None: one more than `warmup_iters`."""

    def __post_init__(self) -> None:
        if self.max_iter is None:
            object.__setattr__(self, "max_iter", self.warmup_iters + 1)
        if self.warmup_iters < 0 or (self._bounded and self._end <= self.warmup_iters):
            raise ConfigError(
                f"'schedule.warmup_iters' is {self.warmup_iters} and 'schedule.max_iter'"
                f" {self.max_iter}: no call would be collected. Make max_iter greater"
                " than warmup_iters, or 0 for no end."
            )

    @property
    def _end(self) -> int:
        return self.max_iter or 0

    @property
    def _bounded(self) -> bool:
        return self._end != 0

    def num_warmups(self, position: int) -> int:
        """See `Pattern`."""
        return min(position, self.warmup_iters)

    def num_active(self, position: int) -> int:
        """See `Pattern`."""
        end = min(position, self._end) if self._bounded else position
        return max(0, end - self.warmup_iters)

    def num_ends(self, position: int) -> int:
        """See `Pattern`."""
        return int(self._bounded and position >= self._end)


@dataclass(frozen=True, slots=True)
class Cycles:
    """`repeat` cycles of wait, warmup and active after `skip_first`; 0: no end."""

    skip_first: int = 0
    wait: int = 0
    warmup: int = 1
    active: int = 4
    repeat: int = 1

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < (1 if name == "active" else 0):
                raise ConfigError(
                    f"'schedule.{name}' is {getattr(self, name)}: a cycle collects at"
                    " least one call, and none of its parts is negative. Correct it."
                )

    def _cycles(self, position: int) -> tuple[int, int]:
        """Whole cycles below `position`, and how far the one under way is."""
        length = self.wait + self.warmup + self.active
        whole, rest = divmod(max(0, position - self.skip_first), length)
        return (self.repeat, 0) if 0 < self.repeat <= whole else (whole, rest)

    def num_warmups(self, position: int) -> int:
        """See `Pattern`."""
        whole, rest = self._cycles(position)
        return whole * self.warmup + min(max(0, rest - self.wait), self.warmup)

    def num_active(self, position: int) -> int:
        """See `Pattern`."""
        whole, rest = self._cycles(position)
        return whole * self.active + max(0, rest - self.wait - self.warmup)

    def num_ends(self, position: int) -> int:
        """See `Pattern`."""
        return self._cycles(position)[0]


class Schedule:
    """What happens with the call at a position."""

    def __init__(
        self, pattern: Pattern | Callable[[int], object], *, resume: int = 0
    ) -> None:
        """`pattern`: one of the two, or a function of the position that decides.

        Its answer is an `Action`, or whether to collect. `resume`: positions that an
        earlier start of a resumed training has seen; they pass by.
        """
        self._choose = pattern if callable(pattern) else None
        self._pattern = None if callable(pattern) else pattern
        self._resume = resume

    def action(
        self, position: int, first: int | None = None, *, is_last: bool = False
    ) -> Action:
        """What happens with a call that covers `first` to `position`.

        Args:
            position: where it is; of several positions the last one it covers.
            first: the first one it covers; None: it covers one.
            is_last: nothing follows in this epoch: a cycle under way ends here.
        """
        if self._choose is not None:
            chosen = self._choose(position)
            return chosen if isinstance(chosen, Action) else _plain(bool(chosen))
        start = position if first is None else min(first, position)
        start, end = start - self._resume, position - self._resume
        if end < 0:
            return Action.SKIP
        action = self._between(max(0, start), end + 1)
        return Action.SAVE if is_last and action is Action.ACTIVE else action

    def _between(self, start: int, end: int) -> Action:
        """What holds for positions from `start` to before `end` as a whole."""
        pattern = self._pattern
        assert pattern is not None  # noqa: S101  # or `_choose` would have decided
        if pattern.num_active(end) > pattern.num_active(start):
            goes_on = pattern.num_active(end) > pattern.num_active(end - 1)
            ends_here = pattern.num_ends(end) > pattern.num_ends(end - 1)
            return Action.ACTIVE if goes_on and not ends_here else Action.SAVE
        if pattern.num_warmups(end) > pattern.num_warmups(start):
            return Action.WARMUP
        return Action.SKIP


def _plain(collect: bool) -> Action:
    # Of a yes-or-no nobody knows whether another yes follows.
    return Action.SAVE if collect else Action.SKIP


def schedule_of(config: ScheduleConfig) -> Schedule:
    """The schedule that the settings describe.

    Raises:
        ConfigError: it would never collect anything, or `choose` does not import.
    """
    if config.choose is not None:
        return Schedule(resolve(config.choose, "schedule.choose"))
    if config.active is None:
        return Schedule(
            Window(config.warmup_iters, config.max_iter), resume=config.resume
        )
    cycles = Cycles(
        skip_first=config.skip_first,
        wait=config.wait,
        warmup=config.warmup,
        active=config.active,
        repeat=config.repeat,
    )
    return Schedule(cycles, resume=config.resume)
