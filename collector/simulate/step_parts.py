"""What the steps of a simulated run go to: the parts that a recorder times by itself.

Each part is a share of the step, a little different on every rank and in every step. A
straggler loses its time in forward and backward, as a slow device does. At the start of
an epoch the dataloader's workers are waited for. Nothing is evaluated, so that nobody
knows what that would take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from collector.format.columns import STEP_PARTS
from collector.simulate.faults import STRAGGLER_FACTOR
from collector.simulate.ranks import (
    EPOCH_START_SECONDS,
    START_UP_SECONDS,
    STEPS_PER_EPOCH,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from collector.simulate.faults import Fault
    from collector.simulate.modules.transformer import TransformerShape
    from collector.simulate.ranks import RankBatch

    Floats = npt.NDArray[np.float64]

SHARES: Final = {
    "dataloader": 0.018,
    "forward": 0.27,
    "backward": 0.47,
    "communication": 0.11,
    "optimizer": 0.055,
    "zero_grad": 0.004,
}
"""Of a step; the rest is other work."""

DEVICE_PEAK_FLOPS: Final = 989e12
"""Of the simulated accelerator, dense bfloat16."""

_COMPUTES: Final = ("forward", "backward")
_JITTER: Final = 0.06
_SEED: Final = 1 << 41


def part_columns(
    batch: RankBatch, faults: Sequence[Fault], seed: int, shape: TransformerShape
) -> dict[str, Floats]:
    """The columns `<part>_seconds` and `flops`, of the shape (ranks, steps)."""
    random = np.random.default_rng([seed, _SEED, batch.ranks.start])
    seconds = np.diff(batch.time_ns, axis=1, prepend=batch.started_ns[:, None]) * 1e-9
    slow = _factors(batch, faults)
    extra = np.zeros_like(seconds)
    extra[:, ::STEPS_PER_EPOCH] = EPOCH_START_SECONDS
    start_up = np.zeros_like(seconds)
    start_up[:, 0] = START_UP_SECONDS
    usual = np.maximum(0, seconds / slow - extra - start_up)
    columns = {
        f"{part}_seconds": np.zeros_like(seconds)
        for part in STEP_PARTS
        if part != "eval"
    }
    columns["eval_seconds"] = np.full_like(seconds, np.nan)
    lost = seconds - seconds / slow
    computing = sum(SHARES[part] for part in _COMPUTES)
    for part, share in SHARES.items():
        jitter = 1 + _JITTER * random.uniform(-1, 1, seconds.shape)
        taken = usual * share * jitter
        if part in _COMPUTES:
            taken += lost * share / computing * 0.98
        if part == "dataloader":
            taken += extra
        columns[f"{part}_seconds"] = taken
    tokens = np.diff(batch.columns["tokens"], axis=1, prepend=0)
    columns["flops"] = tokens * flops_per_token(shape)
    return columns


def flops_per_token(shape: TransformerShape) -> float:
    """Forward and backward of the whole model: the usual six per parameter."""
    return 6.0 * shape.num_parameters


def _factors(batch: RankBatch, faults: Sequence[Fault]) -> Floats:
    slow = np.ones(batch.time_ns.shape)
    for fault in faults:
        if fault.kind == "straggler":
            for row, rank in enumerate(batch.ranks):
                if rank in fault.ranks:
                    slow[row, fault.first_step :] = STRAGGLER_FACTOR
    return slow
