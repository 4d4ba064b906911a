"""Snapshots of the torch that runs this, small, with what torch counted at that moment.

    python -m tests.virtual.record_snapshots FOLDER KIND

in the environment of a virtual GPU of 1 GiB. FOLDER gets `torch2.13_KIND.pickle.gz`, as
`_dump_snapshot` wrote it but for the places of Python's files, and the truth in
`torch2.13_KIND.json`. `recorded/` holds what came of torch 2.6, 2.9, 2.13 and 2.15, and of
2.14 what it was the first to record: pinned host memory and annotations.
"""

from __future__ import annotations

import gzip
import json
import pickle
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from memboard.collector.format.snapshots.tags import annotation_text

MIB = 1 << 20
ENTRIES = 20_000
KINDS = ("training", "expandable", "native", "pinned")
"""`training` has pools, a graph, streams and an error; `native` stacks of C++ too;
`pinned` (torch 2.14 and newer) pinned host memory, and annotated tensors."""
BYTES = ("allocated", "active", "reserved", "requested", "inactive_split")
NUMBERS = ("allocation", "active", "segment")


def train(steps: int) -> object:
    net = nn.Sequential(*[nn.Linear(256, 256) for _ in range(3)]).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    for step in range(steps):
        loss = net(torch.randn(64 * (step + 1), 256, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return net, optimizer


def empty(mebibytes: float) -> torch.Tensor:
    return torch.empty(int(mebibytes * MIB), dtype=torch.uint8, device="cuda")


def streams() -> object:
    """A block that is freed while another stream uses it, and one of that stream."""
    side = torch.cuda.Stream()
    shared = empty(7)
    with torch.cuda.stream(side):
        own = empty(3)
    shared.record_stream(side)
    del shared
    return side, own


def pool() -> object:
    own = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(own):
        kept = [empty(5), empty(0.3)]
    return own, kept


def graph() -> object:
    given = torch.randn(128, 256, device="cuda")
    net = nn.Linear(256, 256).cuda()
    captured = torch.cuda.CUDAGraph()
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            net(given)
        torch.cuda.synchronize()
        with torch.cuda.graph(captured):
            out = net(given)
    return captured, given, net, out


def batches() -> object:
    """Pinned memory of two lines: one is used again, one waits for a copy to end."""
    for size in (1000, 3000):
        batch = torch.empty(size * 1024, dtype=torch.uint8, pin_memory=True)
        batch.cuda(non_blocking=True)
        del batch
        torch.cuda.synchronize()
    kept = [torch.zeros(2**20).pin_memory() for _ in range(2)]
    waits = torch.zeros(300 * 1024).pin_memory()
    return kept, waits.cuda(non_blocking=True)


def annotated() -> object:
    """A net whose parameters are annotated, and a cache, before it goes again."""
    net = nn.Linear(256, 256).cuda()
    for name, parameter in net.named_parameters():
        torch.cuda.memory._annotate_tensor(parameter, annotation_text("param", name))
    cache = empty(6)
    torch.cuda.memory._annotate_tensor(cache[512:], "kv cache, layer 3")
    return net


def out_of_memory() -> None:
    try:
        empty(2048)
    except torch.OutOfMemoryError:
        return
    raise SystemExit("2 GiB were allocated on a device of 1 GiB")


def programme(kind: str) -> list[object]:
    """What is recorded; holds what is to be live at the end."""
    if kind == "native":
        return [empty(3), train(1)]
    if kind == "pinned":
        return [batches(), annotated()]
    kept = [train(2)]
    gone = [empty(n) for n in (30, 2.5, 12, 0.1)]
    kept.append(gone[1::2])
    del gone
    if kind == "training":
        kept += [pool(), graph()]
    torch.cuda.empty_cache()
    out_of_memory()
    kept.append(streams())
    return kept


def told() -> dict[str, Any]:
    """torch's own counters."""
    stats = torch.cuda.memory_stats()
    found: dict[str, Any] = {
        f"{name}_bytes": stats[f"{name}_bytes.all.current"] for name in BYTES
    }
    for name in ("allocated", "active"):
        found[f"peak_{name}_bytes"] = stats[f"{name}_bytes.all.peak"]
    for name in NUMBERS:
        found[f"num_{name}"] = stats[f"{name}.all.current"]
    found["num_allocs"] = stats["allocation.all.allocated"]
    found["num_frees"] = stats["allocation.all.freed"]
    found["num_ooms"] = stats["num_ooms"]
    return found


def pinned() -> dict[str, Any]:
    """The counters of the allocator of pinned memory, which names things its own way."""
    stats = torch.cuda.host_memory_stats()
    return {
        "pinned_reserved_bytes": stats["allocated_bytes.current"],
        "pinned_reserved_peak_bytes": stats["allocated_bytes.peak"],
        "pinned_active_bytes": stats["active_bytes.current"],
        "num_pinned_segments": stats["allocations.current"],
        "num_pinned_allocs": stats["active_requests.allocated"],
        "num_pinned_active": stats["active_requests.current"],
    }


def without_places(snapshot: dict[str, Any]) -> None:
    """Names of files as on any machine; frames are shared and are changed once."""
    site, here = str(Path(torch.__file__).parents[1]), str(Path(__file__).parents[2])
    ours = str(Path(json.__file__).parents[1])
    events = [event for trace in snapshot["device_traces"] for event in trace]
    events += snapshot.get("host_traces", ())
    segments = [*snapshot["segments"], *snapshot.get("host_segments", ())]
    blocks = [block for segment in segments for block in segment["blocks"]]
    for entry in [*events, *blocks, *segments]:
        for frame in entry.get("frames", ()):
            name = frame["filename"]
            for place, plain in (
                (site, "site-packages"),
                (here, "work"),
                (ours, "lib"),
            ):
                name = name.replace(place, f"/{plain}")
            frame["filename"] = name


def main() -> None:
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    more = {"record_pinned_host_memory": True} if kind == "pinned" else {}
    torch.cuda.memory._record_memory_history(
        stacks="all" if kind == "native" else "python", max_entries=ENTRIES, **more
    )
    kept = programme(kind)
    truth = {**told(), **pinned()} if kind == "pinned" else told()
    with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        torch.cuda.memory._dump_snapshot(file.name)
        snapshot = pickle.loads(Path(file.name).read_bytes())
    del kept
    version = ".".join(torch.__version__.split(".")[:2])
    if kind == "native":
        # All but a few of these stacks are alike, and long.
        snapshot["device_traces"] = [t[-120:] for t in snapshot["device_traces"]]
        for name in (
            "num_allocs",
            "num_frees",
            "peak_allocated_bytes",
            "peak_active_bytes",
        ):
            del truth[name]
    without_places(snapshot)
    name = f"torch{version}_{kind}"
    data = gzip.compress(pickle.dumps(snapshot), 9, mtime=0)
    (folder / f"{name}.pickle.gz").write_bytes(data)
    text = json.dumps({"torch": torch.__version__, **truth}, indent=1)
    (folder / f"{name}.json").write_text(text + "\n")
    print(name, len(data), "bytes")


if __name__ == "__main__":
    main()
