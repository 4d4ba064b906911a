"""Per-step memory curves of a few modelled ranks: what all others are derived from.

The allocator model runs for the first `MODELLED_STEPS` steps, which covers its warm-up;
later steps repeat modelled steps of the warm part in random order, because the model
has reached its steady state by then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from collector.simulate.allocator.allocator import CachingAllocator
from collector.simulate.modules.transformer import TransformerTraining, shape_for
from collector.simulate.stats import row_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from collector.simulate.modules.transformer import TransformerShape

    Ints = npt.NDArray[np.int64]

MODELLED_STEPS: Final = 96
WARMUP_STEPS: Final = 32
"""Reserved memory still grows here; these steps are never repeated."""

DEVICE_TOTAL_BYTES: Final = 80 << 30
NON_TORCH_BYTES: Final = 1740 << 20
"""CUDA context and communication buffers, outside the allocator."""

_ACTIVATION_SHARE: Final = 0.52
"""Of the device, for the largest batch."""


@dataclass(frozen=True, slots=True)
class StepCurves:
    """One modelled rank: equal-length columns over the steps."""

    columns: Mapping[str, Ints]
    """By the names of `stats.row_names`."""
    tokens: Ints
    """Tokens of each step's batch."""
    samples: Ints
    """Sequences of each step's batch."""


def training_shape(num_ranks: int) -> TransformerShape:
    """The model a job of `num_ranks` trains: sharded over at most 64 of them."""
    budget = int(DEVICE_TOTAL_BYTES * _ACTIVATION_SHARE)
    return shape_for(min(num_ranks, 64), budget)


def model_curves(shape: TransformerShape, seed: int, num_steps: int) -> StepCurves:
    """Run the allocator model for one rank and read its statistics at each step."""
    random = np.random.default_rng(seed)
    modelled = min(num_steps, MODELLED_STEPS)
    # Sequences are padded to the longest of the batch, in units of 256 tokens.
    fill = 1 - 0.35 * random.beta(1.2, 3.0, modelled)
    tokens = (shape.max_tokens * fill).astype(np.int64) // 256 * 256
    rows = _run(shape, np.maximum(tokens, 256))
    order = np.arange(num_steps)
    if num_steps > modelled:
        rest = num_steps - modelled
        order[modelled:] = random.integers(WARMUP_STEPS, modelled, rest)
    columns = {name: rows[order, index] for index, name in enumerate(row_names())}
    for name, column in columns.items():
        if name.startswith("reserved"):
            # Cached segments stay: a repeated early step must not give them back.
            np.maximum.accumulate(column, out=column)
    return StepCurves(columns, tokens[order], np.full(num_steps, 4, np.int64))


def _run(shape: TransformerShape, tokens: Ints) -> Ints:
    allocator = CachingAllocator(DEVICE_TOTAL_BYTES - NON_TORCH_BYTES)
    training = TransformerTraining(shape, allocator)
    rows = []
    for batch in tokens:
        allocator.stats.reset_peaks()
        training.step(int(batch))
        rows.append(allocator.stats.row())
    return np.array(rows, np.int64)
