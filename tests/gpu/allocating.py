"""Trains, and leaves the allocator's snapshot and torch's own counters.

    python -m tests.gpu.allocating WORK FOLDER [--rank R --ranks N]

A process of its own for each, because settings of the allocator and the length of its
ring are set once. FOLDER gets `WORK_rankR.pickle`, as `_dump_snapshot` would write it,
and `WORK_rankR.json`: samples, each with torch's own counters and the number of events
that had happened. Ranks wait for each other, so that all hold their memory at the last
sample.
"""

from __future__ import annotations

import argparse
import json
import pickle
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

MIB = 1 << 20
RING = 150
"""Events that are kept of the work `ring`, which has many more."""
WAIT_S = 120.0
STATS = ("allocated", "requested", "active", "reserved")


class Watch:
    """Samples of torch's counters, each with its place among the events."""

    def __init__(self) -> None:
        self.samples: list[dict[str, Any]] = []

    def sample(self) -> dict[str, Any]:
        """Nothing may allocate between the counters and the snapshot; returns that."""
        torch.cuda.synchronize()
        stats = torch.cuda.memory_stats()
        free, total = torch.cuda.mem_get_info()
        snapshot = torch.cuda.memory._snapshot()
        device = torch.cuda.current_device()
        self.samples.append(
            {
                "num_events": len(snapshot["device_traces"][device]),
                **{
                    f"{name}_bytes": stats[f"{name}_bytes.all.current"]
                    for name in STATS
                },
                "device_free_bytes": free,
                "device_total_bytes": total,
            }
        )
        return snapshot


def model() -> tuple[nn.Module, torch.optim.Optimizer]:
    net = nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)]).cuda()
    return net, torch.optim.AdamW(net.parameters())


def train(watch: Watch, net: Any, optimizer: Any, num_steps: int = 4) -> None:
    """Steps of different lengths, looked at before and after backward."""
    for step in range(num_steps):
        loss = net(torch.randn(256 * (step + 1), 512, device="cuda")).square().mean()
        watch.sample()
        loss.backward()
        optimizer.step()
        watch.sample()
        optimizer.zero_grad()


def eager(watch: Watch) -> object:
    """A training, memory of another stream that is freed before that is done, a cache
    that is emptied."""
    net, optimizer = model()
    train(watch, net, optimizer)
    side = torch.cuda.Stream()
    shared = torch.ones(32 * MIB, device="cuda")
    with torch.cuda.stream(side):
        for _ in range(50):
            shared.mul_(1.0)
        shared.record_stream(side)
        mine = torch.ones(3 * MIB, device="cuda")
    del shared
    watch.sample()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    watch.sample()
    return net, optimizer, mine


def compiled(watch: Watch) -> object:
    net, optimizer = model()
    train(watch, torch.compile(net), optimizer)
    return net, optimizer


def graphs(watch: Watch) -> object:
    """A CUDA graph, whose memory is a private pool's."""
    net, _ = model()
    static = torch.randn(256, 512, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        net(static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        out = net(static)
    watch.sample()
    graph.replay()
    watch.sample()
    return net, static, graph, out


def pool(watch: Watch) -> object:
    """A MemPool, with 48 MiB of which 16 are freed again."""
    own = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(own):
        kept = [
            torch.empty(16 * MIB, dtype=torch.uint8, device="cuda") for _ in range(3)
        ]
    other = torch.empty(8 * MIB, dtype=torch.uint8, device="cuda")
    watch.sample()
    del kept[1]
    watch.sample()
    return own, kept, other


def ring(watch: Watch) -> object:
    """Far more events than are kept; only the end can be looked at."""
    net, optimizer = model()
    train(Watch(), net, optimizer, num_steps=12)
    return net, optimizer


WORKS = {work.__name__: work for work in (eager, compiled, graphs, pool, ring)}


def meet(folder: Path, word: str, rank: int, ranks: int) -> None:
    """Wait until all ranks are here."""
    (folder / f"{word}{rank}").touch()
    end = time.monotonic() + WAIT_S
    while not all((folder / f"{word}{other}").exists() for other in range(ranks)):
        if time.monotonic() > end:
            raise SystemExit(f"rank {rank}: the others did not come to {word}")
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=sorted(WORKS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    options = parser.parse_args()
    entries = RING if options.work == "ring" else 100_000
    # Freed blocks' stacks too, as torch does where nothing is said; Python's alone.
    torch.cuda.memory._record_memory_history(stacks="python", max_entries=entries)
    watch = Watch()
    held = WORKS[options.work](watch)
    meet(options.folder, "held", options.rank, options.ranks)
    snapshot = watch.sample()
    meet(options.folder, "sampled", options.rank, options.ranks)
    name = f"{options.work}_rank{options.rank}"
    body = pickle.dumps(snapshot, protocol=4)
    (options.folder / f"{name}.pickle").write_bytes(body)
    (options.folder / f"{name}.json").write_text(json.dumps(watch.samples))
    del held


if __name__ == "__main__":
    main()
