"""Costs of tracking module memory: whole training steps, in one run, taking turns.

    python -m tests.perf.tracker_cost [--rounds N] [--no-torch] [--layers 2 32 96]

A transformer of 6 + 9 modules per layer trains on the CPU, narrow, so that Python's part
of a step is what counts: bare, below a dispatch mode that does nothing, below our
tracker, and, apart, below torch's MemTracker. Each round runs every variant once; the table
quotes medians, and the median of each round's own ratio.

Opening and closing the window (naming what is alive, making the capture) is once per
collected call, and has a table of its own.
"""

from __future__ import annotations

import gc
import statistics
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from memboard.collector.config.settings import ModulesConfig
from memboard.collector.core.calls import Call
from memboard.collector.modules.kind import ModulesKind
from tests.collector.modules import models
from tests.perf import bench

LAYERS = (2, 32, 96)
TARGET = 1.5


class Nothing(TorchDispatchMode):
    """The floor: an operator costs a call into Python and back."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Sink:
    """Takes captures and keeps the last."""

    def put_capture(self, capture):
        self.capture = capture
        return True

    def note_kind(self, *_):
        pass


def timed(work):
    gc.collect()
    start, cpu = time.perf_counter(), time.thread_time()
    work()
    return time.perf_counter() - start, time.thread_time() - cpu


def measure(layers, rounds, with_torch):
    torch.manual_seed(0)
    model = models.Transformer(vocabulary=64, dim=16, layers=layers, length=8)
    optimizer = torch.optim.AdamW(model.parameters())
    x = models.tokens(2, 8, 64)
    sink = Sink()
    kind = ModulesKind(ModulesConfig(enabled=True), sink)
    kind.attach(model, (optimizer,))
    edges = {"begin": [], "end": []}

    def step():
        models.train_step(model, optimizer, x)

    def bare():
        return timed(step)

    def nothing():
        with Nothing():
            return timed(step)

    def ours():
        call = Call(function="step", phase="train", iteration=1, step=1)
        begin, _ = timed(lambda: kind.begin(call))
        found = timed(step)
        end, _ = timed(lambda: kind.end(call, None))
        edges["begin"].append(begin)
        edges["end"].append(end)
        return found

    def torchs():
        from torch.distributed._tools.mem_tracker import MemTracker

        tracker = MemTracker()
        tracker.track_external(model, optimizer, x)
        with tracker:
            return timed(step)

    variants = {"bare": bare, "no-op mode": nothing, "ours": ours}
    seconds = bench.turns(variants, rounds, warm=1)
    if with_torch:
        few = max(1, min(rounds, 200 // layers))
        seconds |= bench.turns({"torch's MemTracker": torchs}, few)
    num_modules = sum(1 for _ in model.modules())
    return num_modules, sink.capture, seconds, edges


def ratio(seconds, name, floor, index):
    """Median over the rounds of one variant's time to another's."""
    pairs = zip(seconds[name], seconds[floor], strict=False)
    return statistics.median(a[index] / b[index] for a, b in pairs)


def main() -> None:
    given = bench.options(__doc__, rounds=15, no_torch=False, layers=list(LAYERS))
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, {given.rounds} rounds, one thread\n")
    row = bench.table(
        "modules", "variant", "step ms", "to bare", "to the no-op mode: wall", "CPU"
    )
    met, edges_of = True, []
    for layers in given.layers:
        num, capture, seconds, edges = measure(layers, given.rounds, not given.no_torch)
        for name, found in seconds.items():
            wall = statistics.median(pair[0] for pair in found)
            floor = [ratio(seconds, name, "no-op mode", index) for index in (0, 1)]
            row(num, name, wall * 1e3, ratio(seconds, name, "bare", 0), *floor)
            met &= name != "ours" or floor[0] <= TARGET
        sizes = (len(capture.tables[t]["time_us"]) for t in ("events", "boundaries"))
        ms = (statistics.median(edges[name]) * 1e3 for name in ("begin", "end"))
        edges_of.append((num, *ms, *sizes))
    print()
    row = bench.table("modules", "begin ms", "end ms", "events", "boundaries")
    for cells in edges_of:
        row(*cells)
    verdict = "met" if met else "MISSED"
    print(f"\nTarget: ours at most {TARGET}x the no-op mode: {verdict}")


if __name__ == "__main__":
    main()
