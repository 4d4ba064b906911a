"""A small training on the virtual GPU, and what torch says of itself there: one JSON line.

    python -m tests.virtual.smoke [train|expandable] RUN_FOLDER

Runs under any torch from 2.6 on. What a part finds wrong stands under its name; "" is well.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from memboard.collector.virtual.current_device import value_of

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20
STATS = (
    "allocated_bytes.all.peak",
    "reserved_bytes.all.peak",
    "active_bytes.all.peak",
    "num_device_alloc",
    "num_device_free",
    "allocation.all.allocated",
)


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True
        )
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


class Gpt(nn.Module):
    def __init__(self, words: int = 1000, width: int = 256, layers: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.blocks = nn.Sequential(*[Block(width, 4) for _ in range(layers)])
        self.head = nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.embedding(tokens)))


def properties() -> dict[str, Any]:
    """What torch can be asked of the device, by the names torch has for it."""
    told = torch.cuda.get_device_properties(0)
    names = {
        "name": str(value_of("name")),
        "total_memory": _number("memory"),
        "major": _number("major"),
        "minor": _number("minor"),
        "multi_processor_count": _number("sms"),
        "max_threads_per_multi_processor": _number("threads_per_sm"),
        "shared_memory_per_block": 49152,
        "shared_memory_per_block_optin": _number("shared_per_block"),
        "shared_memory_per_multiprocessor": _number("shared_per_sm"),
        "regs_per_multiprocessor": 65536,
        "warp_size": 32,
        "L2_cache_size": _number("l2"),
        "memory_bus_width": _number("bus"),
        "is_integrated": 0,
        "is_multi_gpu_board": 0,
        "max_threads_per_block": 1024,
        "pci_bus_id": 1,
    }
    wrong = {
        name: [getattr(told, name), meant]
        for name, meant in names.items()
        if hasattr(told, name) and getattr(told, name) != meant
    }
    if wrong:
        raise AssertionError(f"torch reads {wrong} (read, meant)")
    return {"asked": sum(hasattr(told, name) for name in names)}


def _number(key: str) -> int:
    return int(value_of(key) or -1)


def steps(run: Path, num_steps: int = 4) -> dict[str, Any]:
    """A recorded training; the recording is compared by whoever started this."""
    import memboard as mb

    torch.cuda.reset_peak_memory_stats()
    with torch.device("cuda"):
        model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    allocated = []
    with mb.record(run, model=model, optimizer=optimizer, history=True) as rec:
        for _ in range(num_steps):
            tokens = torch.randint(0, 1000, (4, 256), device="cuda")
            with torch.autocast("cuda", torch.bfloat16):
                logits = model(tokens).flatten(0, 1)
                loss = functional.cross_entropy(logits, tokens.flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            rec.step()
            allocated.append(torch.cuda.memory_allocated())
    if len(set(allocated[1:])) != 1:
        raise AssertionError(f"steps of one kind leave {allocated} bytes")
    stats = torch.cuda.memory_stats()
    return {"stats": {name: stats[name] for name in STATS}, "allocated": allocated}


def out_of_memory() -> dict[str, Any]:
    """torch's own error, after which it goes on."""
    seen: list[tuple[int, ...]] = []
    torch._C._cuda_attach_out_of_memory_observer(lambda *facts: seen.append(facts))
    held = torch.cuda.memory_allocated()
    try:
        torch.empty(_number("memory") + MIB, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        text = str(error)
    else:
        raise AssertionError("more than the device has was allocated")
    if "GPU 0 has a total capacity of" not in text or len(seen) != 1:
        raise AssertionError(f"{len(seen)} observed; {text}")
    torch.ones(10, device="cuda")
    return {"held": held == torch.cuda.memory_allocated(), "retries": 1}


def graph() -> dict[str, Any]:
    """A captured step, replayed; its memory is in a pool of its own."""
    net = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512)).cuda()
    given = torch.randn(256, 512, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        net(given).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        out = net(given)
        out.sum().backward()
    captured.replay()
    torch.cuda.synchronize()
    pools = {s["segment_pool_id"] for s in torch.cuda.memory_snapshot()}
    if len(pools) < 2:
        raise AssertionError(f"pools {pools}: the graph has none of its own")
    return {"pools": len(pools)}


def pool() -> dict[str, Any]:
    """A MemPool; what goes there stays there."""
    own = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(own):
        kept = torch.empty(16 * MIB, dtype=torch.uint8, device="cuda")
    where = [
        s["segment_pool_id"]
        for s in torch.cuda.memory_snapshot()
        if s["address"] <= kept.data_ptr() < s["address"] + s["total_size"]
    ]
    if where != [tuple(own.id)]:
        raise AssertionError(f"the block is in {where}, not in {own.id}")
    return {}


def history() -> dict[str, Any]:
    """A snapshot with stacks of both kinds."""
    torch.cuda.memory._record_memory_history(max_entries=1000)
    kept = [torch.empty(n * MIB, dtype=torch.uint8, device="cuda") for n in (1, 3, 30)]
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    events = [event for trace in snapshot["device_traces"] for event in trace]
    names = {frame["name"] for event in events for frame in event.get("frames", ())}
    allocs = [event for event in events if event["action"] == "alloc"]
    if len(allocs) != len(kept) or "history" not in names:
        raise AssertionError(f"{len(allocs)} allocations in {sorted(names)[:9]}")
    return {"events": len(events), "native": any("::" in name for name in names)}


def profiler() -> dict[str, Any]:
    """torch's profiler with CUDA's activities: operators and memory, no kernels."""
    from torch.profiler import ProfilerActivity, profile

    kinds = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=kinds, profile_memory=True) as seen:
        torch.ones(MIB, device="cuda").mul_(2)
    return {"operators": len(seen.key_averages())}


def expandable() -> dict[str, Any]:
    """With `expandable_segments:True`: grows, gives pages back, ends with torch's error."""
    kept = [torch.empty(30 * MIB, dtype=torch.uint8, device="cuda") for _ in range(6)]
    if not all(s["is_expandable"] for s in torch.cuda.memory_snapshot()):
        raise AssertionError("segments are not expandable")
    del kept[::2]
    torch.cuda.empty_cache()
    reserved = torch.cuda.memory_reserved()
    out_of_memory()
    return {"reserved": reserved}


PARTS: dict[str, list[Callable[..., dict[str, Any]]]] = {
    "train": [properties, steps, out_of_memory, graph, pool, history, profiler],
    "expandable": [steps, expandable],
}


def main() -> None:
    kind, folder = sys.argv[1], Path(sys.argv[2])
    told: dict[str, Any] = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "capability": list(torch.cuda.get_device_capability()),
        "parts": {},
        "wrong": {},
    }
    for part in PARTS[kind]:
        try:
            told["parts"][part.__name__] = part(folder) if part is steps else part()
        except Exception as error:  # noqa: BLE001, PERF203  # each part's fault is a result
            traceback.print_exc()
            told["wrong"][part.__name__] = f"{type(error).__name__}: {error}"[:300]
    print(json.dumps(told))


if __name__ == "__main__":
    main()
