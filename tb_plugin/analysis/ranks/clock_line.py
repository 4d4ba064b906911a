"""The offset of one clock from another over time, from comparisons with error bounds.

Between two comparisons the offset is interpolated: clocks drift evenly over minutes. Its
bound grows with the distance from the nearest comparison, by how far a clock may wander
off that line, and outside of all comparisons also by what the slope may be off.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_PARTS: Final = 10**6

WANDER_PPM: Final = 10
"""Largest deviation of two clocks from even drift: crystals follow the temperature."""

DRIFT_PPM: Final = 200
"""Largest drift of two clocks where nothing was measured: two crystals of
100 ppm each."""


class Reading(NamedTuple):
    """An offset at a moment."""

    at_ns: int
    """By the clock that was compared."""
    offset_ns: int
    """Add it to that clock to get the other one's time."""
    error_ns: int | None
    """The true offset is at most this far away; None: unknown."""


class Offset(NamedTuple):
    """What a line says of a moment."""

    offset_ns: int
    error_ns: int | None


class Stretch(NamedTuple):
    """A part of a line in which the offset changes evenly."""

    from_ns: int
    offset_ns: int  # At `from_ns`
    rise_ns: int
    span_ns: int
    """The offset grows by `rise_ns` in this time."""

    def at(self, ns: int) -> int:
        """The offset at a moment, in whole nanoseconds."""
        return self.offset_ns + (ns - self.from_ns) * self.rise_ns // self.span_ns


@dataclass(frozen=True, slots=True)
class ClockLine:
    """Offsets over time; `SAME` is a clock's own."""

    readings: tuple[Reading, ...]  # At least one, ascending
    is_steady: bool = False
    """Of a single reading: the clocks cannot drift apart, and the bound does not grow."""

    def at(self, ns: int) -> Offset:
        """The offset at a moment, with its bound."""
        return Offset(self.stretch_at(ns).at(ns), self._error_at(ns))

    def stretch_at(self, ns: int) -> Stretch:
        """The part of the line that a moment lies in."""
        index = self._index(ns)
        first = self.readings[index]
        rise, span = self._slope(index)
        return Stretch(first.at_ns, first.offset_ns, rise, span)

    def stretches(self) -> tuple[Stretch, ...]:
        """The whole line. The first begins long before, the last goes on for ever."""
        every = range(max(1, len(self.readings) - 1))
        return tuple(self.stretch_at(self.readings[index].at_ns) for index in every)

    def worst_error_ns(self, first_ns: int, last_ns: int) -> int | None:
        """The greatest bound in a range; None where any is unknown."""
        inside = [r.at_ns for r in self.readings if first_ns <= r.at_ns <= last_ns]
        pairs = itertools.pairwise(inside)
        moments_ns = [first_ns, last_ns, *inside, *((a + b) // 2 for a, b in pairs)]
        errors = [self._error_at(ns) for ns in moments_ns]
        bounds = [error for error in errors if error is not None]
        return max(bounds) if len(bounds) == len(errors) else None

    def _index(self, ns: int) -> int:
        """Of the reading that the moment's part of the line begins with."""
        index = bisect_right(self.readings, ns, key=lambda reading: reading.at_ns) - 1
        return min(max(index, 0), max(0, len(self.readings) - 2))

    def _slope(self, index: int) -> tuple[int, int]:
        """How much the offset grows, and in what time."""
        if index + 1 >= len(self.readings):
            return 0, 1
        first, second = self.readings[index], self.readings[index + 1]
        return second.offset_ns - first.offset_ns, second.at_ns - first.at_ns

    def _error_at(self, ns: int) -> int | None:
        index = self._index(ns)
        first = self.readings[index]
        if first.error_ns is None:
            return None
        if len(self.readings) == 1 and self.is_steady:
            return first.error_ns
        if len(self.readings) == 1:
            return first.error_ns + _grown(abs(ns - first.at_ns), DRIFT_PPM)
        second = self.readings[index + 1]
        if second.error_ns is None:
            return None
        span = second.at_ns - first.at_ns
        if first.at_ns <= ns <= second.at_ns:
            share = (ns - first.at_ns) / span
            ends = first.error_ns * (1 - share) + second.error_ns * share
            near = min(ns - first.at_ns, second.at_ns - ns)
            return int(ends) + _grown(near, WANDER_PPM) + 1
        nearest = first if ns < first.at_ns else second
        away = abs(ns - nearest.at_ns)
        slope = (first.error_ns + second.error_ns) * away // span
        # A slope measured badly is no worse than none at all.
        rise, _ = self._slope(index)
        slope = min(slope, _grown(away, DRIFT_PPM) + abs(rise) * away // span)
        return int(nearest.error_ns or 0) + slope + _grown(away, WANDER_PPM) + 1


def steady(offset_ns: int, error_ns: int | None) -> ClockLine:
    """The line of clocks that are always this far apart."""
    return ClockLine((Reading(0, offset_ns, error_ns),), is_steady=True)


SAME: Final = steady(0, 0)


def clock_line(readings: Iterable[Reading]) -> ClockLine | None:
    """The line through readings, without those that better ones nearby make worthless.

    None without readings. Where some have bounds and others none, these count for
    nothing.
    """
    every = sorted(readings, key=lambda reading: reading.at_ns)
    bounded = [reading for reading in every if reading.error_ns is not None]
    bounded.sort(key=lambda reading: (reading.at_ns, -(reading.error_ns or 0)))
    # The last one of each moment.
    kept = list({reading.at_ns: reading for reading in bounded or every}.values())
    if bounded:
        kept = _without_poor(kept)
    return ClockLine(tuple(kept)) if kept else None


def shifted(line: ClockLine, offset_ns: int, error_ns: int | None) -> ClockLine:
    """The line to a third clock, which is so far from the second at all times."""
    moved = []
    for at_ns, offset, error in line.readings:
        is_bounded = error is not None and error_ns is not None
        reach = (error or 0) + (error_ns or 0) if is_bounded else None
        moved.append(Reading(at_ns, offset + offset_ns, reach))
    return ClockLine(tuple(moved), line.is_steady)


def _without_poor(readings: list[Reading]) -> list[Reading]:
    """Leave out what a neighbour says better, even after drifting all the way here.

    One pass forwards and one backwards; what is left ascends strictly.
    """
    for _ in range(2):
        kept: list[Reading] = []
        for reading in readings:
            if kept and _is_worthless(reading, kept[-1]):
                continue
            kept.append(reading)
        readings = kept[::-1]
    return readings


def _is_worthless(reading: Reading, other: Reading) -> bool:
    away = abs(reading.at_ns - other.at_ns)
    reach = (other.error_ns or 0) + _grown(away, DRIFT_PPM)
    return reach < (reading.error_ns or 0)


def _grown(distance_ns: int, ppm: int) -> int:
    return distance_ns * ppm // _PARTS
