"""Ranks that train on machines whose scheduler interrupts them; the late one is known.

Each rank has a clock. It loads a batch and computes, meets the others in a collective, and
computes again; the collective ends for all at once when the last has come. How long a
part takes in truth comes from a model of the machine. Nothing of the analysis is used:
only its types, which a trace is read to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.ranks.collectives import RankCollectives
from memboard.tb_plugin.analysis.ranks.rank_steps import RankSteps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Floats

MachineKind = Literal["jitter", "slices", "pauses", "episodes"]
MACHINES: Final[tuple[MachineKind, ...]] = ("jitter", "slices", "pauses", "episodes")
KINDS: Final = ("all_reduce", "all_gather", "reduce_scatter")
LOADING_SHARE: Final = 0.1
TRANSFER_SHARE: Final = 0.02
"""Of a step; what is left is computed, the same before each collective."""
SLICE_MS: Final = 4.0


class BusyTraining(NamedTuple):
    """`load`: how much of the machine others take, 0 to 1."""

    num_ranks: int
    num_steps: int
    machine: MachineKind
    step_ms: float = 50.0
    load: float = 0.3
    late: int | None = None
    late_share: float = 0.2
    """Of a step, that the late rank computes longer."""
    late_before: int | None = None
    """The collective that it is late for; None: for each of them a part of it."""


def simulated(
    training: BusyTraining, seed: int
) -> tuple[RankSteps, dict[int, RankCollectives]]:
    """Its profiled steps, and the collectives of each rank."""
    dice = np.random.default_rng(seed)
    num_ranks, num_steps, num_kinds = training.num_ranks, training.num_steps, len(KINDS)
    loading = LOADING_SHARE * training.step_ms
    transfer = TRANSFER_SHARE * training.step_ms
    computing = training.step_ms - loading - num_kinds * transfer
    work = np.full((num_ranks, num_steps, num_kinds), computing / num_kinds)
    if training.late is not None:
        more = training.late_share * training.step_ms
        if training.late_before is None:
            work[training.late] += more / num_kinds
        else:
            work[training.late, :, training.late_before] += more
    loaded = _taken(dice, training, np.full((num_ranks, num_steps), loading))
    computed = _taken(dice, training, work)
    clock = np.zeros(num_ranks)
    begins, ends = np.zeros((2, num_ranks, num_steps))
    starts, durations = np.zeros((2, num_ranks, num_steps, num_kinds))
    for step in range(num_steps):
        begins[:, step] = clock
        clock = clock + loaded[:, step]
        for kind in range(num_kinds):
            clock = clock + computed[:, step, kind]
            starts[:, step, kind] = clock
            end = clock.max() + transfer
            durations[:, step, kind] = end - clock
            clock = np.full(num_ranks, end)
        ends[:, step] = clock
    steps = RankSteps(
        ranks=np.arange(num_ranks),
        row=np.repeat(np.arange(num_ranks), num_steps),
        step=np.tile(np.arange(num_steps), num_ranks),
        start_ns=_ns(begins),
        duration_ns=_ns(ends) - _ns(begins),
        computation_ns=_ns(computed.sum(axis=2)),
        communication_ns=_ns(durations.sum(axis=2)),
        overlap_ns=np.zeros(num_ranks * num_steps, np.int64),
        loading_ns=_ns(loaded),
    )
    num_calls = num_steps * num_kinds
    collectives = {
        rank: RankCollectives(
            row=np.zeros(num_calls, np.int64),
            kind=KINDS * num_steps,
            group=("world",) * num_calls,
            start_ns=_ns(starts[rank]),
            duration_ns=_ns(durations[rank]),
            num_bytes=np.full(num_calls, 2**20),
            group_size=np.full(num_calls, num_ranks),
            sequence=np.arange(num_calls),
        )
        for rank in range(num_ranks)
    }
    return steps, collectives


def _taken(
    dice: np.random.Generator, training: BusyTraining, work_ms: Floats
) -> Floats:
    """How long work of so many milliseconds takes on the machine."""
    jittered = work_ms * dice.lognormal(0.0, 0.02, work_ms.shape)
    load = training.load
    if training.machine == "slices":
        # Another process takes whole time slices of the core.
        num_slices = dice.poisson(load * work_ms / SLICE_MS)
        return jittered + SLICE_MS * num_slices * dice.uniform(0.9, 1.0, work_ms.shape)
    if training.machine == "pauses":
        # Rare and of any length: the mean of their squares does not exist.
        is_hit = dice.uniform(size=work_ms.shape) < load
        length = 0.05 * training.step_ms * (1 + dice.pareto(1.3, work_ms.shape))
        return jittered + np.where(is_hit, np.minimum(length, 20 * training.step_ms), 0)
    if training.machine == "episodes":
        # Something else runs for a while, and halves the speed.
        flat = jittered.reshape(len(jittered), -1)
        is_busy = dice.uniform(size=len(flat)) < load
        slowed = np.empty_like(flat)
        for number in range(flat.shape[1]):
            changes = dice.uniform(size=len(flat)) < 0.5
            is_busy = np.where(changes, dice.uniform(size=len(flat)) < load, is_busy)
            slowed[:, number] = flat[:, number] * np.where(is_busy, 2.0, 1.0)
        return slowed.reshape(jittered.shape)
    return jittered


def _ns(milliseconds: Floats | Sequence[float]) -> np.ndarray:
    return np.rint(np.ravel(milliseconds) * 1e6).astype(np.int64)
