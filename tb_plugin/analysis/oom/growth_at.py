"""What a training kept from round to round until an out-of-memory error, by line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.allocator.growth_of_sites import SiteGrowth, growth_of_sites
from tb_plugin.analysis.allocator.lifetimes import ALLOC, BEFORE
from tb_plugin.analysis.allocator.loops import Allocations, loops
from tb_plugin.analysis.allocator.rounds import (
    MIN_ROUNDS,
    Rounds,
    rounds_by_memory,
    rounds_by_steps,
)
from tb_plugin.analysis.categories.marks import COPY, DATA, MODULE
from tb_plugin.analysis.categories.passes import collected
from tb_plugin.analysis.categories.phases import (
    BACKWARD_PHASE,
    FORWARD,
    OPTIMIZER_PHASE,
)
from tb_plugin.analysis.oom.error import Growth

if TYPE_CHECKING:
    from tb_plugin.analysis.allocator.replay import Replay
    from tb_plugin.analysis.arrays import Ints
    from tb_plugin.analysis.oom.holders import Lines


_MAX_LINES: Final = 3
_WORTH: Final = 0.1
"""Of what grew: what a line has to have kept to be named."""

_MAY_BEGIN: Final = DATA | COPY
"""Marks that a stack may bear where a round begins; calls of modules, backward, the
optimizer and the making of a model repeat within a round."""

_LONG: Final = 2
"""A step so many times as long as any before it may hold a loop of its own: an
evaluation behind the last marked step, or a generation within it."""


def growth_at(
    replay: Replay, event: int, lines: Lines, step: Ints | None = None
) -> Growth | None:
    """What was kept from round to round; None where nothing was, or rounds are not known.

    `step`: of each event, negative where it is not known; None: of none.
    """
    # What was freed and waits for another stream is not kept by the program.
    lives = replace(replay.lives, gone=replay.lives.freed)
    group = lines.groups(lives.stack)
    # Autograd's threads have no Python, and may keep memory all the same.
    unknown = (group < 0) & (lives.born != BEFORE)
    group = np.where(unknown, group.max(initial=0) + 1, group)
    grown: SiteGrowth | None = None
    by: Rounds | None = None
    for found in rounds_at(replay, event, lines, step):
        of_rounds = growth_of_sites(lives, group, found, event)
        if grown is None or of_rounds.total_bytes > grown.total_bytes:
            grown, by = of_rounds, found
    if grown is None or by is None or not grown.total_bytes:
        return None
    kept = np.flatnonzero(grown.kept_bytes >= _WORTH * grown.total_bytes)
    labels = []
    for place in kept.tolist():
        of_line = np.flatnonzero(group == grown.group[place])
        stack = int(lives.stack[of_line[-1]])
        labels.append(lines.label(stack))
    return Growth(
        num_bytes=grown.total_bytes,
        bytes_per_round=grown.bytes_per_round,
        num_rounds=grown.num_between,
        by=by.by,  # type: ignore[arg-type]
        before_bytes=int(grown.before_bytes.sum()),
        lines=tuple(label for label in labels[:_MAX_LINES] if label),
    )


def rounds_at(
    replay: Replay, event: int, lines: Lines, step: Ints | None
) -> list[Rounds]:
    """The rounds that can be told until an event, the surest first."""
    found, since = [], 0
    if step is not None:
        steps = rounds_by_steps(step[: event + 1])
        if len(steps) >= MIN_ROUNDS:
            found, since = [steps], int(steps.start[-1])
            if event - since <= _LONG * int(np.diff(steps.start).max()):
                return found
    told = _allocations(replay, event).since(since)
    may_begin = ~lines.has(~_MAY_BEGIN) & ~lines.calls("__init__")
    may_begin[-1] = False
    found += [Rounds(start, "stacks") for start in loops(told, may_begin)]
    if found:
        return found
    phases = _by_phases(replay, event)
    if len(phases) >= MIN_ROUNDS:
        return [Rounds(phases, "stacks")]
    by_memory = rounds_by_memory(replay.lives, event, _outside_modules(replay, lines))
    if len(by_memory):
        return [by_memory]
    made = collected(replay, lines, event)
    return [Rounds(made, "stacks")] if len(made) else []


def _allocations(replay: Replay, event: int) -> Allocations:
    events = replay.device.events
    at = np.flatnonzero(events.action[: event + 1] == ALLOC)
    num = len(replay.snapshot.stacks)
    stack = events.stack[at].astype(np.int64)
    return Allocations(at, np.where(stack < 0, num, stack), replay.active.after[at])


def _by_phases(replay: Replay, event: int) -> Ints:
    """Where a forward begins behind a backward or an optimizer."""
    phases = replay.phases
    kind = phases.kind
    begins = kind == FORWARD
    begins[1:] &= np.isin(kind[:-1], (BACKWARD_PHASE, OPTIMIZER_PHASE))
    first = np.searchsorted(phases.of_event, np.flatnonzero(begins))
    return first[first <= event]


def _outside_modules(replay: Replay, lines: Lines) -> Ints:
    """Events that allocated outside any module's call."""
    events = replay.device.events
    inside = lines.has(MODULE)[events.stack]
    return np.flatnonzero((events.action == ALLOC) & ~inside)
