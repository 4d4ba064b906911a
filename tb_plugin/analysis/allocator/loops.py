"""The loops of a program, told by stacks that allocate again and again.

Every pass of a training loop calls the same lines, whatever lengths its batches have and
however much it keeps. So a stack outside any module's call that occurs once in a pass
says where passes begin, if most other stacks recur between each two of its occurrences.
A stack of a layer also recurs, but only layers lie between two of those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.arrays import Table, begins

if TYPE_CHECKING:
    from tb_plugin.analysis.arrays import Flags, Ints


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
        found: Ints = np.flatnonzero(begins(self.stack) & (self.stack == anchor))
        return found


@dataclass(frozen=True, slots=True)
class _Anchor:
    stack: int
    score: float
    """Share of all recurring allocations that its loop explains."""
    level: float
    """Mean level where it occurs: a pass begins where little lives."""


def loops(found: Allocations, may_begin: Flags) -> list[Ints]:
    """The events at which the passes of loops begin, up to two loops.

    The first is the one that explains most of what was allocated; the second, if any,
    began after the last pass of the first, as an evaluation behind a training.

    Args:
        found: the allocations.
        may_begin: by stack, whether it may begin a pass: outside calls of modules.
    """
    first = _loop(found, may_begin)
    if first is None:
        return []
    second = _loop(found.since(int(first[-1]) + 1), may_begin)
    return [first] if second is None else [first, second]


def _loop(found: Allocations, may_begin: Flags) -> Ints | None:
    recent = found.recent()
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
    return found.event[found.starts(chosen.stack)]


def _candidates(stack: Ints, may_begin: Flags) -> list[int]:
    """Stacks that may begin passes; of too many, those with the commonest counts.

    What happens once in each pass occurs as often as much else does.
    """
    count = np.bincount(stack[begins(stack)], minlength=len(may_begin))
    found = np.flatnonzero(may_begin & (count >= MIN_PASSES))
    common = np.bincount(count)[count[found]]
    order = np.argsort(-common, kind="stable")[:MAX_TRIED]
    chosen: list[int] = found[order].tolist()
    return chosen


def _anchor(found: Allocations, stack: int) -> _Anchor | None:
    """What speaks for a stack; None where too little does."""
    starts = found.starts(stack)
    num = len(starts) - 1
    since = found.stack[starts[0] :]
    whole = found.stack[starts[0] : starts[-1]]
    number = np.repeat(np.arange(num), np.diff(starts))
    pairs = np.unique(whole.astype(np.int64) * num + number)
    passes = np.bincount(pairs // num, minlength=int(found.stack.max()) + 1)
    periodic = passes >= PERIODIC * num
    covered = int(np.count_nonzero(periodic[since]))
    if covered < COVERED * len(since) or np.count_nonzero(periodic) < 2:
        return None
    recurs = np.bincount(found.stack)[found.stack] >= MIN_PASSES
    return _Anchor(
        stack=stack,
        score=covered / max(1, int(np.count_nonzero(recurs))),
        level=float(found.level[starts].mean()),
    )
