"""Allocator snapshots made for tests, in the shapes that torch 2.0 to 2.15 hand out.

Made from the documented structures, not copied from any recording: `everything()` has
every key that is known to occur, `long_history(n)` is as long as wanted and shares its
lists and frames as torch does.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from memboard.tb_plugin.formats.snapshots.snapshot_file import read_tables

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from memboard.collector.format.records import CaptureTable

GIB = 2**30


def frame(name: str, line: int, filename: str = "train.py", **more: Any) -> dict:
    return {"name": name, "filename": filename, "line": line, **more}


FORWARD = [frame("forward", 31, "model.py"), frame("main", 12)]
BACKWARD = [
    frame("torch::autograd::Engine::execute", 0, "??"),
    frame("backward", 526, "torch/_tensor.py"),
    frame("main", 14),
]
COMPILED = [
    frame(
        "call",
        7,
        "/tmp/fx_0.py",
        fx_node_op="call_function",
        fx_node_name="mm",
        fx_node_target="aten.mm.default",
        fx_original_trace='File "model.py", line 31, in forward\n  return x @ w\n',
        fx_node_info={"op": "mm", "shapes": [[4, 8], [8, 2]]},
    )
]


def block(
    address: int, size: int, state: str = "active_allocated", **more: Any
) -> dict:
    return {
        "address": address,
        "size": size,
        "requested_size": size - 12,
        "state": state,
        "frames": FORWARD,
        **more,
    }


def segment(address: int, blocks: list[dict], **more: Any) -> dict:
    sizes = {
        state: sum(b["size"] for b in blocks if b["state"].startswith(state))
        for state in ("active_allocated", "active")
    }
    return {
        "device": 0,
        "address": address,
        "total_size": sum(b["size"] for b in blocks),
        "allocated_size": sizes["active_allocated"],
        "active_size": sizes["active"],
        "requested_size": 0,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": FORWARD,
        "blocks": blocks,
        **more,
    }


def event(action: str, addr: int, size: int, time_us: int, **more: Any) -> dict:
    return {
        "action": action,
        "addr": addr,
        "size": size,
        "stream": 0,
        "time_us": time_us,
        "compile_context": "N/A",
        "user_metadata": "",
        **more,
    }


def everything() -> dict:
    """Every key and every kind of entry, of any release, in one snapshot."""
    base = 0x7F0000000000
    segments = [
        segment(
            base,
            [
                block(base, 2 * GIB),
                block(base + 2 * GIB, GIB, "active_pending_free"),
                block(base + 3 * GIB, GIB, "inactive", frames=[]),
            ],
        ),
        segment(
            base + 8 * GIB,
            [block(base + 8 * GIB, 512, forward_frames=["model.py:31", "train.py:12"])],
            segment_pool_id=(3, 1),  # a private pool
            is_expandable=True,
            segment_type="small",
            stream=94_000_000_000_000,
            registration_counter=2**64 - 1,
        ),
        segment(base + 9 * GIB, [], device=1),
    ]
    trace = [
        event("segment_alloc", base, 4 * GIB, 1000, frames=FORWARD),
        event("alloc", base, 2 * GIB - 12, 1001, frames=FORWARD, pool_id=(0, 0)),
        event("alloc", base + 2 * GIB, GIB, 1002, frames=COMPILED, pool_id=(3, 1)),
        event("free_requested", base + 2 * GIB, GIB, 1003, frames=BACKWARD),
        event("segment_map", base + 8 * GIB, 2**21, 1004),  # no context was kept
        event("segment_unmap", base + 8 * GIB, 2**21, 1005),
        {**event("oom", 0, 5 * GIB, 1006, frames=FORWARD), "device_free": 91_750_400},
        event("annotate", base, 512, 1007, user_metadata={"tensor": "kv", "layer": 3}),
        event("snapshot", 0, 3 * GIB, 1008),
    ]
    del trace[6]["addr"]
    return {
        "segments": segments,
        "device_traces": [trace, [], [event("alloc", 2**63 + 4096, 8, 1009)], []],
        "allocator_settings": {
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
            "max_split_size": -1,
            "garbage_collection_threshold": 0.0,
            "expandable_segments": True,
            "roundup_power2_divisions": {"1": 0, "1024": 4},
            "trace_alloc_max_entries": 100_000,
        },
        "external_annotations": [
            {"stage": "START", "name": "step#1", "device": 0, "time_us": 1000},
            {"device": 0, "time_us": 1008, "name": "step#1", "stage": "END"},
        ],
        "host_segments": [segment(2**47, [block(2**47, 2**20)], device=-1)],
        "host_traces": [[event("alloc", 2**47, 2**20, 1003, frames=BACKWARD)]],
        "from_the_future": {"nested": [1, (2.5, None)], 7: b"\0\xff"},
    }


def releases() -> dict[str, Any]:
    """By name: the same state as the releases hand it out, from the oldest on."""
    plain = [block(4096, 512)]
    old = [
        {
            "size": 512,
            "state": "active_allocated",
            "history": [{"addr": 4096, "real_size": 500, "frames": FORWARD}],
        }
    ]
    trace = [{"action": "alloc", "addr": 4096, "size": 500, "stream": 0}]
    timed = [{**trace[0], "time_us": 5, "frames": FORWARD}]
    tagged = [{**timed[0], "compile_context": "0/0", "user_metadata": "step=1"}]
    return {
        "a list of segments": [segment(4096, plain)],
        "2.0": {"segments": [segment(4096, old)], "device_traces": [trace]},
        "2.1": {"segments": [segment(4096, plain)], "device_traces": [trace]},
        "2.2": {"segments": [segment(4096, plain)], "device_traces": [timed]},
        "2.10": {
            "segments": [segment(4096, plain)],
            "device_traces": [tagged],
            "external_annotations": [],
            "allocator_settings": {},
        },
        "without traces": {"segments": [segment(4096, plain)]},
        "2.14 and 2.15": everything(),
        "flat host traces": {"segments": [], "host_traces": timed},
        "nothing recorded": {"segments": [], "device_traces": [[], []]},
    }


def long_history(num_events: int, *, depth: int = 12, seed: int = 0) -> dict:
    """About `num_events` events of a training loop of 200 stacks of `depth` frames."""
    rng = random.Random(seed)
    frames = [
        frame(f"f{n}", n % 97, f"/site-packages/p/m{n % 50}.py") for n in range(400)
    ]
    stacks = [
        [frames[(7 * stack + at * at) % len(frames)] for at in range(depth)]
        for stack in range(200)
    ]
    trace: list[dict] = []
    live: list[tuple[int, int]] = []
    now, address = 1_700_000_000_000_000, 0x7F0000000000
    while len(trace) < num_events:
        now += rng.randrange(1, 60)
        if live and rng.random() < 0.5:
            at, size = live.pop(rng.randrange(len(live)))
            context = list(stacks[rng.randrange(200)])  # one list per captured context
            trace.append(event("free_requested", at, size, now, frames=context))
            trace.append(event("free_completed", at, size, now + 1, frames=context))
            now += 1
        else:
            size = 512 * rng.choice((1, 4, 64, 2048, 8192, 65536))
            live.append((address, size))
            context = list(stacks[(address // 512) % 200])
            trace.append(event("alloc", address, size, now, frames=context))
            address += size
    blocks: list[dict] = []
    behind = 0x7F0000000000
    for at, size in sorted(live):
        if at > behind:  # what was freed in between
            blocks.append(block(behind, at - behind, "inactive", frames=[]))
        blocks.append(block(at, size, frames=list(stacks[at // 512 % 200])))
        behind = at + size
    return {
        "segments": [segment(0x7F0000000000, blocks)],
        "device_traces": [trace],
        "external_annotations": [],
        "allocator_settings": {"max_split_size": -1},
    }


def pooled(num_events: int) -> dict:
    """A long history whose events share what another program may share among them.

    As when a snapshot was loaded, changed and dumped again: pools and metadata are one
    object for many events, or none.
    """
    snapshot = long_history(num_events)
    pools, none = [(0, 0), (0, 7), (2**33, 1)], (1, 2, 3)
    for place, entry in enumerate(snapshot["device_traces"][0]):
        frames = entry.pop("frames")
        # Some pools are written out, as tuples of their own.
        entry["pool_id"] = pools[place % 3] if place % 5 else (0, place % 2)
        entry["user_metadata"] = None if place % 2 else none
        entry["seconds"] = place / 8
        entry["frames"] = frames
    return snapshot


def read_snapshot(path: Path) -> Mapping[str, CaptureTable]:
    """The tables of a snapshot's file, read in this process."""
    with path.open("rb") as file:
        return read_tables(file)


DEPTH = 20
"""Frames of each of `own_stacks`."""


def own_stacks(num_events: int, num_lines: int = 1 << 40) -> dict[str, Any]:
    """Every event has a list of frames of its own, and every list its own frames.

    One block, written after the events, has the last event's list.
    """
    names = [f"forward_{number}" for number in range(7)]
    files = [f"model_{number}.py" for number in range(5)]
    trace = [
        {
            "action": "alloc",
            "addr": 512 * number,
            "size": 512,
            "frames": [
                frame(
                    names[place % 7],
                    (number * DEPTH + place) % num_lines,
                    files[place % 5],
                )
                for place in range(DEPTH)
            ],
        }
        for number in range(num_events)
    ]
    blocks = [{"size": 512, "frames": trace[-1]["frames"]}]
    return {"device_traces": [trace], "segments": [{"blocks": blocks}]}
