"""Results of a replay are those that `VERSION` stands for."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.analysis.allocator.replay import VERSION
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from tests.tb_plugin.jobs.replay_results import fresh, results

KNOWN = {
    1: "78e25ebd9631fb2c",
    2: "0e821052bcfd8417",
    3: "0e821052bcfd8417",
    4: "b1b9b6e5280c5984",
    5: "c1150da50b44aeff",
    6: "64ba4ce728e1bbb5",
    7: "64ba4ce728e1bbb5",  # oddities of ends without segments alone
    8: "5de378390c8a9af8",  # levels of blocks, each rounded by itself
    9: "3093a8955dfe3e08",  # blocks with what was not split off behind them, and one such
}
"""By version: what the history below comes to. Who changes what replaying comes to
raises the version: else caches that others have would show what was thought before."""

LINEAR = "/x/torch/nn/modules/linear.py"
STACKS = {
    "make": (("_init_params", LINEAR, 9), ("main", "t.py", 3)),
    "forward": (("forward", LINEAR, 7), ("main", "t.py", 5)),
    "backward": (
        ("torch::autograd::Engine::evaluate_function", "??", 0),
        ("backward", "/x/torch/_tensor.py", 2),
        ("main", "t.py", 6),
    ),
    "step": (("_init_group", "/x/torch/optim/adam.py", 8), ("main", "t.py", 7)),
}


class Trace:
    """Events of one device, and what lives at their end."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.live: dict[int, int] = {}

    def add(self, action: str, addr: int, size: int, **more: Any) -> None:
        told = {"action": action, "addr": addr, "size": size, "stream": 0}
        self.events.append({**told, "time_us": 10 * len(self.events), **more})

    def alloc(self, place: int, size: int, what: str) -> None:
        frames = [
            {"name": name, "filename": filename, "line": line}
            for name, filename, line in STACKS[what]
        ]
        self.live[place] = size
        self.add("alloc", place << 20, size, frames=frames)

    def free(self, place: int) -> None:
        for action in ("free_requested", "free_completed"):
            self.add(action, place << 20, self.live[place])
        del self.live[place]


def by_hand() -> dict[str, Any]:
    """A few steps of a training: of nothing that a library could make otherwise."""
    trace = Trace()
    trace.add("segment_alloc", 0, 32 << 20)
    for place in range(3):
        trace.alloc(place, 4096 * (place + 1), "make")
    for step in range(4):
        for place in range(4, 8):
            trace.alloc(place, 1000 * place + step, "forward")
        for place in range(7, 3, -1):
            trace.alloc(20 + place, 512 * place, "backward")
            trace.free(place)
        if step == 0:
            trace.alloc(10, 8192, "step")
        for place in range(4, 8):
            trace.free(20 + place)
        trace.add("snapshot", 0, 0)
    trace.add("segment_alloc", 64 << 20, 4 << 20)
    trace.alloc(64, 3_500_000, "forward")  # the segment's rest is not split off
    trace.free(64)
    trace.add("segment_free", 64 << 20, 4 << 20)
    trace.add("free_completed", 30 << 20, 512)  # of what was there before
    sizes = {"size", "requested_size"}
    blocks = [
        {"address": place << 20, "state": "active_allocated"}
        | dict.fromkeys(sizes, size)
        for place, size in sorted(trace.live.items())
    ]
    segment = {"device": 0, "address": 0, "total_size": 32 << 20, "stream": 0}
    kind = {"segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False}
    return {
        "segments": [{**segment, **kind, "blocks": blocks}],
        "device_traces": [trace.events],
    }


def test_the_version_changes_when_results_do():
    told = hashlib.sha256()

    def take(value: Any) -> None:
        if isinstance(value, np.ndarray):
            wide = "<f8" if value.dtype.kind == "f" else "<i8"
            told.update(value.astype(wide).tobytes())
        elif is_dataclass(value):
            for field in fields(value):
                take(getattr(value, field.name))
        else:
            told.update(repr(value).encode())

    (row,) = results(fresh(snapshot_of(tables_of(by_hand()))))
    for value in row:
        take(value)
    assert told.hexdigest()[:16] == KNOWN[VERSION]
