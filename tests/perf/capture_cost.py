"""Costs of the report of an out-of-memory error.

    python -m tests.perf.capture_cost

A process records a simulated device, torch's observer is called, the exception is raised.
`report` is the time from the call until a second process can read the report from the
file; `held up` is how long the exception waited, without what torch itself takes to give
the snapshot (0.7 s for 100,000 events). What the snapshot itself costs: `history_cost.py`.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.perf import bench

ROUNDS = 3

FAILING = """
import sys, time
import torch, memboard as mb
from tests.collector.oom.stage import Stage
from tests.simulate import Form, trained_rank
stage = Stage().install(setattr)
rank = trained_rank(int(sys.argv[2]), stacks="python")
stage.taken = rank.snapshot(Form("2.13", "alloc"))
stage.num_allocations = 10**7
stage.copies = False
history = {"enabled": False, "max_entries": int(sys.argv[2])}
with mb.record(sys.argv[1], oom={}, history=history) as rec:
    for _ in range(5):
        rec.step()
    rec.flush()
    print(rec.path, flush=True)
    sys.stdin.readline()
    began = time.time()
    stage.fail()
    held = time.time() - began
    print(began, held, flush=True)
    raise torch.OutOfMemoryError(stage.message())
"""


def fail(num_events):
    """Seconds until the report can be read, and those the exception waited."""
    from tests.collector.recordings import read

    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-c", FAILING, folder, str(num_events)],
            cwd=bench.ROOT,
            env={**os.environ, "PYTHONPATH": str(bench.ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        path = Path(process.stdout.readline().strip())
        size = path.stat().st_size
        process.stdin.write("\n")
        process.stdin.flush()
        while not any(c.kind == "oom" for c in read(path, last=False).captures):
            while path.stat().st_size == size and process.poll() is None:
                time.sleep(0.001)
            size = path.stat().st_size
        seen = time.time()
        began, held = map(float, process.stdout.readline().split())
        process.stdin.close()
        process.wait()
        kinds = [c.kind for c in read(path).captures]
        assert "history" in kinds, kinds
        return seen - began, held


def main() -> None:
    row = bench.table("events of history", "report, s", "held up, s")
    for num_events in (10_000, 100_000):
        found = [fail(num_events) for _ in range(ROUNDS)]
        row(num_events, *map(statistics.median, zip(*found, strict=True)))


if __name__ == "__main__":
    main()
