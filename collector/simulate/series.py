"""The step table of each rank of a simulated run: times, progress and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from memboard.collector.format.columns import STEP_PARTS
from memboard.collector.simulate.device import MIB
from memboard.collector.simulate.faults import STRAGGLER_FACTOR, Fault, plan_faults
from memboard.collector.simulate.memory import (
    Keeps,
    Profile,
    batch_lengths,
    memory_columns,
    profile_of,
)
from memboard.collector.simulate.program import PHASES, Training

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

Metrics: TypeAlias = Literal["all", "8"]
"""All tables and columns of a real run; or eight columns of the step table alone."""

STARTED_NS: Final = 1_767_603_600 * 10**9
"""2026-01-05 09:00 UTC: simulated runs are the same on every day."""

STEPS_PER_EPOCH: Final = 100
SEQUENCES: Final = 4
DEVICE_PEAK_FLOPS: Final = 989e12
"""Of the simulated accelerator, dense bfloat16."""

_EPOCH_START_SECONDS: Final = 1.8
"""Extra time of an epoch's first step: dataloader workers start anew."""
_START_UP_SECONDS: Final = 7.5
"""Extra time of the very first one."""

_SHARES: Final = {
    "dataloader": 0.018,
    "forward": 0.27,
    "backward": 0.47,
    "communication": 0.11,
    "optimizer": 0.055,
    "zero_grad": 0.004,
}
"""Of a step: parts whose time a recorder measures by itself; the rest is other work."""
_COMPUTES: Final = ("forward", "backward")
_JITTER: Final = 0.06
_OWN_PIECES: Final = 32
_PAGE: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRun:
    """What to simulate. Equal settings give equal bytes."""

    num_ranks: int
    num_steps: int = 200
    metrics: Metrics = "all"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be simulated.

        Raises:
            ValueError: says which number is out of range.
        """
        for message, value, low, high in (
            ("{} simulated ranks", self.num_ranks, 1, 100_000),
            ("{} simulated steps", self.num_steps, 1, 10_000_000),
            ("seed {}", self.seed, 0, 2**32 - 1),
        ):
            if not low <= value <= high:
                raise ValueError(
                    f"{message.format(value)}: give a number from {low} to {high}"
                )


@dataclass(frozen=True, slots=True)
class Scenario:
    """What all ranks of a run have in common."""

    run: SimulatedRun
    num_parameters: int
    profile: Profile
    faults: tuple[Fault, ...]

    def fault_of(self, rank: int, kind: str) -> Fault | None:
        """The fault of a kind that a rank has."""
        faults = (f for f in self.faults if f.kind == kind and rank in f.ranks)
        return next(faults, None)

    def is_chosen(self, rank: int, most: int) -> bool:
        """Whether a rank is among so many of the run, or has a fault of its own."""
        apart = -(-self.run.num_ranks // most)
        return rank % apart == 0 or any((rank,) == fault.ranks for fault in self.faults)

    @property
    def flops_per_token(self) -> float:
        """Forward and backward of the whole model: the usual six per parameter."""
        return 6.0 * self.num_parameters


@dataclass(frozen=True, slots=True)
class RankSeries:
    """One rank's steps. Arrays go to the end of the run, whenever the rank ended."""

    rank: int
    num_rows: int
    """Steps it finished: fewer where it ran out of memory."""
    started_ns: int
    time_ns: Ints
    columns: dict[str, Ints | Floats]
    lengths: Ints
    """Rows of the profile: how long the batches were."""
    keeps: list[Keeps]
    random: np.random.Generator
    """For what else is drawn of the rank."""

    def began_ns(self, step: int) -> int:
        return int(self.time_ns[step - 1]) if step else self.started_ns

    def parts(self, step: int) -> dict[str, tuple[int, int]]:
        """Start and length of a step's parts in ns, one after the other.

        Collectives are no part of their own: half of them lie within forward, half within
        backward.
        """
        seconds = {
            part: int(self.columns[f"{part}_seconds"][step] * 1e9)
            for part in (*PHASES, "communication")
        }
        part_began, parts = self.began_ns(step), {}
        for part in PHASES:
            length = seconds[part]
            if part in _COMPUTES:
                length += seconds["communication"] // 2
            parts[part] = (part_began, length)
            part_began += length
        return parts


def scenario_of(run: SimulatedRun) -> Scenario:
    """Run the program for each length of a batch, and plan the faults."""
    training = Training(run.num_ranks)
    profile = profile_of(training)

    def drawn(rank: int) -> tuple[Ints, list[Keeps]]:
        _, lengths, keeps = _draws(run, rank)
        return lengths, keeps

    faults = plan_faults(run.num_ranks, run.num_steps, training, profile, drawn)
    return Scenario(run, training.num_parameters, profile, faults)


def rank_series(scenario: Scenario, rank: int) -> RankSeries:
    """One rank; depends on nothing but the arguments."""
    run, profile = scenario.run, scenario.profile
    random, lengths, keeps = _draws(run, rank)
    num_rows = run.num_steps
    for fault in scenario.faults:
        if rank in fault.ranks and fault.keeps is not None:
            keeps.append(fault.keeps)
    oom = scenario.fault_of(rank, "oom")
    if oom is not None:
        num_rows = oom.last_step
    steps = np.arange(run.num_steps)
    slow = np.ones(run.num_steps)
    straggler = scenario.fault_of(rank, "straggler")
    if straggler is not None:
        slow[straggler.first_step :] = STRAGGLER_FACTOR
    # Ranks exchange gradients, so a step takes about as long for one as for all.
    seconds = _common_seconds(run) * (1 + 0.004 * random.standard_normal(run.num_steps))
    seconds *= slow
    started_ns = STARTED_NS + int(random.integers(0, 40_000_000))
    time_ns = started_ns + (np.cumsum(seconds) * 1e9).astype(np.int64)
    tokens = profile.tokens[lengths]
    recorded = seconds.copy()
    recorded[0] = np.nan  # the first step has no step before it to be timed from
    columns: dict[str, Ints | Floats] = {
        "step_time_seconds": recorded,
        "epoch": steps // STEPS_PER_EPOCH,
        "samples": (steps + 1) * SEQUENCES,
        "tokens": np.cumsum(tokens),
        "flops": (tokens * scenario.flops_per_token).astype(np.float64),
        "rss_bytes": _rss(random, steps),
        **_parts(random, seconds, slow),
        **memory_columns(profile, lengths, keeps),
    }
    if oom is not None:
        for column in oom.rows[0] if oom.rows else ():
            columns[column] = columns[column].copy()  # several are one array
            columns[column][oom.first_retry : num_rows] = [
                row[column] for row in oom.rows
            ]
    return RankSeries(
        rank, num_rows, started_ns, time_ns, columns, lengths, keeps, random
    )


def _draws(
    run: SimulatedRun, rank: int
) -> tuple[np.random.Generator, Ints, list[Keeps]]:
    """What is drawn first of each rank: the lengths of its batches, and what it holds."""
    random = np.random.default_rng([run.seed, rank])
    lengths = batch_lengths(random, run.num_steps)
    own = int(random.integers(1, _OWN_PIECES + 1)) * 2 * MIB
    return random, lengths, [Keeps("rotary cache", own)]


def _common_seconds(run: SimulatedRun) -> Floats:
    together = np.random.default_rng([run.seed, 1 << 40])
    seconds: Floats = 1.13 - 0.3 * together.beta(1.2, 6.0, run.num_steps)
    seconds *= together.lognormal(0.0, 0.015, run.num_steps)
    seconds[::STEPS_PER_EPOCH] += _EPOCH_START_SECONDS
    seconds[0] += _START_UP_SECONDS
    return seconds


def _parts(
    random: np.random.Generator, seconds: Floats, slow: Floats
) -> dict[str, Floats]:
    """The columns `<part>_seconds`.

    A straggler loses its time in forward and backward, as a slow device does. At the start
    of an epoch the dataloader's workers are waited for. Nothing is evaluated.
    """
    extra = np.zeros_like(seconds)
    extra[::STEPS_PER_EPOCH] = _EPOCH_START_SECONDS
    start_up = np.zeros_like(seconds)
    start_up[0] = _START_UP_SECONDS
    usual = np.maximum(0, seconds / slow - extra - start_up)
    lost = seconds - seconds / slow
    computing = sum(_SHARES[part] for part in _COMPUTES)
    columns = {f"{part}_seconds": np.zeros_like(seconds) for part in STEP_PARTS}
    columns["eval_seconds"] = np.full_like(seconds, np.nan)
    for part, share in _SHARES.items():
        taken = usual * share * (1 + _JITTER * random.uniform(-1, 1, len(seconds)))
        if part in _COMPUTES:
            taken += lost * share / computing * 0.98
        columns[f"{part}_seconds"] = taken + (extra if part == "dataloader" else 0)
    return columns


def _rss(random: np.random.Generator, steps: Ints) -> Ints:
    """It fills while training starts, then creeps by pages."""
    own = random.integers(0, 300 * MIB // _PAGE)
    filled = (2900 * (1 - np.exp(-(steps + 1) / 3))).astype(np.int64) * MIB // _PAGE
    creep = np.cumsum(random.integers(0, 12, len(steps)))
    pages: Ints = 1400 * MIB // _PAGE + own + filled + creep
    return pages * _PAGE
