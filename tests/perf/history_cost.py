"""Costs of keeping a snapshot of the allocator: time, memory and bytes per event.

    python -m tests.perf.history_cost [--events 100000 1000000]

Simulated trainings, with Python stacks and with mixed ones, and, with MEMBOARD_REAL_DATA,
recorded snapshots: as tables against torch's own pickle. torch's `_dump_snapshot` is
`_snapshot()` and a `pickle.dump` of what it returns; without a GPU only the second half
can be had, so the ratio is harder than against the whole. All are encoded in turn in the
same run, in CPU time. `disk` is encoding for the file, which is the writer's thread's;
`back` the snapshot from its tables; `stall` the longest that another thread had to wait
for the interpreter meanwhile. Memory is what each allocates at most on top.

First, what it takes to find which address belongs to what: per 10,000 tensors, of a model
with AdamW in float32.
"""

from __future__ import annotations

import io
import os
import pickle
import threading
import time
import tracemalloc
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from memboard.collector.format.capture import encode_body
from memboard.collector.format.records import Capture
from memboard.collector.format.snapshots import rebuilt, tables_of
from memboard.collector.history.tensors import TensorMap
from tests.perf import bench
from tests.simulate import Form, trained_rank

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 3


class PlainUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is no plain data")


def body(tables) -> bytes:
    where = {"phase": "train", "function": "step", "iteration": 1, "step": 0}
    return encode_body(Capture(kind="history", time_ns=0, tables=tables, **where))


def stall(work: Callable[[], object]) -> float:
    """Seconds that a thread which only wants to run was kept waiting, at worst."""
    worker = threading.Thread(target=work)
    worst, last = 0.0, time.perf_counter()
    worker.start()
    while worker.is_alive():
        now = time.perf_counter()
        worst, last = max(worst, now - last), now
    return worst


def peak_mib(work: Callable[[], object]) -> float:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def cells(snapshot: Any, num_events: int) -> list[object]:
    """Of a row."""
    tables = tables_of(snapshot)
    works = {
        "columns": partial(tables_of, snapshot),
        "disk": partial(body, tables),
        "pickle": partial(pickle.dumps, snapshot, protocol=4),
        "back": partial(rebuilt, tables),
    }
    found = bench.turns({k: partial(cpu, work) for k, work in works.items()}, ROUNDS)
    us = {name: median(times) / num_events * 1e6 for name, times in found.items()}
    sizes = [len(works[name]()) / num_events for name in ("disk", "pickle")]
    return [
        num_events,
        *us.values(),
        (us["columns"] + us["disk"]) / us["pickle"],
        *sizes,
        sizes[1] / sizes[0],
        stall(lambda: body(tables_of(snapshot))) * 1e3,
        *(peak_mib(works[name]) for name in ("columns", "pickle")),
    ]


def tensors_found(num_parameters: int) -> list[object]:
    """Five tensors each: parameter, gradient, two states and a step count."""
    model = torch.nn.ModuleList(
        torch.nn.ModuleList(torch.nn.Linear(8, 8, bias=False) for _ in range(10))
        for _ in range(num_parameters // 10)
    )
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    tensors = TensorMap("cpu")
    tensors.attach(model, [optimizer])
    num = len(tensors.found().address)
    times = [bench.seconds(tensors.found) for _ in range(20)]
    return [num, *(1e7 * seconds / num for seconds in (min(times), median(times)))]


def main() -> None:
    given = bench.options(__doc__, events=[100_000, 1_000_000])
    row = bench.table("tensors by name", "ms per 10,000", "median")
    for num in (2_000, 20_000):
        row(*tensors_found(num))
    print()
    row = bench.table(
        "us per event of a processor", "events", "columns", "disk", "pickle", "back",
        "ratio", "bytes/event", "pickle bytes/event", "ratio", "stall ms",
        "columns MiB", "pickle MiB",
    )  # fmt: skip
    for num_events in given.events:
        for stacks in ("python", "all"):
            rank = trained_rank(num_events, stacks=stacks)
            snapshot = rank.snapshot(Form("2.13", "alloc"))
            events = sum(map(len, snapshot["device_traces"]))
            row(f"simulated, {stacks} stacks", *cells(snapshot, events))
    folder = Path(os.environ.get("MEMBOARD_REAL_DATA", ""), "snapshots")
    for path in sorted(folder.glob("*.p*")):
        snapshot = PlainUnpickler(io.BytesIO(path.read_bytes())).load()
        traces = snapshot["device_traces"] if isinstance(snapshot, dict) else []
        if (events := sum(map(len, traces))) > 5000:
            row(path.name[:24], *cells(snapshot, events))


if __name__ == "__main__":
    main()
