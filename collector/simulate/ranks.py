"""The step rows of many ranks at once, derived from the curves of a few.

Each rank takes the curves of one modelled rank. To the large pool (and to the total)
are added a constant of its own (uneven shards), a little more or less activation at
each step, and what its faults hold. Reserved grows with the highest of these so far, in
whole segments, because a caching allocator keeps what it once got; at the device's
limit it stops and the allocator retries instead. So every rank keeps torch's relations:
allocated <= active, and active + inactive_split <= reserved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from collector.simulate.allocator.settings import MIN_BLOCK_BYTES, SEGMENT_GRAIN_BYTES
from collector.simulate.curves import DEVICE_TOTAL_BYTES, NON_TORCH_BYTES
from collector.simulate.faults import IMBALANCE_BYTES, STRAGGLER_FACTOR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from collector.simulate.curves import StepCurves
    from collector.simulate.faults import Fault

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]
    Columns = Mapping[str, Ints | Floats]

RESERVED_LIMIT_BYTES: Final = DEVICE_TOTAL_BYTES - NON_TORCH_BYTES
STARTED_NS: Final = 1_767_603_600 * 10**9
"""2026-01-05 09:00 UTC: simulated runs are the same on every day."""

STEPS_PER_EPOCH: Final = 100
EPOCH_START_SECONDS: Final = 1.8
"""What the first step of an epoch takes besides: dataloader workers start anew."""

START_UP_SECONDS: Final = 7.5
"""What the very first one takes besides."""

_MIB: Final = 1 << 20
_PAGE: Final = 4096
_OWN_BYTES: Final = 192 * _MIB
"""Ranks differ by at most this in what they hold all the time ..."""
_JITTER_STEPS: Final = 20
_JITTER_GRAIN_BYTES: Final = 16 * _MIB
"""... and by so many grains in the peak of a step: batches are padded to whole units."""


@dataclass(frozen=True, slots=True)
class RankBatch:
    """Consecutive ranks; arrays have the shape (ranks, steps)."""

    ranks: range
    num_steps: Ints
    """Steps each rank recorded: fewer where it ran out of memory."""
    started_ns: Ints
    """When each rank's training began, one value per rank."""
    time_ns: Ints
    """When each step ended."""
    columns: Columns


def derive_batch(
    ranks: range, curves: Sequence[StepCurves], faults: Sequence[Fault], seed: int
) -> RankBatch:
    """Step rows of `ranks`; depends on nothing but the arguments."""
    random = np.random.default_rng([seed, ranks.start])
    which = np.array([rank % len(curves) for rank in ranks])
    shape = (len(ranks), len(curves[0].tokens))
    num_steps = np.full(shape[0], shape[1], np.int64)
    for fault in faults:
        if fault.kind == "oom":
            for row in _rows(fault, ranks):
                num_steps[row] = fault.last_step + 1
    seconds = _step_seconds(random, curves, ranks, shape, faults, seed)
    columns: dict[str, Ints | Floats] = {"step_time_seconds": _recorded(seconds)}
    columns.update(_progress(curves, which))
    columns["rss_bytes"] = _rss(random, shape)
    columns.update(_device(random, curves, which, ranks, faults))
    started_ns = STARTED_NS + random.integers(0, 40_000_000, shape[0])
    elapsed = (np.cumsum(seconds, axis=1) * 1e9).astype(np.int64)
    time_ns = started_ns[:, None] + elapsed
    return RankBatch(ranks, num_steps, started_ns, time_ns, columns)


def _device(
    random: np.random.Generator,
    curves: Sequence[StepCurves],
    which: npt.NDArray[np.intp],
    ranks: range,
    faults: Sequence[Fault],
) -> dict[str, Ints]:
    columns = {
        name: np.stack([one.columns[name] for one in curves])[which]
        for name in curves[0].columns
    }
    shape = columns["allocated_bytes"].shape
    grain = MIN_BLOCK_BYTES
    own = random.integers(0, _OWN_BYTES // grain, (shape[0], 1)) * grain
    held = own + _held_by_faults(ranks, faults, shape[1])
    jitter = random.integers(0, _JITTER_STEPS, shape) * _JITTER_GRAIN_BYTES
    _fill_until_oom(columns, held, jitter, ranks, faults)
    at_peak = held + jitter
    # Segments are whole; what a peak needed once stays reserved.
    cached = -(-np.maximum.accumulate(at_peak, axis=1) // SEGMENT_GRAIN_BYTES)
    cached *= SEGMENT_GRAIN_BYTES
    for infix in ("", "_large_pool"):
        for stat in ("allocated", "active", "requested"):
            columns[f"{stat}{infix}_bytes"] += held
            columns[f"{stat}{infix}_peak_bytes"] += at_peak
        columns[f"reserved{infix}_bytes"] += cached
        columns[f"reserved{infix}_peak_bytes"] += cached
    _stop_at_limit(columns)
    _count_retries(columns, cached, ranks, faults)
    return columns


def _held_by_faults(ranks: range, faults: Sequence[Fault], num_steps: int) -> Ints:
    held = np.zeros((len(ranks), num_steps), np.int64)
    steps = np.arange(num_steps)
    for fault in faults:
        for row in _rows(fault, ranks):
            if fault.kind == "imbalance":
                held[row] += IMBALANCE_BYTES
            elif fault.kind == "leak":
                kept = np.maximum(0, steps - fault.first_step + 1)
                held[row] += kept * fault.bytes_per_step
    return held


def _fill_until_oom(
    columns: Mapping[str, Ints],
    held: Ints,
    jitter: Ints,
    ranks: range,
    faults: Sequence[Fault],
) -> None:
    """What the out-of-memory rank holds grows until its peak reaches the limit."""
    for fault in faults:
        if fault.kind != "oom":
            continue
        for row in _rows(fault, ranks):
            peak = (
                columns["active_large_pool_peak_bytes"][row] + held[row] + jitter[row]
            )
            room = RESERVED_LIMIT_BYTES - peak
            room -= columns["reserved_small_pool_peak_bytes"][row]
            span = max(1, fault.last_step - fault.first_step)
            share = (np.arange(len(peak)) - fault.first_step) / span
            grown = np.clip(share, 0, 1) * room[fault.last_step]
            grain = MIN_BLOCK_BYTES
            held[row] += np.minimum(grown, room).astype(np.int64) // grain * grain


def _stop_at_limit(columns: dict[str, Ints]) -> None:
    over = np.maximum(0, columns["reserved_bytes"] - RESERVED_LIMIT_BYTES)
    if not over.any():
        return
    for infix in ("", "_large_pool"):
        for suffix in ("bytes", "peak_bytes"):
            reserved = columns[f"reserved{infix}_{suffix}"]
            reserved -= over
            # Cached pieces went back with the segments they were in.
            active = columns[f"active{infix}_bytes"]
            pieces = columns[f"inactive_split{infix}_{suffix}"]
            room = np.maximum(0, reserved - active)
            columns[f"inactive_split{infix}_{suffix}"] = np.minimum(pieces, room)


def _count_retries(
    columns: dict[str, Ints], cached: Ints, ranks: range, faults: Sequence[Fault]
) -> None:
    shape = cached.shape
    # Only a full device that is asked for more than it ever gave has to retry.
    full = columns["reserved_bytes"] >= RESERVED_LIMIT_BYTES - 2 * SEGMENT_GRAIN_BYTES
    grew = np.diff(cached, axis=1, prepend=0) > 0
    retries = np.cumsum(full & grew, axis=1).astype(np.int64)
    ooms = np.zeros(shape, np.int64)
    for fault in faults:
        if fault.kind == "oom":
            for row in _rows(fault, ranks):
                # The last three batches are tried, caught and skipped.
                tail = slice(max(0, fault.last_step - 2), fault.last_step + 1)
                ooms[row, tail] = np.arange(1, tail.stop - tail.start + 1)
                retries[row, tail] += 4 * ooms[row, tail]
                for infix in ("", "_large_pool"):
                    gap = RESERVED_LIMIT_BYTES - columns["reserved_bytes"][row, tail]
                    columns[f"reserved{infix}_bytes"][row, tail] += gap
                    columns[f"reserved{infix}_peak_bytes"][row, tail] += gap
    columns["num_alloc_retries"] = retries
    columns["num_ooms"] = ooms


def _step_seconds(
    random: np.random.Generator,
    curves: Sequence[StepCurves],
    ranks: range,
    shape: tuple[int, int],
    faults: Sequence[Fault],
    seed: int,
) -> Floats:
    # Ranks exchange gradients, so a step takes as long for one as for all: this part
    # is drawn from the seed alone, the same for every batch of ranks.
    together = np.random.default_rng([seed, 1 << 40])
    tokens = np.max([one.tokens for one in curves], axis=0)
    common = 0.28 + 0.85 * tokens / tokens.max()
    common *= together.lognormal(0.0, 0.015, shape[1])
    common[::STEPS_PER_EPOCH] += EPOCH_START_SECONDS
    common[0] += START_UP_SECONDS
    seconds: Floats = common * (1 + 0.004 * random.standard_normal(shape))
    for fault in faults:
        if fault.kind == "straggler":
            for row in _rows(fault, ranks):
                seconds[row, fault.first_step :] *= STRAGGLER_FACTOR
    return seconds


def _recorded(seconds: Floats) -> Floats:
    """As a recorder has it: the first step has no step before it to be timed from."""
    recorded: Floats = seconds.copy()
    recorded[:, 0] = np.nan
    return recorded


def _progress(
    curves: Sequence[StepCurves], which: npt.NDArray[np.intp]
) -> dict[str, Ints]:
    tokens = np.stack([np.cumsum(one.tokens) for one in curves])[which]
    samples = np.stack([np.cumsum(one.samples) for one in curves])[which]
    epoch = np.broadcast_to(np.arange(tokens.shape[1]) // STEPS_PER_EPOCH, tokens.shape)
    return {"epoch": epoch, "samples": samples, "tokens": tokens}


def _rss(random: np.random.Generator, shape: tuple[int, int]) -> Ints:
    own = random.integers(0, 300 * _MIB // _PAGE, (shape[0], 1))
    # It fills while training starts, then creeps by pages.
    steps = np.arange(shape[1])
    filled = (2900 * (1 - np.exp(-(steps + 1) / 3))).astype(np.int64) * _MIB // _PAGE
    creep = np.cumsum(random.integers(0, 12, shape), axis=1)
    return (1400 * _MIB // _PAGE + own + filled + creep) * _PAGE


def _rows(fault: Fault, ranks: range) -> list[int]:
    """Rows of a batch that a fault is about."""
    return [rank - ranks.start for rank in fault.ranks if rank in ranks]
