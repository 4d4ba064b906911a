"""Costs of the parts of `rec.step()`, at the default sources.

    python -m tests.perf.step_parts

Each part is called alone, many times; the least of many rounds is what it takes while
caches are warm and nobody disturbs. What is left of the whole is the recorder's own code:
locks, the row, the queue.
"""

from __future__ import annotations

import tempfile
import time
import timeit
from pathlib import Path
from typing import TYPE_CHECKING

import memboard as mb
from memboard.collector.process.rank import is_distributed
from tests.perf import bench

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS, CALLS = 300, 200


def least_us(function: Callable[[], object]) -> float:
    rounds = []
    for number in range(ROUNDS):
        rounds.append(timeit.timeit(function, number=CALLS) / CALLS * 1e6)
        if number % 20 == 0:
            time.sleep(0.01)  # the writer takes rows away
    return min(rounds)


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        mb.record(Path(folder) / "run") as rec,
    ):
        for _ in range(10):  # past the first steps, of which one is collected
            rec.step()
        time.sleep(0.5)  # NVML, psutil and the rest are open now
        session = rec._session
        timing, cycles, windows = session.timing, session.cycles, session.windows
        parts = {
            "sources": session.engine._reads[0],
            "parts of the step's time, its span": (
                lambda: timing.end_step(5, 1, 2, None, None)
            ),
            "schedule": lambda: (
                cycles.end_step(None),
                cycles.choose(),
                cycles.begin_step(),
            ),
            "collected calls": lambda: (windows.end_step(), windows.begin_step()),
            "is torch.distributed there": is_distributed,
            "number of the step": lambda: session.progress.advance(None),
            "what later spans belong to": timing.begin_step,
            "errors": session.oom.stepped,
        }
        nothing = least_us(lambda: None)
        found = {name: least_us(part) - nothing for name, part in parts.items()}
        whole = least_us(rec.step)
    row = bench.table("rec.step() by part", "us, least of many rounds")
    for name, spent in found.items():
        row(name, spent)
    row("the rest: locks, row, queue", whole - sum(found.values()))
    row("all of it", whole)


if __name__ == "__main__":
    main()
