"""What a snapshot of the allocator costs to keep: time and bytes per event.

    python -m tests.perf.history_cost [EVENTS ...]

Made histories of a training loop (200 stacks), with Python stacks of 6 frames and with
mixed ones of 32, as tables against torch's own pickle: both are encoded in the same run,
turns taken. First, what it takes to find which address belongs to what: per 10,000
tensors, of a model with AdamW in float32. `stall` is the longest that another thread had to wait for the interpreter
while the writer's thread encoded. With MEMBOARD_REAL_DATA, recorded snapshots follow.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import threading
import time
from pathlib import Path
from statistics import median

import torch

from collector.format.capture import encode_body
from collector.format.records import Capture
from collector.format.snapshots import rebuilt, tables_of
from collector.history.tensors import TensorMap
from tests.made_snapshots import long_history

ROUNDS = 3


class PlainUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is no plain data")


def body(tables) -> bytes:
    capture = Capture(
        kind="history",
        time_ns=0,
        step=0,
        phase="train",
        function="step",
        iteration=1,
        tables=tables,
    )
    return encode_body(capture)


def stall(work) -> float:
    """Seconds that a thread which only wants to run was kept waiting, at worst."""
    worker = threading.Thread(target=work)
    worst, last = 0.0, time.perf_counter()
    worker.start()
    while worker.is_alive():
        now = time.perf_counter()
        worst, last = max(worst, now - last), now
    return worst


def measured(snapshot) -> dict[str, float]:
    times: dict[str, list[float]] = {
        "columns": [],
        "disk": [],
        "pickle": [],
        "back": [],
    }
    for _ in range(ROUNDS):
        began = time.process_time()
        tables = tables_of(snapshot)
        made = time.process_time()
        encoded = body(tables)
        written = time.process_time()
        pickled = pickle.dumps(snapshot, protocol=4)
        dumped = time.process_time()
        rebuilt(tables)
        times["back"].append(time.process_time() - dumped)
        times["columns"].append(made - began)
        times["disk"].append(written - made)
        times["pickle"].append(dumped - written)
    seconds = {name: median(found) for name, found in times.items()}
    sizes = {"bytes": len(encoded), "pickle_bytes": len(pickled)}
    return {**seconds, **sizes, "stall": stall(lambda: body(tables_of(snapshot)))}


def show(name: str, num_events: int, found: dict[str, float]) -> None:
    us = {key: found[key] / num_events * 1e6 for key in ("columns", "disk", "pickle")}
    ratio = (us["columns"] + us["disk"]) / us["pickle"]
    print(
        f"{name:<26}{num_events:>9}{us['columns']:>9.2f}{us['disk']:>7.2f}"
        f"{us['pickle']:>8.2f}{ratio:>7.1f}x{found['back'] / num_events * 1e6:>7.2f}"
        f"{found['bytes'] / num_events:>8.1f}{found['pickle_bytes'] / num_events:>9.1f}"
        f"{found['pickle_bytes'] / found['bytes']:>7.0f}x{found['stall'] * 1e3:>9.1f}"
    )


def show_tensors(num_parameters: int) -> None:
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
    found = tensors.found()
    times = []
    for _ in range(20):
        began = time.perf_counter()
        tensors.found()
        times.append(time.perf_counter() - began)
    num = len(found.address)
    best, middle = (1e7 * seconds / num for seconds in (min(times), median(times)))
    print(f"{num:,} tensors by name: {best:.1f} ms per 10,000 (median {middle:.1f})")


def main(counts: list[int]) -> None:
    show_tensors(2_000)
    show_tensors(20_000)
    print(
        f"{'':<26}{'events':>9}{'columns':>9}{'disk':>7}{'pickle':>8}{'ratio':>8}"
        f"{'back':>7}{'bytes':>8}{'pickle':>9}{'ratio':>8}{'stall':>9}"
    )
    print(f"{'':<35}{'us per event, CPU':>39}{'per event':>17}{'ms':>17}")
    for num_events in counts:
        for depth in (6, 32):
            snapshot = long_history(num_events, depth=depth)
            events = len(snapshot["device_traces"][0])
            show(f"made, {depth} frames", events, measured(snapshot))
    folder = Path(os.environ.get("MEMBOARD_REAL_DATA", ""), "snapshots")
    for path in sorted(folder.glob("*.p*")):
        snapshot = PlainUnpickler(io.BytesIO(path.read_bytes())).load()
        traces = snapshot["device_traces"] if isinstance(snapshot, dict) else []
        events = sum(map(len, traces))
        if events > 5000:
            show(path.name[:24], events, measured(snapshot))


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or [100_000, 1_000_000])
