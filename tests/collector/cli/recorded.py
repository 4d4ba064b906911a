"""Recordings for the verbs' tests, written through the disk contract alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memboard.collector.format.columns import Column
from memboard.collector.format.memory import CATEGORIES, HOOK_ATTRS, STATES
from memboard.collector.format.snapshots import tables_of
from tests.made_snapshots import everything

if TYPE_CHECKING:
    from tests.builders import RankBuilder

KIB = 1 << 10

SNAP_COLUMNS = (
    Column(name="iteration", unit="index", group="progress"),
    Column(name="context", unit="index", group="progress"),
    Column(name="rss_bytes", unit="bytes", group="process"),
    Column(name="vms_bytes", unit="bytes", group="process"),
    Column(name="allocated_bytes.all.current", unit="bytes", group="device"),
    Column(name="num_ooms", unit="count", group="device"),
    Column(name="hook.rss_diff", unit="bytes", group="process", dtype="f8"),
    Column(name="hook.share", unit="count", group="process", dtype="f8"),
)
NAMES = {
    "rss_bytes": "rss",
    "vms_bytes": "vms",
    "hook.rss_diff": "rss_diff",
    "hook.share": "share",
}
"""Ours -> MemProfiler's."""


def add_snaps(
    builder: RankBuilder,
    function: str,
    iterations: list[int],
    *,
    phase: str = "train",
    contexts: tuple[int, ...] = (0, 1),
) -> dict[str, dict[str, float]]:
    """Snaps of a function's calls; returns what MemProfiler would have written."""
    keys = [(i, c) for i in iterations for c in contexts]
    values: dict[str, list] = {
        "iteration": [i for i, _ in keys],
        "context": [c for _, c in keys],
    }
    for place, column in enumerate(SNAP_COLUMNS[2:]):
        whole = [
            10**9 * (place + 1) + 1000 * builder.rank + 10 * i + c for i, c in keys
        ]
        values[column.name] = whole
    values["hook.share"] = [0.25 + i for i, _ in keys]
    # What the built-in hooks find is there at the end alone; files say 0 of the start.
    values["hook.rss_diff"] = [393_216.0 if c else None for _, c in keys]
    builder.rows(
        f"function/{function}",
        [i for i, _ in keys],
        phase=phase,
        rows_per_chunk=3,
        extra=SNAP_COLUMNS,
        rolled_up=False,
        **values,
    )
    name = function if phase == "train" else f"{phase}.{function}"
    return {
        f"{builder.rank}.{name}.{i}.{'end' if c else 'start'}": {
            **dict.fromkeys(HOOK_ATTRS, None if c else 0),
            **{
                NAMES.get(column.name, column.name): values[column.name][row] or 0
                for column in SNAP_COLUMNS[2:]
            },
        }
        for row, (i, c) in enumerate(keys)
    }


def add_modules(
    builder: RankBuilder,
    iteration: int,
    *,
    function: str = "step",
    phase: str = "train",
    backend: str = "fsdp2",
    scale: int = 1,
    **meta: object,
) -> None:
    """One window of a root and a layer: a forward of each, and nothing else.

    At the start `sharded_param` holds 4 KiB; the root's forward allocates 6 KiB times
    `scale` of activations, the layer's in between 2 KiB of `all_gather`, freed again.
    """

    def index(name: str) -> int:
        return CATEGORIES.index(name)

    events = [  # time, bytes, category, owner
        (0, 4 * KIB, index("sharded_param"), 0),
        (2, 6 * KIB * scale, index("activation"), 0),
        (4, 2 * KIB, index("all_gather"), 1),
        (5, -2 * KIB, index("all_gather"), 1),
    ]
    boundaries = [  # time, events before, module, state
        (1, 1, 0, "before_pre_forward"),
        (3, 2, 1, "before_pre_forward"),
        (6, 4, 1, "after_post_forward"),
        (7, 4, 0, "after_post_forward"),
    ]
    times, deltas, categories, owners = (np.array(c) for c in zip(*events, strict=True))
    builder.capture(
        "modules",
        function,
        iteration=iteration,
        step=iteration,
        phase=phase,
        meta={
            "backend": backend,
            "world": "2 ranks",
            "root": "FSDPNet",
            "devices": ["cuda:0"],
            "device_type": "cuda",
            "estimate": "",
            "incomplete": False,
            "inputs": "forward",
            "optimizers": 1,
            "torch": "2.13.0",
            "rounding_bytes": 512,
            "num_events_dropped": 0,
            "reasons": [],
            **meta,
        },
        tables={
            "modules": {
                "fqn": ("FSDPNet", "FSDPNet.layer"),
                "path": ("", "layer"),
                "type": ("FSDPNet", "FSDPLayer"),
                "parent": np.array([-1, 0]),
                "is_fsdp": np.array([1, 1]),
                "param_bytes": np.array([0, 4 * KIB]),
                "buffer_bytes": np.array([0, 0]),
            },
            "events": {
                "time_us": times,
                "delta_bytes": deltas,
                "category": categories,
                "device": np.zeros(len(events), np.int64),
                "module": owners,
                "storage": np.array([0, 1, 2, 2]),
            },
            "boundaries": {
                "time_us": np.array([b[0] for b in boundaries]),
                "event": np.array([b[1] for b in boundaries]),
                "module": np.array([b[2] for b in boundaries]),
                "state": np.array([STATES.index(b[3]) for b in boundaries]),
                "in_backward": np.zeros(len(boundaries), np.int64),
                "call": np.zeros(len(boundaries), np.int64),
            },
        },
    )


def add_history(
    builder: RankBuilder, iteration: int, context: str, function: str = "step", **fields
) -> dict:
    """One capture of the allocator; returns the snapshot it was made of."""
    taken = everything()
    known = {"iteration": iteration, "context": context, "tables": tables_of(taken)}
    builder.capture("history", function, **{**known, **fields})
    return taken
