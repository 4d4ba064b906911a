"""Captures of module memory in a simulated run: a few steps on a bounded set of ranks.

The highest total of a capture is the allocated peak that the rank's step table has for
that step: what a fault or an uneven shard adds belongs to no module.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from collector.format.records import Capture
from collector.simulate.curves import training_shape
from collector.simulate.faults import RANKS_PER_HOST
from collector.simulate.modules.modules import ROOT, ROUNDING_BYTES, ShardedStep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.simulate.curves import StepCurves
    from collector.simulate.faults import Fault
    from collector.simulate.ranks import RankBatch

MAX_TRACKED_RANKS: Final = 64
"""Spread over the run; the first rank of each fault comes on top."""


_PADDED_TOKENS: Final = 64


def is_tracked(rank: int, faults: Sequence[Fault], num_ranks: int) -> bool:
    """Whether a rank tracks its modules."""
    apart = -(-num_ranks // MAX_TRACKED_RANKS)
    return rank % apart == 0 or any(rank == fault.ranks[0] for fault in faults)


def tracked_steps(num_steps: int) -> tuple[int, ...]:
    """Steps that are tracked: the second, one in the middle and the last."""
    return tuple(sorted({min(1, num_steps - 1), num_steps // 2, num_steps - 1}))


def module_captures(
    batch: RankBatch,
    row: int,
    curves: Sequence[StepCurves],
    faults: Sequence[Fault],
    num_ranks: int,
) -> list[Capture]:
    """The captures of one rank, in order of time; none where it tracks nothing."""
    rank = batch.ranks[row]
    if not is_tracked(rank, faults, num_ranks):
        return []
    tokens = curves[rank % len(curves)].tokens
    steps = tracked_steps(batch.time_ns.shape[1])
    return [
        _capture(batch, row, step, int(tokens[step]), num_ranks)
        for step in steps
        if step < batch.num_steps[row]
    ]


def _capture(
    batch: RankBatch, row: int, step: int, tokens: int, num_ranks: int
) -> Capture:
    model = _model(num_ranks)
    log = model.run(tokens)
    peak = int(batch.columns["allocated_peak_bytes"][row, step])
    while log.peak_bytes() > peak and tokens > _PADDED_TOKENS:
        # The modules of a batch of whole units may hold a little more than the step did.
        tokens -= _PADDED_TOKENS
        log = model.run(tokens)
    besides = max(0, peak - log.peak_bytes()) // ROUNDING_BYTES * ROUNDING_BYTES
    ended = int(batch.time_ns[row, step])
    began = int(batch.time_ns[row, step - 1] if step else batch.started_ns[row])
    tables = log.tables(unattributed_bytes=besides, duration_us=(ended - began) // 1000)
    return Capture(
        kind="modules",
        time_ns=ended,
        step=step,
        phase="train",
        function="step",
        iteration=step + 1,
        meta={
            "backend": "fsdp2",
            "world": f"shard {min(num_ranks, 64)}",
            "root": ROOT,
            "devices": [f"cuda:{batch.ranks[row] % RANKS_PER_HOST}"],
            "device_type": "cuda",
            "estimate": "",
            "incomplete": False,
            "inputs": "forward",
            "optimizers": 1,
            "torch": "simulated",
            "rounding_bytes": ROUNDING_BYTES,
            "num_events_dropped": 0,
            "reasons": ["simulated: nothing was trained"],
        },
        tables={**model.modules(), **tables},
    )


@cache
def _model(num_ranks: int) -> ShardedStep:
    return ShardedStep(training_shape(num_ranks))
