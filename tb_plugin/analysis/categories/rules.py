"""Rules that tell what an allocation was by its stack and its life, in their order.

- names of frames tell the optimizer, sharding, input, and models being made or moved
  (`stack_marks`);
- what a backward frees and did not make was saved for it: an activation;
- what a backward makes and leaves behind is a gradient; the rest of it is an activation's
  gradient where that is proved (`gradients`), else temporary;
- what an optimizer makes and leaves behind is its state;
- what a forward makes and frees again before a backward follows is temporary.

A life is *cut* where an out-of-memory error came before its phase was over, or in a
forward the end of the history (a program takes its snapshots behind a backward or an
optimizer, not in it).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.allocator.lifetimes import BEFORE, OOM
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.categories.gradients import (
    BackwardLives,
    backward_lives,
)
from memboard.tb_plugin.analysis.categories.marks import (
    ACCUMULATE,
    ALL_GATHER,
    BACKWARD,
    BUCKET,
    COPY,
    DATA,
    MAKE,
    MODULE,
    MOVE,
    NO_PYTHON,
    OPTIMIZER,
    OPTIMIZER_STATE,
    REDUCE_SCATTER,
    SHARD,
    UNSHARD,
    WORKSPACE,
)
from memboard.tb_plugin.analysis.categories.phases import (
    BACKWARD_PHASE,
    FORWARD,
    NONE,
    OPTIMIZER_PHASE,
    Phases,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.tb_plugin.analysis.allocator.replay import Replay
    from memboard.tb_plugin.analysis.arrays import Flags, Ints


MAX_PHASES_KEPT: Final = 5
"""Most phases after which a forward's tensor that a program still holds (the output of a
step, until the next one overwrites it) is an activation. A tensor that is copied to the
device and held longer is no input either."""

OUTSIDE: Final = MODULE | BACKWARD | OPTIMIZER | NO_PYTHON
"""Marks that what is made outside of any phase does not bear."""


class LifeFacts:
    """What the rules look at, by life."""

    def __init__(
        self,
        marks: Ints,
        born_in: Ints,
        gone_in: Ints,
        kinds: Ints,
        is_cut: Flags,
        is_workspace: Flags | None = None,
        backward: BackwardLives | None = None,
    ) -> None:
        """`kinds`: of the instances of phases, in order; see `phases`."""
        self.marks = marks
        """Of where it was made: see `stack_marks`."""
        self.born_in = born_in
        """Instance of a phase that it was made in; 0: before all of them."""
        self.gone_in = gone_in
        """Instance of a phase that it went in; their number where it was still there."""
        self._kinds = kinds
        self.is_cut = is_cut
        """An error, or the end of the history, came before its phase was over."""
        self.is_workspace: Flags = (
            self.has(WORKSPACE) if is_workspace is None else is_workspace
        )  # See `workspaces`
        self.backward = BackwardLives.none(len(marks)) if backward is None else backward
        """What is known of it by what its backward let go of."""

    def has(self, marks: int) -> Flags:
        """Whether the stack of its allocation bears one of these marks."""
        borne: Flags = (self.marks & marks) != 0
        return borne

    @cached_property
    def made(self) -> Ints:
        """Kind of phase that it was made in."""
        return self._kinds[self.born_in]

    @cached_property
    def went(self) -> Ints:
        """Kind of phase that it went in; NOTHING where it was still there."""
        return np.append(self._kinds, NOTHING)[self.gone_in]

    @cached_property
    def outlives(self) -> Flags:
        """It was there when another phase began: not merely used on the way."""
        outlives: Flags = self.gone_in > self.born_in
        return outlives

    @cached_property
    def freed_by_backward(self) -> Flags:
        """A backward let go of what was made before it."""
        freed: Flags = (self.went == BACKWARD_PHASE) & self.outlives & ~self.is_cut
        return freed

    @cached_property
    def is_training(self) -> Flags:
        """It was made in a forward that a backward followed."""
        after = np.append(self._kinds[1:], NONE)
        is_training: Flags = after[self.born_in] == BACKWARD_PHASE
        is_training &= self.made == FORWARD
        return is_training

    @cached_property
    def num_phases(self) -> Ints:
        """How many phases began while it was there."""
        return self.gone_in - self.born_in


def facts_of(replay: Replay) -> LifeFacts:
    """Those of the lives of a recorded history."""
    lives, phases = replay.lives, replay.phases
    # The last one is for no stack; what is from before has no stack of its own.
    of_life = np.append(replay.stacks.marks, 0)[lives.stack]
    of_life = np.where(lives.born == BEFORE, of_life & ~NO_PYTHON, of_life)
    born_in = np.append(phases.of_event, 0)[lives.born]
    of_event = np.append(phases.of_event, len(phases))
    gone_in = of_event[np.minimum(lives.gone, replay.num_events)]
    is_cut = _cut(replay, phases, born_in)
    return LifeFacts(
        of_life,
        born_in,
        gone_in,
        phases.kind,
        is_cut,
        replay.workspaces,
        backward_lives(replay, born_in, is_cut),
    )


def _cut(replay: Replay, phases: Phases, born_in: Ints) -> Flags:
    """Whether an error, or the end of the history, came before its phase was over."""
    lives, num_events = replay.lives, replay.num_events
    oom = np.flatnonzero(replay.device.events.action == OOM)
    # The first error after its birth, and whether its phase was still going on.
    error = np.append(oom, num_events)[np.searchsorted(oom, lives.born)]
    of_event = np.append(phases.of_event, len(phases) - 1)
    ends = (error < num_events) | (phases.kind[born_in] == FORWARD)
    is_cut: Flags = (of_event[error] == born_in) & ends
    is_cut &= lives.gone >= error
    return is_cut


def _left_behind(facts: LifeFacts, kind: int) -> Flags:
    made: Flags = facts.made == kind
    return made & facts.outlives & ~facts.is_cut


def _used_up(facts: LifeFacts, kind: int) -> Flags:
    made: Flags = facts.made == kind
    return made & ~facts.outlives & ~facts.is_cut


def _made_for_good(facts: LifeFacts) -> Flags:
    """Made by what makes modules, and not gone before the first phase."""
    outside = ~facts.has(OUTSIDE & ~MODULE) & (facts.outlives | facts.is_cut)
    return facts.has(MAKE | SHARD) & outside


def _comes_and_goes(facts: LifeFacts) -> Flags:
    """As batches do: not made in a forward, and gone again a few phases later."""
    goes: Flags = (facts.went != NOTHING) & (facts.made != FORWARD)
    goes &= facts.num_phases <= MAX_PHASES_KEPT
    return goes


RULES: Final[tuple[tuple[str, str, Callable[[LifeFacts], Flags]], ...]] = (
    ("workspace of a library", "temp", lambda facts: facts.is_workspace),
    ("unsharded by FSDP", "unsharded_param", lambda facts: facts.has(UNSHARD)),
    ("gathered by FSDP", "all_gather", lambda facts: facts.has(ALL_GATHER)),
    (
        "reduced by FSDP, and kept",
        "sharded_grad",
        lambda facts: facts.has(REDUCE_SCATTER) & facts.outlives & ~facts.is_cut,
    ),
    (
        "reduced by FSDP",
        "reduce_scatter",
        lambda facts: facts.has(REDUCE_SCATTER) & ~facts.outlives,
    ),
    ("a bucket of DDP's", "bucket", lambda facts: facts.has(BUCKET)),
    (
        "a state that an optimizer sets up",
        "optimizer",
        lambda facts: facts.has(OPTIMIZER_STATE) & (facts.outlives | facts.is_cut),
    ),
    (
        "made by an optimizer, and kept",
        "optimizer",
        lambda facts: facts.has(OPTIMIZER) & facts.outlives & ~facts.is_cut,
    ),
    (
        "used up by an optimizer",
        "temp",
        lambda facts: facts.has(OPTIMIZER) & _used_up(facts, OPTIMIZER_PHASE),
    ),
    ("a module moved or loaded", "param", lambda facts: facts.has(MOVE)),
    (
        "a parameter sharded by FSDP",
        "sharded_param",
        lambda facts: facts.has(SHARD) & _made_for_good(facts),
    ),
    ("made while a model was made", "param", _made_for_good),
    (
        "loaded or moved as input",
        "input",
        lambda facts: facts.has(DATA) & ~facts.has(MODULE | BACKWARD | OPTIMIZER),
    ),
    (
        "copied to the device outside any module",
        "input",
        lambda facts: facts.has(COPY) & ~facts.has(OUTSIDE) & _comes_and_goes(facts),
    ),
    (
        "accumulated by a backward, and kept",
        "grad",
        lambda facts: facts.has(ACCUMULATE) & (facts.outlives | facts.is_cut),
    ),
    (
        "left behind by a backward",
        "grad",
        lambda facts: (
            facts.has(BACKWARD | NO_PYTHON) & _left_behind(facts, BACKWARD_PHASE)
        ),
    ),
    (
        "there at the end of a backward, and as large as a parameter",
        "grad",
        lambda facts: facts.backward.is_parameter_gradient & ~facts.is_cut,
    ),
    (
        "saved by a forward that a backward ran again",
        "activation",
        lambda facts: facts.backward.is_recomputed,
    ),
    (
        "made by a backward for its next operator, and no parameter's",
        "activation_grad",
        lambda facts: facts.backward.is_activation_gradient,
    ),
    ("used up by a backward", "temp", lambda facts: _used_up(facts, BACKWARD_PHASE)),
    (
        "freed by a backward that did not make it",
        "activation",
        lambda facts: facts.freed_by_backward,
    ),
    (
        "used up by a forward",
        "temp",
        lambda facts: facts.is_training & _used_up(facts, FORWARD),
    ),
    (
        "made in a forward without a backward",
        "activation",
        lambda facts: facts.has(MODULE) & ~facts.is_training & _used_up(facts, FORWARD),
    ),
    (
        "made in a forward, and held a little longer",
        "activation",
        lambda facts: (
            _left_behind(facts, FORWARD) & (facts.num_phases <= MAX_PHASES_KEPT)
        ),
    ),
)
"""In words, the category, and which lives it is true of; the first true one decides."""
