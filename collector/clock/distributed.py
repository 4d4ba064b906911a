r"""Round trips with rank 0 through torch.distributed, where the settings say so.

In a gloo group of our own: whatever goes wrong in it leaves the training's groups alone,
and it needs no accelerator. Making the group and each comparison are calls that every
rank must make, at the same steps; `SECONDS` bounds the wait for one that does not come.

::

    asker     sent ------------------------------------- back
                    \                                /
    rank 0            got --- (answers) --- answered

Rank 0's clock minus the asker's lies between `got - sent` and `answered - back`, whatever
the ways took: the middle is the offset, half the width the bound (RFC 5905, section 8).
"""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memboard.collector.process.rank import is_distributed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memboard.collector.clock.process_clock import ProcessClock

SECONDS: Final = 30.0
"""The longest that a rank waits for another one."""


class RoundTrip(NamedTuple):
    """Four times, the first and the last of the asker's clock."""

    sent_ns: int
    got_ns: int
    answered_ns: int
    back_ns: int

    @property
    def at_ns(self) -> int:
        """The moment that is compared, by the asker's clock."""
        return (self.sent_ns + self.back_ns) // 2

    @property
    def offset_ns(self) -> int:
        """Add it to the asker's clock to get rank 0's."""
        there, back = self.got_ns - self.sent_ns, self.answered_ns - self.back_ns
        return (there + back) // 2

    @property
    def error_ns(self) -> int:
        """The true offset is at most this far from `offset_ns`."""
        ways = (self.back_ns - self.sent_ns) - (self.answered_ns - self.got_ns)
        return ways // 2 + 1


def best_of(trips: Iterable[RoundTrip]) -> RoundTrip | None:
    """The fastest; one whose times contradict each other (a clock went back) is none."""
    sane = (
        trip
        for trip in trips
        if trip.back_ns - trip.sent_ns >= trip.answered_ns - trip.got_ns >= 0
    )
    return min(sane, key=lambda trip: trip.error_ns, default=None)


class RoundTrips:
    """Of one process; made anew where the process group was."""

    def __init__(self, clock: ProcessClock) -> None:
        self._clock = clock
        self._world: Any = None
        self._group: Any = None

    @property
    def is_possible(self) -> bool:
        """Whether there is a process group of more than one rank now."""
        return is_distributed() and _distributed().get_world_size() > 1

    def make(self, num_trips: int) -> list[RoundTrip]:
        """On every rank: rank 0 answers one rank after the other, and gets none.

        Raises:
            RuntimeError: there is no gloo, or a rank did not come.
        """
        import torch

        distributed = _distributed()
        world = distributed.group.WORLD
        if self._group is None or self._world is not world:
            self._group = distributed.new_group(
                backend="gloo", timeout=timedelta(seconds=SECONDS)
            )
            self._world = world
        message = torch.zeros(2, dtype=torch.int64)
        if distributed.get_rank() == 0:
            for rank in range(1, distributed.get_world_size()):
                for _ in range(num_trips):
                    self._answer(message, rank)
            return []
        return [self._ask(message) for _ in range(num_trips)]

    def _answer(self, message: Any, rank: int) -> None:
        distributed = _distributed()
        distributed.recv(message, src=rank, group=self._group)
        message[0] = self._clock.now_ns()
        message[1] = self._clock.now_ns()
        distributed.send(message, dst=rank, group=self._group)

    def _ask(self, message: Any) -> RoundTrip:
        distributed = _distributed()
        sent = self._clock.now_ns()
        distributed.send(message, dst=0, group=self._group)
        distributed.recv(message, src=0, group=self._group)
        back = self._clock.now_ns()
        got, answered = message.tolist()
        return RoundTrip(sent, got, answered, back)


def _distributed() -> Any:
    return sys.modules["torch.distributed"]
