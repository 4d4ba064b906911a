"""What capturing costs the training: snapshot to tables, and an error's report.

    python -m tests.perf.capture_cost [EVENTS ...]

Simulated snapshots, as `_snapshot()` would return them. torch's `_dump_snapshot` is
`_snapshot()` and a `pickle.dump` of what it returns; without a GPU only the second half
can be had, so `ratio` is tables against that pickle alone, which is harder than against
the whole. Both run in turn, three times, the best counts. `on disk` adds encoding for the
file, which is the writer's thread's. Memory is what each allocates at most on top of the
snapshot.

Then an error: a process records a simulated device, torch's observer is called, the
exception is raised. `report` is the time from the call until a second process can read
the report from the file; `held up` is how long the exception waited, without what torch
itself takes to give the snapshot (0.7 s for 100,000 events).
"""

from __future__ import annotations

import io
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

from collector.format.capture import encode_body
from collector.format.records import Capture
from collector.format.snapshots import tables_of
from tests.simulate import Form, trained_rank

ROOT = Path(__file__).parents[2]
ROUNDS = 3
MIB = 1 << 20

FAILING = """
import sys, time
import torch, collector
from tests.collector.oom.stage import Stage
from tests.perf.capture_cost import snapshot_of
stage = Stage().install(setattr)
stage.taken = snapshot_of(int(sys.argv[2]), "python")
stage.num_allocations = 10**7
stage.copies = False
history = {"enabled": False, "max_entries": int(sys.argv[2])}
oom = {}
with collector.record(sys.argv[1], oom=oom, history=history) as rec:
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


def snapshot_of(num_events, stacks):
    return trained_rank(num_events, stacks=stacks).snapshot(Form("2.13", "alloc"))


def body(tables):
    return encode_body(
        Capture(
            kind="history",
            time_ns=0,
            step=0,
            phase="train",
            function="step",
            iteration=1,
            tables=tables,
        )
    )


def timed(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def peak_mib(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / MIB
    finally:
        tracemalloc.stop()


def convert(num_events, stacks):
    snapshot = snapshot_of(num_events, stacks)
    kept = tables_of(snapshot)
    works = {
        "tables": lambda: tables_of(snapshot),
        "disk": lambda: body(kept),
        "pickle": lambda: pickle.dump(snapshot, io.BytesIO(), protocol=4),
    }
    times = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            times[name].append(timed(work))
    best = {name: min(found) for name, found in times.items()}
    memory = {name: peak_mib(works[name]) for name in ("tables", "pickle")}
    events = sum(map(len, snapshot["device_traces"]))
    print(
        f"{stacks:<8}{events:>10,}{best['tables']:>9.2f}{best['pickle']:>9.2f}"
        f"{best['tables'] / best['pickle']:>7.2f}x{best['disk']:>9.2f}"
        f"{memory['tables']:>9.0f}{memory['pickle']:>9.0f}"
        f"{len(body(kept)) / events:>9.1f}",
        flush=True,
    )


def fail(num_events):
    """Seconds until the report can be read, and those the exception waited."""
    from tests.collector.recordings import read

    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-c", FAILING, folder, str(num_events)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
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


def main(counts):
    print(f"{'':<18}{'seconds':>18}{'':>17}{'MiB more':>18}{'bytes':>9}")
    print(
        f"{'stacks':<8}{'events':>10}{'tables':>9}{'pickle':>9}{'ratio':>8}"
        f"{'on disk':>9}{'tables':>9}{'pickle':>9}{'/event':>9}"
    )
    for num_events in counts:
        for stacks in ("python", "all"):
            convert(num_events, stacks)
    print(f"\n{'':<18}{'report, seconds':>18}{'held up':>12}")
    for num_events in (10_000, 100_000):
        found = [fail(num_events) for _ in range(ROUNDS)]
        report, held = (
            statistics.median(values) for values in zip(*found, strict=True)
        )
        print(f"{'history of':<12}{num_events:>8,}{report:>16.3f}{held:>12.3f}")


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or [100_000, 1_000_000])
