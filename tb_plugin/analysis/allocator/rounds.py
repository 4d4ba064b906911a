"""The rounds of a training, found in what its allocator did: steps, or what repeats.

Where the events are marked with steps, a step is a round. Elsewhere stacks tell
(`loops`), and where there are none, the memory that comes and goes: of all allocations that were freed again by the
moment looked at, the live bytes rise and fall once per forward and backward, and are
near their floor in between, however much is kept besides. What is kept from round to
round can therefore not hide the rounds, which is what makes growth visible in them.

The layers of one forward make such waves too, and keep something in each. But a step
does more than call a module: it fetches a batch, computes a loss, runs backward. So a
round is only one where something was allocated outside any module's call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from tb_plugin.analysis.arrays import Table, begins, changes

if TYPE_CHECKING:
    from tb_plugin.analysis.allocator.lifetimes import Lifetimes
    from tb_plugin.analysis.arrays import Ints


RoundsBy: TypeAlias = Literal["steps", "stacks", "memory", "nothing"]

MIN_ROUNDS: Final = 4
"""Begun rounds that it takes to speak of rounds: the first is not like the others, and
the last one is cut off by the moment looked at."""

LOW: Final = 0.2
HIGH: Final = 0.5
"""Parts of the way from the floor to the top: a round ends below the one, after it was
above the other. Steps may differ in size by 1 / HIGH."""

MIN_SWING: Final = 0.02
"""What comes and goes is at least this share of what is live: temporaries of single
layers come and go too, and make no rounds. A leak makes the share small."""

_FLOOR_PCT: Final = 2.0
_TOP_PCT: Final = 98.0


@dataclass(frozen=True, slots=True)
class Rounds(Table):
    """Where rounds begin, up to a moment."""

    start: Ints
    """Events, ascending; the last round is the one under way."""
    by: RoundsBy


def rounds_by_steps(step: Ints) -> Rounds:
    """Rounds by marks; `step`: of each event, negative where it is not known."""
    known = np.flatnonzero(step >= 0)
    return Rounds(known[begins(step[known])], "steps")


def rounds_by_memory(
    lives: Lifetimes, moment: int, outside: Ints | None = None
) -> Rounds:
    """Rounds until a moment by the memory that comes and goes.

    `outside`: events that allocated outside any module's call, ascending; None: not
    known.
    """
    start = _by_memory(lives, moment)
    if outside is not None:
        start = _parted(start, outside)
    if len(start) >= MIN_ROUNDS:
        return Rounds(start, "memory")
    return Rounds(np.empty(0, np.int64), "nothing")


def _parted(start: Ints, outside: Ints) -> Ints:
    """Those beginnings that something outside modules parts from the one before."""
    kept: list[int] = []
    for at, before in zip(start.tolist(), np.searchsorted(outside, start), strict=True):
        if not kept or before > np.searchsorted(outside, kept[-1]):
            kept.append(at)
    return np.array(kept, np.int64)


def _by_memory(lives: Lifetimes, moment: int) -> Ints:
    """Where passing memory begins to rise from its floor."""
    passing = (lives.gone <= moment) & (lives.gone >= 0) & (lives.born <= moment)
    born, gone = np.maximum(lives.born[passing], 0), lives.gone[passing]
    level = np.cumsum(changes(born, gone, lives.size[passing], moment + 1)[0])
    is_live = (lives.born <= moment) & (lives.gone > moment)
    num_live = int(lives.size[is_live].sum())
    if not len(level):
        return np.empty(0, np.int64)
    floor, top = np.percentile(level, (_FLOOR_PCT, _TOP_PCT))
    if top - floor < MIN_SWING * num_live or top <= floor:
        return np.empty(0, np.int64)
    side = np.zeros(len(level), np.int8)
    side[level <= floor + LOW * (top - floor)] = -1
    side[level >= floor + HIGH * (top - floor)] = 1
    turns = np.flatnonzero(side)
    turns = turns[np.flatnonzero(np.diff(side[turns], prepend=np.int8(0)) != 0)]
    # From low to high: a round begins at the lowest level on the way up from there.
    rises = np.flatnonzero((side[turns][:-1] == -1) & (side[turns][1:] == 1))
    starts = []
    for low, high in zip(turns[rises], turns[rises + 1], strict=True):
        between = level[low : high + 1]
        starts.append(int(low + len(between) - 1 - np.argmin(between[::-1])))
    if len(turns) and side[turns[-1]] == -1 and starts:
        starts.append(int(turns[-1]))  # the round that the moment cut off
    return np.array(starts, np.int64)
