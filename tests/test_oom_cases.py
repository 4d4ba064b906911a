"""The hand-made out-of-memory cases agree with themselves, and verdicts with them."""

from __future__ import annotations

import bisect
import pickle
from typing import Any

import pytest

from tests.oom_cases.cases import KINDS, make
from tests.oom_cases.truth import said_cause
from tests.perf.oom_independent import judged_case

# Small cases, each of its own kind.
SAMPLE = (
    "leak_losses-2",
    "steady_constant-1",
    "optimizer_first-2",
    "backward_first-0",
    "giant-2",
    "eval_with_graph-2",
    "fragmented-1",
    "fragmented_varying-3",
    "pending-0",
    "process_limit-2",
    "graph_pool-0",
    "checkpoint_load-3",
    "accumulate_unsharded-2",
    "one_of_several-2",
    "leak_outputs-0",
    "leak_cache-0",
    "steady_varying-1",
    "logits-1",
    "unknown_capacity-1",
    "kv_cache-0",
    "second_copy-1",
    "cublas_workspaces-1",
    "prefetch-1",
)
# Those of the sample whose verdicts are right. Rules may only add to it.
RIGHT = set(SAMPLE) - {"eval_with_graph-2"}

# Every kind once, and each of the four variants several times.
ONCE = [(kind, at % 4) for at, kind in enumerate(KINDS)]


class Replay:
    """Walks from the end of one device's events to their start."""

    def __init__(self, snapshot: dict[str, Any], device: int) -> None:
        own = [s for s in snapshot["segments"] if s["device"] == device]
        self.segments = {s["address"]: s["total_size"] for s in own}
        self.live = {
            block["address"]: up(block["requested_size"])
            for segment in own
            for block in segment["blocks"]
            if block["state"] != "inactive"
        }
        self.pending = {
            block["address"]
            for segment in own
            for block in segment["blocks"]
            if block["state"] == "active_pending_free"
        }
        self.addresses = sorted(self.live)
        self.starts = sorted(self.segments)

    def undo(self, event: dict[str, Any]) -> None:
        address, size = event.get("addr"), event["size"]
        match event["action"]:
            case "free_completed":
                self._put(address, up(size))
                self.pending.add(address)
            case "free_requested":
                self.pending.remove(address)
            case "alloc":
                assert address not in self.pending
                assert self.live.pop(address) == up(size)
                self.addresses.remove(address)
            case "segment_free":
                assert address not in self.segments
                self.segments[address] = size
                bisect.insort(self.starts, address)
            case "segment_alloc":
                assert self.segments.pop(address) == size
                self.starts.remove(address)
                at = bisect.bisect_left(self.addresses, address)
                assert at == len(self.addresses) or self.addresses[at] >= address + size

    def _put(self, address: int, size: int) -> None:
        at = bisect.bisect_left(self.addresses, address)
        if at:
            before = self.addresses[at - 1]
            assert before + self.live[before] <= address
        if at < len(self.addresses):
            assert address + size <= self.addresses[at]
        start = self.starts[bisect.bisect_right(self.starts, address) - 1]
        assert start <= address
        assert address + size <= start + self.segments[start]
        self.live[address] = size
        self.addresses.insert(at, address)


def up(size: int) -> int:
    return -(-max(size, 1) // 512) * 512


@pytest.mark.parametrize(("kind", "seed"), ONCE)
def test_events_lead_back_from_the_end_to_the_start(kind, seed):
    snapshot = make(kind, seed).snapshot
    for segment in snapshot["segments"]:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at
            at += block["size"]
        assert at == segment["address"] + segment["total_size"]
        active = [b for b in segment["blocks"] if b["state"] != "inactive"]
        assert segment["active_size"] == sum(b["size"] for b in active)
    for device, events in enumerate(snapshot["device_traces"]):
        times = [event["time_us"] for event in events]
        assert times == sorted(set(times))
        replay = Replay(snapshot, device)
        for event in reversed(events):
            replay.undo(event)
        assert set(replay.live) == set(replay.addresses)


@pytest.mark.parametrize("kind", ["pending", "fragmented", "one_of_several"])
def test_torch_reads_the_snapshots(kind):
    memory_viz = pytest.importorskip("torch.cuda._memory_viz")
    snapshot = pickle.loads(pickle.dumps(make(kind, 1).snapshot))
    assert "total_reserved" in memory_viz.segsum(snapshot)
    assert "alloc" in memory_viz.trace(snapshot)
    assert "<html" in memory_viz.trace_plot(snapshot)


def test_a_case_is_made_the_same_again():
    assert make("graph_pool", 2).snapshot == make("graph_pool", 2).snapshot


@pytest.mark.parametrize(
    ("sentence", "cause"),
    [
        ("Memory retained across steps filled the GPU: 441 MiB per step.", "leak"),
        ("There is no leak: 70.6 of 79.1 GiB was live, the GPU was full.", "full"),
        ("Full, if 44.2 GiB is all that the device has.", "full"),
        ("Unless another process holds the rest, the device was full.", "full"),
        ("Another process holds 38.0 GiB of the GPU.", "other"),
        ("60.1 GiB is freed, but waits for work on stream 0x55d1.", "pending"),
        ("The limit of this process, 31.6 GiB, was reached.", "limit"),
        ("7.1 GiB is free in 119 pieces, the largest 498 MiB.", "fragmented"),
        ("One request alone asked for 256 GiB, more than the GPU.", "giant"),
        ("CUDA graphs' private pools reserve 12.1 GiB.", "pool"),
        ("Nothing that was recorded says why.", "unsure"),
    ],
)
def test_the_judge_accepts_many_wordings(sentence, cause):
    assert said_cause(sentence) == cause


@pytest.mark.slow
def test_verdicts_of_the_sample(tmp_path):
    judged = [
        judged_case(kind, int(seed), tmp_path)
        for kind, seed in (name.split("-") for name in SAMPLE)
    ]
    right = {one.case for one in judged if one.right}
    assert right >= RIGHT, [one for one in judged if one.case in RIGHT - right]
