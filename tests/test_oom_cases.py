"""The hand-made out-of-memory cases agree with themselves, and verdicts with them."""

from __future__ import annotations

import pickle

import pytest

from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.analysis.allocator.lifetimes import BEFORE
from memboard.tb_plugin.analysis.allocator.replay import Replay, oddities_of
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
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
    "fraction_in_settings-0",
    "fraction_in_settings-1",
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
    "freed_in_attempt-1",
    "refused_with_room-2",
    "unknown_total-0",
    "colocated-1",
    "pluggable_allocator-0",
    "graphs_per_shape-0",
    "user_pool_cached-2",
    "reference_cycles-0",
)
# Those of the sample whose verdicts are right. Rules may only add to it.
RIGHT = set(SAMPLE) - {"eval_with_graph-2", "reference_cycles-0"}

# Every kind once, and each of the four variants several times.
ONCE = [(kind, at % 4) for at, kind in enumerate(KINDS)]


@pytest.mark.parametrize(("kind", "seed"), ONCE)
def test_events_lead_to_the_segments_at_the_end(kind, seed):
    dumped = make(kind, seed).snapshot
    for segment in dumped["segments"]:
        active = [b for b in segment["blocks"] if b["state"] != "inactive"]
        assert segment["active_size"] == sum(b["size"] for b in active)
    for events in dumped["device_traces"]:
        times = [event["time_us"] for event in events]
        assert times == sorted(set(times))
    snapshot = snapshot_of(tables_of(dumped))
    assert snapshot.oddities == {}
    for device in snapshot.devices:
        replay = Replay(snapshot, device)
        assert replay.lives.num_lost == 0
        assert oddities_of(replay) == {}
        assert replay.at(BEFORE).reserved_bytes == replay.reserved.levels.first
        end = replay.at(replay.num_events - 1).segments
        assert end.total_size.tolist() == device.segments.total_size.tolist()
        ends = device.blocks.address + device.blocks.size
        for row, address in enumerate(device.segments.address):
            own = device.blocks.segment == row
            starts = [*device.blocks.address[own].tolist(), ends[own][-1]]
            assert starts == [address, *ends[own]]
            assert ends[own][-1] == address + device.segments.total_size[row]


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
