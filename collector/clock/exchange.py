r"""Offset and error bound from the times of round trips, as NTP computes them.

::

    asker     sent ------------------------------------- back
                    \                                /
    reference         got --- (answers) --- answered

The reference's clock minus the asker's lies between `got - sent` and `answered - back`,
whatever the ways took: the middle is the offset, half the width the bound.
See RFC 5905, section 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Method: TypeAlias = Literal["distributed", "files", "same_host", "wall"]

SAME_HOST_ERROR_NS: Final = 1_000
"""Processes of one host share its monotonic clock: their offset is a known difference,
and this is generous."""

REFERENCE_RANK: Final = 0


class Card(NamedTuple):
    """Whose clock it is."""

    host: str
    """Equal on processes that share a monotonic clock; empty where nobody can say."""
    to_wall_ns: int
    """Of its `ProcessClock`."""


class RoundTrip(NamedTuple):
    """Four times, the first and the last of the asker's clock."""

    sent_ns: int
    got_ns: int
    answered_ns: int
    back_ns: int

    @property
    def offset_ns(self) -> int:
        """Add it to the asker's clock to get the reference's."""
        there, back = self.got_ns - self.sent_ns, self.answered_ns - self.back_ns
        return (there + back) // 2

    @property
    def error_ns(self) -> int:
        """The true offset is at most this far from `offset_ns`."""
        ways = (self.back_ns - self.sent_ns) - (self.answered_ns - self.got_ns)
        return ways // 2 + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How far the clock was from the reference's, at one moment."""

    at_ns: int
    """The moment, by the clock that was compared."""
    offset_ns: int
    """Add it to that clock to get the reference's."""
    error_ns: int | None
    """The true offset is at most this far away; None: nobody knows."""
    method: Method
    reference_rank: int | None
    """None: true time, as far as the system knows it."""

    def data(self) -> dict[str, Any]:
        """As a note of kind `clock` holds it."""
        return {
            "offset_ns": self.offset_ns,
            "error_ns": self.error_ns,
            "method": self.method,
            "reference_rank": self.reference_rank,
        }


def best_of(trips: Iterable[RoundTrip], method: Method) -> Comparison | None:
    """The comparison that the fastest round trip makes; None without any.

    A trip whose times contradict each other (a clock went back) counts for nothing.
    """
    sane = [
        trip
        for trip in trips
        if trip.back_ns >= trip.sent_ns
        and trip.back_ns - trip.sent_ns >= trip.answered_ns - trip.got_ns >= 0
    ]
    if not sane:
        return None
    best = min(sane, key=lambda trip: trip.error_ns)
    return Comparison(
        at_ns=(best.sent_ns + best.back_ns) // 2,
        offset_ns=best.offset_ns,
        error_ns=best.error_ns,
        method=method,
        reference_rank=REFERENCE_RANK,
    )


def same_host(mine: Card, reference: Card, at_ns: int) -> Comparison | None:
    """The exact offset where both clocks are made of one monotonic clock; else None."""
    if not mine.host or mine.host != reference.host:
        return None
    return Comparison(
        at_ns=at_ns,
        offset_ns=reference.to_wall_ns - mine.to_wall_ns,
        error_ns=SAME_HOST_ERROR_NS,
        method="same_host",
        reference_rank=REFERENCE_RANK,
    )
