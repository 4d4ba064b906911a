"""Trainings of many ranks played in plain Python, with the late rank known.

A clock for each rank: it loads, computes, and meets the others of its group in collectives,
which end for all at once when the last has come. Nothing of the analysis is used.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.kineto_files import KinetoFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
LOADING_US = 500.0
COMPUTING_US = 3_000.0
TRANSFER_US = 300.0
KINDS = ("AllReduce", "AllGather", "ReduceScatter")


@dataclass
class Training:
    """`load`, `compute` and `pause` are microseconds more, by rank.

    A pause comes before the second collective of a step, outside all kernels.
    """

    num_ranks: int
    num_steps: int = 6
    noise: float = 0.02
    seed: int = 0
    load: Mapping[int, float] = field(default_factory=dict)
    compute: Mapping[int, float] = field(default_factory=dict)
    pause: Mapping[int, float] = field(default_factory=dict)
    late_for_small: Mapping[int, float] = field(default_factory=dict)
    """Before each of many small collectives at the end of a step."""
    num_small: int = 0
    groups: Sequence[Sequence[Sequence[int]]] | None = None
    """By collective of a step: its groups of ranks; None: all together."""

    def write(self, folder: Path, cycle: int = 1) -> None:
        """A trace for each rank."""
        dice = random.Random(self.seed)
        files = [KinetoFile(rank, self.num_ranks) for rank in range(self.num_ranks)]
        clock = [10_000.0] * self.num_ranks
        everybody = [list(range(self.num_ranks))]
        for number, file in enumerate(files):
            assert number == file.head["distributedInfo"]["rank"]
            file.device()

        def takes(usual: float) -> float:
            return usual * (1 + self.noise * dice.uniform(-1, 1))

        def meet(name: str, groups: Sequence[Sequence[int]], transfer: float) -> None:
            for group in groups:
                end = max(clock[rank] for rank in group) + takes(transfer)
                for rank in group:
                    files[rank].kernel(
                        f"ncclDevKernel_{name}_RING_LL",
                        clock[rank] - 5,
                        clock[rank],
                        end - clock[rank],
                        **{
                            "Collective name": name.lower(),
                            "Group size": len(group),
                            "Process Group Name": "-".join(map(str, group)),
                        },
                    )
                    clock[rank] = end + 1

        for step in range(self.num_steps):
            begins = list(clock)
            for rank, file in enumerate(files):
                took = takes(LOADING_US) + self.load.get(rank, 0)
                file.slice(LOADER, clock[rank], took, "user_annotation")
                clock[rank] += took + 10
            for at, name in enumerate(KINDS):
                for rank, file in enumerate(files):
                    took = takes(COMPUTING_US) + self.compute.get(rank, 0) / len(KINDS)
                    file.kernel("volta_sgemm", clock[rank] - 8, clock[rank], took)
                    clock[rank] += took + 1
                    clock[rank] += self.pause.get(rank, 0) if at == 1 else 0
                meet(name, self.groups[at] if self.groups else everybody, TRANSFER_US)
            for _ in range(self.num_small):
                for rank in range(self.num_ranks):
                    clock[rank] += 10 + self.late_for_small.get(rank, 0)
                meet("Broadcast", everybody, 10)
            for rank, file in enumerate(files):
                file.step(step + 5, begins[rank], clock[rank] - begins[rank])
                clock[rank] += 20
        for rank, file in enumerate(files):
            file.write(folder / f"host_{rank}.{cycle}.pt.trace.json")
