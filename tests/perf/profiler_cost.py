"""Costs of a traced cycle for training, against bare torch.profiler over the same steps.

    python -m tests.perf.profiler_cost [--rounds 5] [--layers 12] [--steps 10]

Each round trains the same steps in turn: without a profiler; with torch's own, stopped and
exported on the training thread as its users do; recorded by MemBoard with `torch_profiler`,
alone and with all else that is collected in active steps by default (saved tensors, spans).
Medians over the rounds, then their ratios to torch's own. "longest step" is what training waits for
torch to end its trace.
"""

from __future__ import annotations

import gc
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

import memboard as mb
from tests.perf import bench


class Cost(NamedTuple):
    """Of one way, in seconds."""

    active: float
    """The traced steps, without what ends the trace."""
    longest: float
    """The longest time between two steps."""
    whole: float
    """All steps, and closing."""


class Training:
    """Layers of a small transformer's size, on the processor."""

    def __init__(self, layers: int) -> None:
        torch.manual_seed(0)
        parts = [
            part
            for _ in range(layers)
            for part in (torch.nn.Linear(128, 128), torch.nn.GELU())
        ]
        self.net = torch.nn.Sequential(*parts)
        self.optimizer = torch.optim.AdamW(self.net.parameters())

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.net(torch.randn(64, 128)).sum().backward()
        self.optimizer.step()


def bare(training: Training, steps: int, folder: Path) -> Cost:
    """No profiler at all."""
    return timed(training, steps, lambda: None, lambda: None)


def torchs_own(training: Training, steps: int, folder: Path) -> Cost:
    """torch.profiler with its own schedule and an export when a trace is ready."""

    def ready(profile: torch.profiler.profile) -> None:
        profile.export_chrome_trace(str(folder / "own.json"))
        profile.key_averages().table(row_limit=20)

    profile = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=steps, repeat=1),
        on_trace_ready=ready,
        profile_memory=True,
        with_flops=True,
    )
    profile.start()
    return timed(training, steps, profile.step, profile.stop)


def ours(training: Training, steps: int, folder: Path, **settings: object) -> Cost:
    """The same through a recording, with all that it collects there by default."""
    recorder = mb.record(
        folder / "run",
        scalars=False,
        schedule={"wait": 1, "warmup": 1, "active": steps, "repeat": 1},
        torch_profiler={"enabled": True},
        **settings,
    )
    return timed(training, steps, recorder.step, recorder.close)


def timed(training: Training, steps: int, step: object, close: object) -> Cost:
    gc.collect()
    begun = last = time.perf_counter()
    gaps = []
    for _ in range(steps + 12):
        training.step()
        step()  # type: ignore[operator]
        now = time.perf_counter()
        gaps.append(now - last)
        last = now
    close()  # type: ignore[operator]
    return Cost(sum(gaps[2 : 1 + steps]), max(gaps[1:]), time.perf_counter() - begun)


def main() -> None:
    given = bench.options(__doc__, rounds=5, layers=12, steps=10)
    torch.set_num_threads(1)
    training = Training(given.layers)

    def in_folder(way) -> Cost:
        with tempfile.TemporaryDirectory() as folder:
            return way(training, given.steps, Path(folder))

    ways = {
        "no profiler": bare,
        "torch.profiler": torchs_own,
        "memboard, alone": partial(ours, functions=False, spans=False),
        "memboard": ours,
    }
    turns = {name: partial(in_folder, way) for name, way in ways.items()}
    found = {
        name: [statistics.median(values) for values in zip(*costs, strict=True)]
        for name, costs in bench.turns(turns, given.rounds, warm=1).items()
    }
    own = found["torch.profiler"]
    head = f"{given.steps} traced steps of {given.layers} layers"
    row = bench.table(
        head,
        "traced steps ms",
        "longest step ms",
        "all, and closing ms",
        *["/ torch's"] * 3,
    )
    for name, costs in found.items():
        ratios = (value / base for value, base in zip(costs, own, strict=True))
        row(name, *(value * 1e3 for value in costs), *ratios)


if __name__ == "__main__":
    main()
