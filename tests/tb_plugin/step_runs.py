"""Runs whose steps have parts, told step by step in plain Python.

Nothing of the analysis is used: a training is played, rank after rank and step after
step, so that what was planted is known to the millisecond.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memboard.collector.format.columns import Column
from tests.builders import START_NS, RunBuilder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MS = 1e-3
PARTS = (
    "dataloader",
    "forward",
    "backward",
    "optimizer",
    "zero_grad",
    "checkpoint",
    "eval",
    "communication",
)
USUAL = {
    "dataloader": 4.0,
    "forward": 30.0,
    "backward": 60.0,
    "optimizer": 8.0,
    "zero_grad": 1.0,
    "checkpoint": 0.0,
    "eval": 0.0,
    "communication": 5.0,
}
"""Milliseconds; 2 more are of no part."""
REST = 2.0
CONFIG = {"spans": {"enabled": True, "automatic": True}}

EXTRA = (
    *(
        Column(name=f"{p}_seconds", unit="seconds", group="timing", dtype="f4", headline=True)
        for p in PARTS
    ),
    Column(name="samples", unit="count", group="progress", kind="counter"),
    Column(name="tokens", unit="count", group="progress", kind="counter"),
    Column(name="flops", unit="count", group="timing", dtype="f8"),
)  # fmt: skip


@dataclass
class Told:
    """What every rank did: [rank][step] of milliseconds."""

    parts: dict[str, list[list[float | None]]]
    total: list[list[float]]


@dataclass
class Story:
    """A training to be told. `more(rank, step)` adds milliseconds to parts."""

    num_ranks: int = 1
    num_steps: int = 100
    noise: float = 0.02
    more: Callable[[int, int], dict[str, float]] = field(default=lambda rank, step: {})
    in_step: bool = False
    """Ranks end each step together: who is early waits in backward for who is late."""
    absent: tuple[str, ...] = ()
    seed: int = 1

    def tell(self) -> Told:
        dice = random.Random(self.seed)
        parts: dict[str, list[list[float | None]]] = {
            name: [[] for _ in range(self.num_ranks)] for name in PARTS
        }
        total: list[list[float]] = [[] for _ in range(self.num_ranks)]
        for step in range(self.num_steps):
            took = []
            for rank in range(self.num_ranks):
                own = dict(USUAL)
                for name, value in self.more(rank, step).items():
                    own[name] = own.get(name, 0.0) + value
                own = {
                    n: v * (1 + self.noise * dice.uniform(-1, 1))
                    for n, v in own.items()
                }
                took.append(own)
            longest = max(sum(own.values()) for own in took)
            for rank, own in enumerate(took):
                if self.in_step:
                    own["backward"] += longest - sum(own.values())
                for name in PARTS:
                    known = None if name in self.absent else own[name]
                    parts[name][rank].append(known)
                total[rank].append(sum(own.values()) + REST)
        return Told(parts, total)


def write(folder: Path, told: Told, **more: Any) -> None:
    """The run on disk. `more`: `counters`, `flops`, `config`, `peak`, `rows_per_chunk`."""
    run = RunBuilder(folder)
    num_ranks = len(told.total)
    for rank in range(num_ranks):
        file = run.rank(
            rank,
            world_size=num_ranks,
            config=more.get("config", CONFIG),
            **more.get("header", {}),
        )
        seconds = [value * MS for value in told.total[rank]]
        ends, now = [], more.get("header", {}).get("start_ns", START_NS)
        for value in seconds:
            now += round(value * 1e9)
            ends.append(now)
        columns: dict[str, Any] = {"step_time_seconds": seconds}
        for name in PARTS:
            values = told.parts[name][rank]
            if any(value is not None for value in values):
                columns[f"{name}_seconds"] = [
                    None if value is None else value * MS for value in values
                ]
        for name, per_step in more.get("counters", {}).items():
            columns[name] = [per_step * (step + 1) for step in range(len(seconds))]
        if "flops" in more:
            columns["flops"] = [more["flops"]] * len(seconds)
        if "peak" in more:
            columns["allocated_peak_bytes"] = [
                more["peak"](rank, s) for s in range(len(seconds))
            ]
        file.steps(
            range(len(seconds)),
            times=ends,
            extra=EXTRA,
            rows_per_chunk=more.get("rows_per_chunk", 50),
            **columns,
        )
        file.close()
