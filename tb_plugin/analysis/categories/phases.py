"""Forward, backward, optimizer: which of them an allocator was in, told from stacks.

An event whose stack has a backward's mark was in a backward, one with an optimizer's in
an optimizer, one with a module's call in a forward; all others go on with what was
before. Events that follow each other in one of these make an *instance* of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.allocator.lifetimes import (
    ALLOC,
    SEGMENT_FREE,
    SEGMENT_UNMAP,
)
from memboard.tb_plugin.analysis.categories.marks import (
    BACKWARD,
    MODULE,
    NO_PYTHON,
    OPTIMIZER,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from memboard.tb_plugin.analysis.allocator.lifetimes import Lifetimes
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.snapshots.snapshot import Events


PHASES: Final = ("", "forward", "backward", "optimizer")
"""A phase is its index here; the first: before any of them."""

NONE: Final = 0
FORWARD: Final = 1
BACKWARD_PHASE: Final = 2
OPTIMIZER_PHASE: Final = 3


@dataclass(frozen=True, slots=True)
class Phases:
    """Instances of phases, in order."""

    of_event: Ints  # (events,): row of `kind`
    kind: Ints
    """Of each instance: index in `PHASES`."""

    def __len__(self) -> int:
        return len(self.kind)


def asked_in(marks: int) -> str:
    """The phase that the marks of one stack tell; empty: none."""
    for bits, kind in (
        (BACKWARD | NO_PYTHON, BACKWARD_PHASE),
        (OPTIMIZER, OPTIMIZER_PHASE),
        (MODULE, FORWARD),
    ):
        if marks & bits:
            return PHASES[kind]
    return ""


def phases_of(events: Events, lives: Lifetimes, marks: Ints) -> Phases:
    """Instances over the events of a device; `marks`: of the stacks."""
    of_stack = np.full(len(marks) + 1, NONE, np.int8)  # the last one is for no stack
    of_stack[:-1][(marks & MODULE) != 0] = FORWARD
    of_stack[:-1][(marks & OPTIMIZER) != 0] = OPTIMIZER_PHASE
    of_stack[:-1][(marks & (BACKWARD | NO_PYTHON)) != 0] = BACKWARD_PHASE
    kind = of_stack[events.stack]
    # A free on a thread without Python may be anybody's.
    unsure = np.append((marks & NO_PYTHON) != 0, False)[events.stack]
    kind = np.where(unsure & (events.action != ALLOC), NONE, kind)
    # A segment that goes bears the stack that it came with, which may be any phase's.
    kind = np.where(np.isin(events.action, (SEGMENT_FREE, SEGMENT_UNMAP)), NONE, kind)
    kind = np.where(_lent(events.stack, lives), NONE, kind)
    marked = np.flatnonzero(kind)
    begins = marked[np.flatnonzero(np.diff(kind[marked], prepend=NONE))]
    lengths = np.diff(begins, prepend=0, append=len(kind))
    of_event = np.repeat(np.arange(len(begins) + 1, dtype=np.int32), lengths)
    return Phases(of_event, np.concatenate([[NONE], kind[begins]]))


def _lent(stack: Ints, lives: Lifetimes) -> npt.NDArray[np.bool_]:
    """Frees that bear the stack of what they free, not their own.

    So does every free where stacks are recorded for allocations alone (`context="alloc"`),
    and every end of a wait for another stream.
    """
    is_lent = np.zeros(len(stack), np.bool_)
    for end in (lives.freed, lives.gone):
        is_inside = (end >= 0) & (end < len(stack))  # it may have been before the first
        is_lent[end[is_inside]] |= stack[end[is_inside]] == lives.stack[is_inside]
    return is_lent
