"""Finds gradients of parameters, gradients of activations and recomputed activations.

Autograd's engine runs one node after the other, and when a node's function has returned,
the engine lets go of what came in, then of what the node had saved for it. Memory that is
made in a backward and still there at such a release has outlived the function that made
it: it is a gradient under way to the next node, and no temporary memory of a kernel. So
what a release proves is proved for the releases of proved gradients in turn.

Such a gradient is a parameter's where it stays, and may be one where it is as large as a
parameter: one that is added to another, or copied into a bucket, goes as others do. So
of such a size it is an activation's only where a module made something as large, and
the gradients of that size stay in this backward, where none was before. FSDP1's parameters are views of flat ones, whose
gradients have sizes of their own: nothing is told there.

A forward that a backward runs again saves activations; the engine lets go of these too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.collector.format.memory import CATEGORIES, FOLDS_INTO
from memboard.tb_plugin.analysis.allocator.lifetimes import ALLOC, BEFORE
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.categories.marks import (
    ALL_GATHER,
    BACKWARD,
    BUCKET,
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
    called_by_engine,
    engine_stacks,
)
from memboard.tb_plugin.analysis.categories.phases import (
    BACKWARD_PHASE,
    NONE,
    OPTIMIZER_PHASE,
)

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.replay import Replay
    from memboard.tb_plugin.analysis.arrays import Flags, Ints


MAX_ROUNDS: Final = 64
"""Nodes in a row that saved nothing, through which one release proves the next."""

MANY_FREES: Final = 32
"""That all bear the stack of their allocation: frees have no stacks of their own there."""

MAX_PHASES_OF_BATCH: Final = 5
"""What was made outside of any phase and goes later than this may be a parameter."""

_ALIGNMENT: Final = 512
"""Bytes; blocks from before the history are known by their rounded size."""

_PARAMETERS: Final = tuple(
    code for code, name in enumerate(CATEGORIES) if FOLDS_INTO[name] == "param"
)
_MODELS: Final = tuple(
    code
    for code, name in enumerate(CATEGORIES)
    if FOLDS_INTO[name] in ("param", "grad")
)
_NAMED: Final = (
    OPTIMIZER | OPTIMIZER_STATE | ALL_GATHER | REDUCE_SCATTER | UNSHARD | SHARD | BUCKET
)
"""Marks of what is no gradient, nor saved by a forward."""
_MADE_MODEL: Final = MAKE | MOVE | SHARD | UNSHARD | OPTIMIZER_STATE
_FLAT_PARAMETER: Final = "_alloc_padded_unsharded_flat_param"


class BackwardLives(NamedTuple):
    is_parameter_gradient: Flags
    """There at the end of its backward, and as large as a recorded parameter."""
    is_activation_gradient: Flags
    """Outlived the node that made it, and no parameter's."""
    is_recomputed: Flags
    """Saved by a forward that the backward ran again."""

    @classmethod
    def none(cls, num: int) -> BackwardLives:
        """Where nothing is known of `num` lives."""
        return cls(*(np.zeros(num, np.bool_) for _ in cls._fields))


def backward_lives(replay: Replay, born_in: Ints, is_cut: Flags) -> BackwardLives:
    """Of a recorded history; `born_in`: by life, the instance of its phase."""
    engine = _Engine(replay, born_in)
    return BackwardLives(
        is_parameter_gradient=_of_parameters(replay, born_in),
        is_activation_gradient=engine.gradients_of_activations(is_cut),
        is_recomputed=engine.recomputed(),
    )


def _of_parameters(replay: Replay, born_in: Ints) -> Flags:
    """What is there at a backward's last allocation and has a recorded parameter's size.

    An optimizer that allocates nothing, as one whose states are there, begins no phase: its
    gradients go before another phase begins, as those of activations do. Where an
    optimizer's phase follows, what is there in that tells, whatever its size.
    """
    lives, phases, tensors = replay.lives, replay.phases, replay.snapshot.tensors
    if tensors is None:
        return np.zeros(len(lives), np.bool_)
    is_parameter = np.isin(tensors.category, _PARAMETERS)
    in_backward = replay.stacks.has(BACKWARD | NO_PYTHON)
    last = _last_allocations(replay, in_backward)
    ours = in_backward[lives.stack] & (lives.born != BEFORE)
    is_gradient: Flags = ours & (phases.kind[born_in] == BACKWARD_PHASE)
    is_gradient &= np.append(phases.kind[1:], NONE)[born_in] != OPTIMIZER_PHASE
    is_gradient &= lives.gone > last[born_in]
    return is_gradient & np.isin(lives.size, tensors.num_bytes[is_parameter])


def _last_allocations(replay: Replay, of_stack: Flags) -> Ints:
    """By instance of a phase: the last allocation of some stacks; NOTHING: none."""
    events, phases = replay.device.events, replay.phases
    rows = np.flatnonzero((events.action == ALLOC) & of_stack[events.stack])
    last = np.full(len(phases), NOTHING, np.int64)
    last[phases.of_event[rows]] = rows  # the last one written is the latest
    return last


def _engine_frees(replay: Replay, engine: Flags) -> Flags:
    """By event: whether the engine frees there, and no function of Python.

    Where stacks are recorded of allocations alone a free bears that of its allocation:
    then it is the engine's where the engine made the latest allocation, and will make
    another in this backward.
    """
    events, lives, phases = replay.device.events, replay.lives, replay.phases
    by_stack = engine[events.stack]
    rows = np.flatnonzero((lives.freed >= 0) & (lives.freed < replay.num_events))
    rows = rows[(lives.born[rows] != BEFORE) & ~engine[lives.stack[rows]]]
    rows = rows[np.argsort(lives.freed[rows])]
    if not len(rows):
        return by_stack
    freeing = lives.freed[rows]
    bears_others = _in_long_runs(events.stack[freeing] == lives.stack[rows])
    if not bears_others.any():
        return by_stack
    nearest = np.searchsorted(freeing, np.arange(replay.num_events), "right") - 1
    bears_others = bears_others[np.maximum(nearest, 0)]
    made = np.flatnonzero(events.action == ALLOC)
    latest = np.searchsorted(made, np.arange(replay.num_events), "right") - 1
    by_engine = engine[events.stack[made]][np.maximum(latest, 0)] & (latest >= 0)
    last = _last_allocations(replay, engine)[phases.of_event]
    by_engine &= np.arange(replay.num_events) < last
    return np.where(bears_others, by_engine, by_stack)


def _in_long_runs(flags: Flags) -> Flags:
    """Those of many in a row, or all: one line may make a tensor and free it."""
    if flags.all():
        return flags
    starts = np.flatnonzero(np.diff(flags, prepend=~flags[:1]))
    lengths = np.diff(starts, append=len(flags))
    return flags & (np.repeat(lengths, lengths) >= MANY_FREES)


def _mixed(replay: Replay, engine: Flags, for_engine: Flags) -> Flags:
    """By instance of a phase: whether it may be of several backwards.

    Where no module's forward lies between two of them, something else may have allocated.
    """
    events, phases = replay.device.events, replay.phases
    made = np.flatnonzero(events.action == ALLOC)
    of_event, by_engine = phases.of_event[made], engine[events.stack[made]]
    first = np.full(len(phases), replay.num_events, np.int64)
    np.minimum.at(first, of_event[by_engine], made[by_engine])
    last = _last_allocations(replay, engine)
    between = (made > first[of_event]) & (made < last[of_event])
    between &= ~for_engine[events.stack[made]]
    is_mixed = np.zeros(len(phases), np.bool_)
    is_mixed[of_event[between]] = True
    return is_mixed


class _Engine:
    """What autograd's engine made and let go of; columns by life."""

    def __init__(self, replay: Replay, born_in: Ints) -> None:
        self._replay, self._born_in = replay, born_in
        lives, stacks, phases = replay.lives, replay.stacks, replay.phases
        self._num_phases = len(phases)
        freed_at = np.minimum(lives.freed, replay.num_events)
        self._freed_in = np.append(phases.of_event, len(phases))[freed_at]
        engine = engine_stacks(stacks)
        is_known = lives.freed != BEFORE
        self._freed_by_engine: Flags = is_known & np.append(
            _engine_frees(replay, engine), np.False_
        ).take(freed_at)
        in_backward = phases.kind[born_in] == BACKWARD_PHASE
        in_backward &= lives.born != BEFORE
        self._in_backward: Flags = in_backward
        self._goes_there: Flags = self._freed_by_engine & (self._freed_in == born_in)
        """The engine let go of it in the backward that made it."""
        for_engine = engine | called_by_engine(stacks)
        self._is_mixed = _mixed(replay, engine, for_engine | stacks.has(BACKWARD))
        self._is_candidate: Flags = in_backward & for_engine[lives.stack]
        self._is_candidate &= ~replay.workspaces
        self._is_candidate &= ~stacks.has(MODULE | _NAMED | DATA)[lives.stack]
        self._unit = -(-lives.size // _ALIGNMENT)

    def recomputed(self) -> Flags:
        """Made in a module's forward inside a backward, and saved: the engine frees it."""
        again = self._replay.stacks.has(MODULE)[self._replay.lives.stack]
        again &= self._in_backward & self._goes_there
        return again & ~self._replay.workspaces

    def gradients_of_activations(self, is_cut: Flags) -> Flags:
        """Gradients that are no parameter's, as far as what was recorded proves it."""
        replay = self._replay
        if replay.stacks.calls(_FLAT_PARAMETER).any():
            return np.zeros(len(replay.lives), np.bool_)
        is_gradient = self._outlives_its_node() & (self._goes_there | is_cut)
        like = np.flatnonzero(
            is_gradient & np.isin(self._unit, self._parameter_units())
        )
        is_activations = np.isin(self._unit[like], self._activation_units())
        is_activations &= ~is_cut[like] & self._parameters_stay(like)
        is_activations &= ~self._is_summand()[like]
        is_gradient[like[~is_activations]] = False
        return is_gradient

    def _outlives_its_node(self) -> Flags:
        lives, num_events = self._replay.lives, self._replay.num_events
        saved = ~self._is_candidate & self._freed_by_engine
        saved &= ~self._replay.stacks.has(_NAMED)[lives.stack]
        outlives = np.zeros(len(lives), np.bool_)
        left = np.flatnonzero(self._is_candidate)
        releases = lives.freed[saved]
        for _ in range(MAX_ROUNDS):
            releases = np.sort(releases)
            next_release = np.searchsorted(releases, lives.born[left], "right")
            release = np.append(releases, num_events)[next_release]
            inside = np.append(self._replay.phases.of_event, NOTHING)[release]
            is_there = (release < lives.freed[left]) & (inside == self._born_in[left])
            proved, left = left[is_there], left[~is_there]
            outlives[proved] = True
            releases = lives.freed[proved[self._goes_there[proved]]]
            if not len(releases):
                break
        return outlives

    def _parameter_units(self) -> Ints:
        """Sizes of what is, or may be, a parameter, its gradient or a state of it."""
        replay, lives = self._replay, self._replay.lives
        marks = np.append(replay.stacks.marks, 0)[lives.stack]
        may_be = (marks & _MADE_MODEL != 0) & (marks & MODULE == 0)
        tensors = replay.snapshot.tensors
        if tensors is None:
            may_be |= self._stays()
            made = MODULE | BACKWARD | NO_PYTHON | OPTIMIZER
            outside = (marks & made == 0) | (lives.born == BEFORE)
            ends = self._freed_in == self._num_phases
            lasts = self._freed_in - self._born_in > MAX_PHASES_OF_BATCH
            may_be |= outside & (ends | lasts)
            return np.unique(self._unit[may_be])
        is_model = np.isin(tensors.category, _MODELS)
        recorded = -(-tensors.num_bytes[is_model] // _ALIGNMENT)
        return np.unique(np.concatenate((self._unit[may_be], recorded)))

    def _activation_units(self) -> Ints:
        """Sizes of what modules made."""
        in_module = self._replay.stacks.has(MODULE)[self._replay.lives.stack]
        return np.unique(self._unit[in_module])

    def _stays(self) -> Flags:
        """Made by the engine, which does not let go of it in the same backward."""
        return self._is_candidate & ~self._goes_there

    def _is_summand(self) -> Flags:
        """Goes beside another one of its size as soon as one that stays was made.

        Two gradients of a parameter that is used twice are added to a third in this way.
        """
        lives, events = self._replay.lives, self._replay.device.events
        made = np.flatnonzero(events.action == ALLOC)
        stays = np.zeros(self._replay.num_events, np.int64)
        staying = self._stays()
        stays[lives.born[staying]] = self._unit[staying]
        going = np.flatnonzero(self._is_candidate & self._goes_there)
        latest = made[np.searchsorted(made, lives.freed[going], "right") - 1]
        going, latest = (
            rows[stays[latest] == self._unit[going]] for rows in (going, latest)
        )
        _, place, counts = np.unique(latest, return_inverse=True, return_counts=True)
        is_summand = np.zeros(len(lives), np.bool_)
        is_summand[going[counts[place.reshape(-1)] > 1]] = True
        return is_summand

    def _parameters_stay(self, rows: Ints) -> Flags:
        """By row: whether gradients of its size stay in its backward, and none was there."""
        step = self._num_phases + 2
        stays = self._stays()
        born = np.sort(self._unit[stays] * step + self._born_in[stays])
        gone = np.sort(self._unit[stays] * step + self._freed_in[stays])
        first = self._unit[rows] * step
        here = first + self._born_in[rows]
        num_before = np.searchsorted(born, here) - np.searchsorted(born, first)
        num_gone = np.searchsorted(gone, here) - np.searchsorted(gone, first)
        num_new = np.searchsorted(born, here, "right") - np.searchsorted(born, here)
        stay: Flags = (num_new > 0) & (num_before == num_gone)
        return stay & ~self._is_mixed[self._born_in[rows]]
