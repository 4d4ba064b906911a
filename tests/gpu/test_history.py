"""Captures of torch's own allocator: what goes in comes out, tagged and bounded.

With MEMBOARD_GPU_OUT set, small raw snapshots are left there as well.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

import memboard as mb
from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.snapshots import rebuilt, tables_of
from memboard.collector.format.snapshots.tags import is_tag
from memboard.collector.history.allocator import find_allocator
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.categories.attribution import EVIDENCE, attribution
from memboard.tb_plugin.analysis.snapshots.snapshot import HOST
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from tests.gpu.conftest import GPU_OUT
from tests.recordings import read_run

torch = pytest.importorskip("torch")


def work() -> list[object]:
    kept = [torch.empty(1000 * (n + 1), device="cuda") for n in range(20)]
    del kept[::2]
    return kept


@pytest.fixture(autouse=True)
def _nothing_recorded():
    torch.cuda.memory._record_memory_history(enabled=None)
    yield
    torch.cuda.memory._record_memory_history(enabled=None)


def test_a_snapshot_of_this_torch_comes_back_whole(tmp_path):
    torch.cuda.memory._record_memory_history(stacks="python", max_entries=1000)
    kept = work()
    snapshot = torch.cuda.memory._snapshot()
    assert rebuilt(tables_of(snapshot)) == snapshot
    assert any(trace for trace in snapshot["device_traces"])
    path = Path(GPU_OUT or tmp_path, "snapshot.pickle")
    path.write_bytes(pickle.dumps(snapshot, protocol=4))
    del kept


def test_both_ends_of_a_call_are_captured_and_its_allocations_are_tagged(tmp_path):
    with mb.record(tmp_path, history=True) as recorder:
        for _ in range(4):
            kept = work()
            recorder.step()
    captures = [c for c in read_run(tmp_path)[0].captures if c.kind == "history"]
    assert [(c.iteration, c.context) for c in captures] == [(2, "start"), (2, "end")]
    snapshot = rebuilt(captures[-1].tables)
    tags = [
        event.get("user_metadata", "")
        for trace in snapshot["device_traces"]
        for event in trace
    ]
    assert any(is_tag(tag) for tag in tags if isinstance(tag, str))
    del kept


@pytest.mark.skipif(
    not hasattr(torch._C, "_cuda_annotateMemory"), reason="torch 2.14 began with it"
)
def test_pinned_memory_and_what_was_gone_by_the_end_are_recorded_by_themselves(
    tmp_path,
):
    torch.manual_seed(0)
    net = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(3)]).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    with mb.record(tmp_path, history=True, activations=True) as recorder:
        recorder.attach(model=net, optimizer=optimizer)
        for _ in range(4):
            batch = torch.ones(300 * 256).pin_memory()
            loss = net(batch.cuda().view(300, 256)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            del loss
            recorder.step()
    captures = [c for c in read_run(tmp_path)[0].captures if c.kind == "history"]
    snapshot = snapshot_of(captures[-1].tables)
    host = snapshot.device(HOST)
    assert host is not None
    assert host.active_bytes >= 300 * 256 * 4
    replay = Replay(snapshot, snapshot.devices[0])
    found = attribution(replay)
    annotated = found.evidence == EVIDENCE.index("annotated as a tensor")
    names = {CATEGORIES[code] for code in found.category[annotated].tolist()}
    assert {"grad", "activation"} <= names, "both were gone when the step ended"
    assert (replay.lives.gone[annotated] < replay.num_events).any()


def test_a_history_of_the_users_own_is_left_on(tmp_path):
    torch.cuda.memory._record_memory_history(max_entries=500)
    with mb.record(tmp_path, history=True) as recorder:
        for _ in range(4):
            kept = work()
            recorder.step()
    kept = work()
    traces = torch.cuda.memory._snapshot()["device_traces"]
    assert sum(map(len, traces)) > 0
    del kept


def test_looking_at_the_segments_often_leaves_pythons_own_objects_alone():
    """Where they can die (before Python 3.12), torch 2.13 takes one of False each time."""
    allocator = find_allocator("auto")
    kept = work()
    before = sys.getrefcount(False)
    for _ in range(500):
        assert allocator.segments()["segments"]
    assert sys.getrefcount(False) > before - 250
    del kept
