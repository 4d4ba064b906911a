"""What is wrong with which rank of a simulated run.

In words for the page and in numbers for the curves, so that whatever claims to find a
fault can be checked against the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

RANKS_PER_HOST: Final = 8

GIB: Final = 1 << 30
MIB: Final = 1 << 20

IMBALANCE_BYTES: Final = 9 * GIB
LEAK_BYTES: Final = 10 * GIB
"""What the leaking rank has kept by the last step, about."""
STRAGGLER_FACTOR: Final = 1.4
WORKER_BYTES: Final = 26 * GIB
"""What each dataloader worker of the hungry host holds in the end."""

FaultKind = Literal["imbalance", "leak", "oom", "straggler", "dataloader"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One planted fault."""

    kind: FaultKind
    ranks: tuple[int, ...]
    first_step: int
    last_step: int
    """The step an out-of-memory error ends the rank at; else the run's last step."""
    bytes_per_step: int
    """What a leaking rank keeps of every step; 0 for other faults."""
    words: str


def plan_faults(num_ranks: int, num_steps: int) -> tuple[Fault, ...]:
    """The faults of a run, each on ranks of its own as far as the ranks suffice.

    One rank alone only leaks. The dataloader fault takes a whole host, so it joins
    others where there are few hosts.
    """
    last = num_steps - 1
    taken: set[int] = set()
    faults = [_leak(_place(0.3, num_ranks, taken), num_steps)]
    if num_ranks > 1:
        faults.append(_imbalance(_place_near(13, num_ranks, taken), last))
    if num_ranks > 2:
        faults.append(_oom(_place(0.65, num_ranks, taken), num_steps))
    if num_ranks > 3:
        faults.append(_straggler(_place(0.85, num_ranks, taken), num_steps))
    if num_ranks > 4:
        num_hosts = -(-num_ranks // RANKS_PER_HOST)
        faults.append(_dataloader(num_hosts // 2, num_ranks, last))
    return tuple(faults)


def host_name(rank: int) -> str:
    """Name of the simulated host of a rank."""
    return f"sim-{rank // RANKS_PER_HOST:04d}"


def _imbalance(rank: int, last: int) -> Fault:
    amount = IMBALANCE_BYTES / GIB
    return Fault(
        kind="imbalance",
        ranks=(rank,),
        first_step=0,
        last_step=last,
        bytes_per_step=0,
        words=f"rank {rank}: holds {amount:.1f} GiB more than the others from step 0",
    )


def _leak(rank: int, num_steps: int) -> Fault:
    first = num_steps // 10
    kept = max(1, num_steps - first)
    per_step = max(512, LEAK_BYTES // kept // 512 * 512)
    return Fault(
        kind="leak",
        ranks=(rank,),
        first_step=first,
        last_step=num_steps - 1,
        bytes_per_step=per_step,
        words=f"rank {rank}: keeps {per_step / MIB:.1f} MiB of every step from step"
        f" {first} on, {kept * per_step / GIB:.1f} GiB by the end (a leak)",
    )


def _oom(rank: int, num_steps: int) -> Fault:
    first, last = num_steps // 2, max(0, num_steps * 9 // 10 - 1)
    return Fault(
        kind="oom",
        ranks=(rank,),
        first_step=first,
        last_step=last,
        bytes_per_step=0,
        words=f"rank {rank}: grows from step {first} on until the device is full, runs"
        f" out of memory at step {last} and is killed there (no closing record)",
    )


def _straggler(rank: int, num_steps: int) -> Fault:
    first = num_steps // 5
    return Fault(
        kind="straggler",
        ranks=(rank,),
        first_step=first,
        last_step=num_steps - 1,
        bytes_per_step=0,
        words=f"rank {rank}: its steps take {STRAGGLER_FACTOR} times as long as the"
        f" others' from step {first} on (the model's ranks do not wait for each other)",
    )


def _dataloader(host: int, num_ranks: int, last: int) -> Fault:
    ranks = range(host * RANKS_PER_HOST, min(num_ranks, (host + 1) * RANKS_PER_HOST))
    return Fault(
        kind="dataloader",
        ranks=tuple(ranks),
        first_step=0,
        last_step=last,
        bytes_per_step=0,
        words=f"host {host_name(ranks[0])} (ranks {ranks[0]}-{ranks[-1]}): each"
        f" dataloader worker grows to {WORKER_BYTES // GIB} GiB",
    )


def _place(share: float, num_ranks: int, taken: set[int]) -> int:
    return _place_near(int(num_ranks * share), num_ranks, taken)


def _place_near(wanted: int, num_ranks: int, taken: set[int]) -> int:
    """`wanted`, or the next rank (around the end) that has no fault yet."""
    rank = wanted % num_ranks
    while rank in taken:
        rank = (rank + 1) % num_ranks
    taken.add(rank)
    return rank
