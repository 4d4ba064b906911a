"""Trainings are told from evaluations by a backward, or by a graph that is kept.

A training that dies in its first forward had no backward yet, as an evaluation has none.
But a forward that records a graph keeps what most of its lines allocate, and one without
gradients lets go of nearly all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.allocator.lifetimes import ALLOC, BEFORE
from memboard.tb_plugin.analysis.categories.frames import LIBRARY, NATIVE, USER
from memboard.tb_plugin.analysis.categories.marks import (
    ACCUMULATE,
    BACKWARD,
    MAKE,
    MODULE,
    MOVE,
    NO_PYTHON,
    OPTIMIZER,
    OPTIMIZER_STATE,
    python_marks,
)

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.replay import Replay
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.snapshots.snapshot import Stacks


KEEPS: Final = 0.5
"""Of a stack's blocks that are live, and of a forward's stacks that keep theirs so."""

ALWAYS: Final = 0.9
"""The same of a stack that keeps all it makes, but for what is under way."""

OFTEN: Final = 8
"""Blocks of a stack that keeps them all, from which on they are a collection."""

FEWEST: Final = 2
"""Backwards seen, from which on it is known by which functions a training calls."""

TRAINING: Final = BACKWARD | ACCUMULATE | OPTIMIZER | OPTIMIZER_STATE | NO_PYTHON
"""Marks that only a training bears."""
_OTHER: Final = TRAINING | MAKE | MOVE


def had_backward(replay: Replay, event: int) -> bool:
    """Whether a backward or an optimizer allocated until an event."""
    events = replay.device.events
    made = events.action[: event + 1] == ALLOC
    stacks = events.stack[: event + 1][made]
    return bool(replay.stacks.has(TRAINING)[stacks].any())


def keeps_graph(replay: Replay, event: int, caches: Flags) -> bool:
    """Whether most of a forward's stacks keep what they make; `caches`: by stack."""
    stack, made, kept = _kept(replay, event, caches)
    num_keep = int(np.count_nonzero(kept >= KEEPS * made))
    return num_keep >= max(1.0, KEEPS * len(stack))


def collected(replay: Replay, event: int) -> Ints:
    """Where the stack that keeps all its many blocks makes them, where no graph is kept.

    The outputs of an evaluation: every pass adds one, and lets go of all the rest. Empty:
    nothing of the kind, or a backward was seen.
    """
    none = np.empty(0, np.int64)
    if had_backward(replay, event):
        return none
    caches = np.zeros(len(replay.stacks) + 1, np.bool_)
    if keeps_graph(replay, event, caches):
        return none
    stack, made, kept = _kept(replay, event, caches)
    chosen = np.flatnonzero((made >= OFTEN) & (kept >= ALWAYS * made))
    if not len(chosen):
        return none
    lives = replay.lives
    size = [int(lives.size[lives.stack == stack[row]].sum()) for row in chosen]
    most = stack[chosen[int(np.argmax(size))]]
    events = replay.device.events
    is_made = (events.action[: event + 1] == ALLOC) & (
        events.stack[: event + 1] == most
    )
    return np.flatnonzero(is_made)


def by_other_ways(replay: Replay, last: int, event: int) -> bool:
    """Whether all passes since the last backward came by functions that none followed.

    A training calls its model by the same functions in every step; an evaluation by
    others, which no backward has followed before and none will. `last`: the event of
    the last backward or optimizer.
    """
    events = replay.device.events
    made = (events.action == ALLOC) & replay.stacks.has(MODULE)[events.stack]
    ways = np.append(_ways(replay.stacks), -1)[events.stack]
    passing, trained = ways[last + 1 : event + 1], ways[: last + 1]
    passing, trained = passing[made[last + 1 : event + 1]], trained[made[: last + 1]]
    if not len(passing) or (passing < 0).any():
        return False
    backward = replay.stacks.has(BACKWARD | NO_PYTHON)[events.stack[: last + 1]]
    backward &= events.action[: last + 1] == ALLOC  # a free may bear another's stack
    begins = np.flatnonzero(made[: last + 1] | backward)
    num = np.count_nonzero(np.diff(backward[begins].astype(np.int8)) > 0)
    return bool(num >= FEWEST and not np.isin(passing, trained).any())


def _ways(stacks: Stacks) -> Ints:
    """By stack: a number for the functions by which the model was called; -1: it was not."""
    kinds = stacks.kinds
    in_model = [
        kind != NATIVE and bool(python_marks(function, filename) & MODULE)
        for kind, function, filename in zip(
            kinds.tolist(), stacks.name, stacks.filename, strict=True
        )
    ]
    way_of_stack = np.full(len(stacks), -1, np.int64)
    numbers: dict[tuple[tuple[str, str], ...], int] = {}
    for stack in np.flatnonzero(stacks.has(MODULE)[:-1]).tolist():
        frames = stacks.of(stack).tolist()
        outermost = max(index for index, row in enumerate(frames) if in_model[row])
        way = tuple(
            (stacks.filename[row], stacks.name[row])
            for row in frames[outermost + 1 :]
            if kinds[row] in (USER, LIBRARY)
        )
        if way:
            way_of_stack[stack] = numbers.setdefault(way, len(numbers))
    return way_of_stack


def _kept(replay: Replay, event: int, left_out: Flags) -> tuple[Ints, Ints, Ints]:
    """Of each stack of a forward: the blocks it made, and those that are live."""
    lives = replay.lives
    of_pass = replay.stacks.has(MODULE) & ~replay.stacks.has(_OTHER) & ~left_out
    rows = (lives.born != BEFORE) & (lives.born <= event) & of_pass[lives.stack]
    stack, place = np.unique(lives.stack[rows], return_inverse=True)
    live = lives.freed[rows] > event
    made = np.bincount(place.reshape(-1), minlength=len(stack))
    kept = np.bincount(place.reshape(-1)[live], minlength=len(stack))
    return stack, made, kept
