"""Faults of a simulated run: which rank has which, in words and in numbers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from memboard.collector.simulate.device import GIB, MIB, OutOfMemory
from memboard.collector.simulate.memory import (
    LIMIT_BYTES,
    Keeps,
    allocate_kept,
    device_at,
    reserved,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from memboard.collector.simulate.memory import Ints, Profile
    from memboard.collector.simulate.program import Training

RANKS_PER_HOST: Final = 8
IMBALANCE_BYTES: Final = 9 * GIB
LEAK_BYTES: Final = 10 * GIB
"""Approximate bytes that the leaking rank retains by the last step."""
STRAGGLER_FACTOR: Final = 1.4
WORKER_BYTES: Final = 26 * GIB
"""Final size of each dataloader worker of the hungry host."""

_MAX_PIECES: Final = 1000
"""Most pieces of a leak: of many steps only every second one leaks, say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    kind: Literal["imbalance", "leak", "oom", "straggler", "dataloader"]
    ranks: tuple[int, ...]
    first_step: int = 0
    last_step: int
    """The step that runs out of memory; else the run's last."""
    keeps: Keeps | None = None
    rows: tuple[Mapping[str, int], ...] = ()
    """Of the device after each step that gave pages back to go on: the last ones."""
    words: str

    @property
    def first_retry(self) -> int:
        """The first step that gives pages back."""
        return self.last_step - len(self.rows)


def plan_faults(
    num_ranks: int,
    num_steps: int,
    training: Training,
    profile: Profile,
    draws: Callable[[int], tuple[Ints, list[Keeps]]],
) -> tuple[Fault, ...]:
    """The faults of a run, each on ranks of its own as far as the ranks suffice.

    `draws`: the lengths of a rank's batches, and what it holds without a fault. One rank
    alone only leaks. The dataloader fault takes a whole host, so it joins others where
    there are few hosts.
    """
    last = num_steps - 1
    taken: set[int] = set()

    def place(share: float) -> int:
        """That rank, or the next one (around the end) that has no fault yet."""
        rank = int(num_ranks * share) % num_ranks
        while rank in taken:
            rank = (rank + 1) % num_ranks
        taken.add(rank)
        return rank

    faults = [_leak(place(0.3), num_steps)]
    if num_ranks > 1:
        rank = place(13 / num_ranks)
        sentence = (
            f"holds {IMBALANCE_BYTES / GIB:.1f} GiB more than the others from step 0"
        )
        faults.append(
            Fault(
                kind="imbalance",
                ranks=(rank,),
                last_step=last,
                keeps=Keeps("feature cache", IMBALANCE_BYTES, 24),
                words=f"rank {rank}: {sentence}",
            )
        )
    if num_ranks > 2:
        rank = place(0.65)
        faults.append(_oom(rank, num_steps, training, profile, *draws(rank)))
    if num_ranks > 3:
        rank, first = place(0.85), num_steps // 5
        faults.append(
            Fault(
                kind="straggler",
                ranks=(rank,),
                first_step=first,
                last_step=last,
                words=f"rank {rank}: its steps take {STRAGGLER_FACTOR} times as long as"
                f" the others' from step {first} on (the model's ranks do not wait for"
                " each other)",
            )
        )
    if num_ranks > 4:
        host = -(-num_ranks // RANKS_PER_HOST) // 2
        end = min(num_ranks, (host + 1) * RANKS_PER_HOST)
        ranks = tuple(range(host * RANKS_PER_HOST, end))
        faults.append(
            Fault(
                kind="dataloader",
                ranks=ranks,
                last_step=last,
                words=f"host {host_name(ranks[0])} (ranks {ranks[0]}-{ranks[-1]}): each"
                f" dataloader worker grows to {WORKER_BYTES // GIB} GiB",
            )
        )
    return tuple(faults)


def host_name(rank: int) -> str:
    """Name of the simulated host of a rank."""
    return f"sim-{rank // RANKS_PER_HOST:04d}"


def _leak(rank: int, num_steps: int) -> Fault:
    first = num_steps // 10
    keeps = _kept_until(num_steps - 1, first, LEAK_BYTES)
    total = int(keeps.held(np.array([num_steps - 1]))[0])
    return Fault(
        kind="leak",
        ranks=(rank,),
        first_step=first,
        last_step=num_steps - 1,
        keeps=keeps,
        words=f"rank {rank}: {_words(keeps)}, {total / GIB:.1f} GiB by the end (a leak)",
    )


def _oom(
    rank: int,
    num_steps: int,
    training: Training,
    profile: Profile,
    lengths: Ints,
    keeps: list[Keeps],
) -> Fault:
    first, latest = num_steps // 10, max(0, num_steps * 9 // 10 - 1)
    first = min(first, latest)
    # Not even the shortest batch fits then; a longer one does not somewhat earlier.
    least = int(profile.peaks["allocated_peak_bytes"].min()) + keeps[0].num_bytes
    grows = _kept_until(latest, first, LIMIT_BYTES - least + 64 * MIB)
    keeps = [*keeps, grows]
    small, large = reserved(profile, lengths, keeps)
    crash = int(np.argmax(small + large > LIMIT_BYTES))
    device = device_at(training, profile, lengths, keeps, crash)
    rows = []
    with suppress(OutOfMemory):
        for step in range(crash, num_steps):
            device.reset_peaks()
            allocate_kept(device, keeps, step)
            training.step(device, int(profile.tokens[lengths[step]]))
            rows.append(device.row())
    crash += len(rows)
    return Fault(
        kind="oom",
        ranks=(rank,),
        first_step=first,
        last_step=crash,
        keeps=grows,
        rows=tuple(rows),
        words=f"rank {rank}: {_words(grows)} until the device is full, runs out of memory"
        f" at step {crash} and is killed there (no closing record)",
    )


def _kept_until(last: int, first: int, num_bytes: int) -> Keeps:
    """Steps from `first` on keep something, together so much by `last`."""
    num_steps = last - first + 1
    every = -(-num_steps // _MAX_PIECES)
    pieces = (num_steps - 1) // every + 1
    piece = -(-num_bytes // pieces // 512) * 512
    return Keeps("kept outputs", piece, first_step=first, every=every)


def _words(keeps: Keeps) -> str:
    steps = "every step" if keeps.every == 1 else f"every {keeps.every} steps"
    return (
        f"keeps {keeps.num_bytes / MIB:.1f} MiB of {steps} from step"
        f" {keeps.first_step} on"
    )
