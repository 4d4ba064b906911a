"""Has torch's own trackers print: run as a program, so that no test inherits a group.

    python torch_reports.py FOLDER

writes `fsdp.lines.UNITS`, `fsdp.tables.UNITS`, `plain...` and `truth.json`: what the
trackers held when they printed.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed._tools.mem_tracker import MemTracker
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Sequential(nn.Linear(256, 256), nn.ReLU()), nn.Linear(256, 8)
    )  # fmt: skip


def train(net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    net(torch.randn(16, 64)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def plain(tracked: dict) -> dict:
    """Labels and byte counts of torch's snapshots as plain data."""
    return {
        getattr(key, "value", str(key)): plain(value)
        if isinstance(value, dict)
        else value
        for key, value in tracked.items()
    }


def write(folder: Path, name: str, tracker: MemTracker) -> dict:
    for units in ("B", "KiB", "MiB"):
        for tabulate in (False, True):
            style = "tables" if tabulate else "lines"
            with (
                (folder / f"{name}.{style}.{units}").open("w") as file,
                redirect_stdout(file),
            ):
                tracker.display_snapshot("peak", units=units, tabulate=tabulate)
                tracker.display_modulewise_snapshots(
                    depth=9, units=units, tabulate=tabulate
                )
    return {
        "peak": plain(tracker.get_tracker_snapshot("peak")),
        "modules": {
            stats.mod_fqn: {
                state.value: [plain(call) for call in calls]
                for state, calls in stats.snapshots.items()
            }
            for stats in tracker.memory_tracking.values()
        },
    }


def main(folder: Path) -> None:
    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    net = model()
    for child in (net[2], net):
        fully_shard(child)
    optimizer = torch.optim.AdamW(net.parameters())
    train(net, optimizer)
    fsdp = FSDPMemTracker(net, optimizer)
    with fsdp:
        train(net, optimizer)
    truth = {"fsdp": write(folder, "fsdp", fsdp)}
    net = model()
    optimizer = torch.optim.AdamW(net.parameters())
    train(net, optimizer)
    tracker = MemTracker()
    tracker.track_external(net, optimizer)
    with tracker:
        train(net, optimizer)
    truth["plain"] = write(folder, "plain", tracker)
    (folder / "truth.json").write_text(json.dumps(truth))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
