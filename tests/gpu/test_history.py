"""Captures of torch's own allocator: what goes in comes out, tagged and bounded.

With MEMBOARD_GPU_OUT set, small raw snapshots are left there as well.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

import collector
from collector.format.snapshots import rebuilt, tables_of
from collector.format.snapshots.tags import is_tag
from collector.history.allocator import find_allocator
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
    with collector.record(tmp_path, history=True) as recorder:
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


def test_a_history_of_the_users_own_is_left_on(tmp_path):
    torch.cuda.memory._record_memory_history(max_entries=500)
    with collector.record(tmp_path, history=True) as recorder:
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
