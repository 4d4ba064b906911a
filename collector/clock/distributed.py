"""Round trips through torch.distributed, where the user asked for them.

In a gloo group of our own: whatever goes wrong in it leaves the training's groups alone,
and it needs no accelerator. Making the group and each comparison are calls that every
rank must make, at the same steps; `SECONDS` bounds the wait for one that does not come.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from collector.clock.exchange import REFERENCE_RANK, Card, RoundTrip
from collector.rank import is_distributed

if TYPE_CHECKING:
    from collector.clock.process_clock import ProcessClock

SECONDS: Final = 30.0
"""The longest that a rank waits for another one."""

_NUM_FIELDS: Final = 5


class RoundTrips:
    """Of one process; made anew where the process group was."""

    def __init__(self, clock: ProcessClock, card: Card) -> None:
        self._clock = clock
        self._card = card
        self._world: Any = None
        self._group: Any = None
        self.reference: Card | None = None
        """Whose clock answered; None on rank 0."""

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
        message = torch.zeros(_NUM_FIELDS, dtype=torch.int64)
        if distributed.get_rank() == REFERENCE_RANK:
            for rank in range(1, distributed.get_world_size()):
                for _ in range(num_trips):
                    self._answer(message, rank)
            return []
        return [self._ask(message) for _ in range(num_trips)]

    def _answer(self, message: Any, rank: int) -> None:
        distributed = _distributed()
        distributed.recv(message, src=rank, group=self._group)
        message[0] = self._clock.now_ns()
        message[2] = self._card.to_wall_ns
        message[3] = _number_of(self._card.host)
        message[1] = self._clock.now_ns()
        distributed.send(message, dst=rank, group=self._group)

    def _ask(self, message: Any) -> RoundTrip:
        distributed = _distributed()
        sent = self._clock.now_ns()
        distributed.send(message, dst=REFERENCE_RANK, group=self._group)
        distributed.recv(message, src=REFERENCE_RANK, group=self._group)
        back = self._clock.now_ns()
        got, answered, to_wall, host, _ = message.tolist()
        mine = self._card.host
        is_same = bool(mine) and host == _number_of(mine)
        self.reference = Card(mine if is_same else "", to_wall)
        return RoundTrip(sent, got, answered, back)


def _number_of(host: str) -> int:
    data = host.encode()
    return crc32(data) << 31 | crc32(data[::-1]) >> 1


def _distributed() -> Any:
    return sys.modules["torch.distributed"]
