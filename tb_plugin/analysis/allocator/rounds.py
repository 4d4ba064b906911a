"""The rounds of a training, found in what its allocator did: steps, or what repeats.

Where the events are marked with steps, a step is a round. Elsewhere stacks tell: every
pass of a loop calls the same lines, whatever lengths its batches have and however much it
keeps. So a stack outside any module's call that occurs once in a pass says where passes
begin, if most other stacks recur between each two of its occurrences. A stack of a layer
also recurs, but only layers lie between two of those.

Without stacks the memory that comes and goes tells: of all allocations that were freed
again by the moment looked at, the live bytes rise and fall once per forward and backward,
and are near their floor in between, however much is kept besides. The layers of one
forward make such waves too, and keep something in each. But a step does more than call a
module: it fetches a batch, computes a loss, runs backward. So a round is only one where
something was allocated outside any module's call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import Table, begins, changes

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.lifetimes import Lifetimes
    from memboard.tb_plugin.analysis.arrays import Flags, Ints


RoundsBy: TypeAlias = Literal["steps", "stacks", "memory", "nothing"]

MIN_ROUNDS: Final = 4
"""Begun rounds that it takes to speak of rounds: the first is not like the others, and
the last one is cut off by the moment looked at."""

LOW: Final = 0.2
HIGH: Final = 0.5
"""Parts of the way from the floor to the top: a round ends below the one, after it was
above the other. Steps may differ in size by 1 / HIGH."""

MIN_SWING: Final = 0.02
"""Least share of live memory that comes and goes in a round: temporaries of
single layers come and go too, and make no rounds. A leak makes the share small."""

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
    events = np.flatnonzero(step >= 0)
    return Rounds(events[begins(step[events])], "steps")


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
    for start_event, before in zip(
        start.tolist(), np.searchsorted(outside, start), strict=True
    ):
        if not kept or before > np.searchsorted(outside, kept[-1]):
            kept.append(start_event)
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


MIN_PASSES: Final = 4
"""Begun passes that it takes to speak of a loop."""

PERIODIC: Final = 0.75
"""A stack belongs to the loop if it occurs in so many of its passes: some log or
evaluate every few steps."""

COVERED: Final = 0.5
"""Of the allocations since the loop began: those whose stacks belong to it."""

ALIKE: Final = 0.02
"""Anchors whose share of all recurring allocations differs by less begin the same
loop."""

MAX_WINDOW: Final = 1 << 17
"""Allocations before the moment in which anchors are sought."""

MAX_TRIED: Final = 24


@dataclass(frozen=True, slots=True)
class Allocations(Table):
    """Those until a moment, in order."""

    event: Ints
    stack: Ints
    """From 0; what has no stack bears a number of its own."""
    level: Ints
    """Live bytes just after each."""

    def since(self, event: int) -> Allocations:
        """Those from an event on."""
        first = int(np.searchsorted(self.event, event))
        return self.take(slice(first, None))

    def recent(self) -> Allocations:
        """The last ones, as many as anchors are sought in."""
        return self.take(slice(max(0, len(self.event) - MAX_WINDOW), None))

    def starts(self, anchor: int) -> Ints:
        """Places where a stack occurs and did not occur just before."""
        anchor_rows: Ints = np.flatnonzero(begins(self.stack) & (self.stack == anchor))
        return anchor_rows


@dataclass(frozen=True, slots=True)
class _Anchor:
    stack: int
    score: float
    """Share of all recurring allocations that its loop explains."""
    level: float
    """Mean level where it occurs: a pass begins where little lives."""


def loops(allocations: Allocations, may_begin: Flags) -> list[Ints]:
    """The events at which the passes of loops begin, up to two loops.

    The first is the one that explains most of what was allocated; the second, if any,
    began after the last pass of the first, as an evaluation behind a training.

    Args:
        allocations: in order.
        may_begin: by stack, whether it may begin a pass: outside calls of modules.
    """
    first = _loop(allocations, may_begin)
    if first is None:
        return []
    second = _loop(allocations.since(int(first[-1]) + 1), may_begin)
    return [first] if second is None else [first, second]


def _loop(allocations: Allocations, may_begin: Flags) -> Ints | None:
    recent = allocations.recent()
    anchors = [
        anchor
        for stack in _candidates(recent.stack, may_begin)
        if (anchor := _anchor(recent, stack)) is not None
    ]
    if not anchors:
        return None
    best = max(anchor.score for anchor in anchors)
    alike = [anchor for anchor in anchors if anchor.score >= best - ALIKE]
    chosen = min(alike, key=lambda anchor: anchor.level)
    return allocations.event[allocations.starts(chosen.stack)]


def _candidates(stack: Ints, may_begin: Flags) -> list[int]:
    """Stacks that may begin passes; of too many, those with the commonest counts.

    What happens once in each pass occurs as often as much else does.
    """
    count = np.bincount(stack[begins(stack)], minlength=len(may_begin))
    candidates = np.flatnonzero(may_begin & (count >= MIN_PASSES))
    common = np.bincount(count)[count[candidates]]
    order = np.argsort(-common, kind="stable")[:MAX_TRIED]
    chosen: list[int] = candidates[order].tolist()
    return chosen


def _anchor(allocations: Allocations, stack: int) -> _Anchor | None:
    """What speaks for a stack; None where too little does."""
    starts = allocations.starts(stack)
    num = len(starts) - 1
    since = allocations.stack[starts[0] :]
    whole = allocations.stack[starts[0] : starts[-1]]
    number = np.repeat(np.arange(num), np.diff(starts))
    pairs = np.unique(whole.astype(np.int64) * num + number)
    passes = np.bincount(pairs // num, minlength=int(allocations.stack.max()) + 1)
    periodic = passes >= PERIODIC * num
    covered = int(np.count_nonzero(periodic[since]))
    if covered < COVERED * len(since) or np.count_nonzero(periodic) < 2:
        return None
    recurs = np.bincount(allocations.stack)[allocations.stack] >= MIN_PASSES
    return _Anchor(
        stack=stack,
        score=covered / max(1, int(np.count_nonzero(recurs))),
        level=float(allocations.level[starts].mean()),
    )
