"""Snapshots that torch 2.6, 2.9, 2.13 to 2.15 wrote on the virtual GPU, read and replayed.

`record_snapshots` made them; the truth beside each is what torch's own counters said.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from memboard.tb_plugin.analysis.allocator.lifetimes import ACTIONS
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.categories.attribution import EVIDENCE, attribution
from memboard.tb_plugin.analysis.snapshots.snapshot import HOST, STATES
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from memboard.tb_plugin.worker.cache import ColumnCache
from memboard.tb_plugin.worker.importer import Importer
from memboard.tb_plugin.worker.limits import SNAPSHOT

RECORDED = Path(__file__).parent / "recorded"
FILES = sorted(RECORDED.glob("*.pickle.gz"))
MOST_BYTES = 60_000


@pytest.fixture(scope="module")
def importer(tmp_path_factory):
    made = Importer(ColumnCache(tmp_path_factory.mktemp("columns")))
    yield made
    made.close()


@pytest.fixture(params=FILES, ids=lambda path: path.name.partition(".pickle")[0])
def recorded(request, importer):
    """Kind, snapshot as the reader has it, and what torch counted."""
    path = request.param
    name = path.name.removesuffix(".pickle.gz")
    truth = json.loads((RECORDED / f"{name}.json").read_text())
    return name.partition("_")[2], snapshot_of(importer.tables(path, SNAPSHOT)), truth


def test_every_version_and_kind_is_there_and_small():
    names = {path.name.removesuffix(".pickle.gz") for path in FILES}
    assert names == {
        f"torch{version}_{kind}"
        for version in ("2.6", "2.9", "2.13", "2.15")
        for kind in ("training", "expandable", "native")
    } | {"torch2.14_pinned"}
    assert max(path.stat().st_size for path in FILES) < MOST_BYTES


def test_segments_and_blocks_are_what_torch_counted(recorded):
    kind, snapshot, truth = recorded
    device = snapshot.devices[0]
    blocks = device.blocks
    active = blocks.state != STATES.index("inactive")
    live = blocks.state == STATES.index("active_allocated")
    found = {
        "allocated_bytes": device.allocated_bytes,
        "active_bytes": device.active_bytes,
        "reserved_bytes": device.reserved_bytes,
        "requested_bytes": int(blocks.requested_size[active].sum()),
        "num_active": int(active.sum()),
        "num_allocation": int(live.sum()),
    }
    if kind != "expandable":
        # There a run of mapped pages is a segment, and torch counts what it reserved.
        found["num_segment"] = len(device.segments)
        found["inactive_split_bytes"] = _inactive_split(device)
    assert found == {name: truth[name] for name in found}
    assert snapshot.settings["expandable_segments"] == (kind == "expandable")


def test_events_are_what_torch_counted(recorded):
    kind, snapshot, truth = recorded
    device = snapshot.devices[0]
    actions = [ACTIONS[action] for action in device.events.action.tolist()]
    if kind == "native":
        assert len(actions) <= 120
        return
    replay = Replay(snapshot, device)
    found = {
        "num_allocs": actions.count("alloc"),
        "num_frees": actions.count("free_requested"),
        "num_ooms": actions.count("oom"),
        "peak_active_bytes": replay.active.peak[0],
        "peak_allocated_bytes": replay.allocated.peak[0],
    }
    assert found == {name: truth[name] for name in found}
    end = replay.at(replay.num_events - 1)
    assert end.reserved_bytes == truth["reserved_bytes"]


def test_pools_streams_and_stacks_are_read(recorded):
    kind, snapshot, _ = recorded
    device = snapshot.devices[0]
    allocs = device.events.action == ACTIONS.index("alloc")
    stacks = np.unique(device.events.stack[allocs]).tolist()
    names = {
        snapshot.stacks.name[frame]
        for stack in stacks
        for frame in snapshot.stacks.of(stack).tolist()
    }
    assert {"main", "programme", "annotated" if kind == "pinned" else "train"} <= names
    assert any("::" in name for name in names) == (kind == "native")
    if kind == "training":
        assert len(np.unique(device.segments.pool)) == 3, "one of a graph, one of ours"
    if kind in ("training", "expandable"):
        assert len(np.unique(device.segments.stream)) > 1
        assert (device.blocks.state == STATES.index("active_pending_free")).any()


def test_pinned_memory_is_what_torch_counted(recorded):
    kind, snapshot, truth = recorded
    host = snapshot.device(HOST)
    assert (host is not None) == (kind == "pinned"), "only where it was recorded"
    assert snapshot.unread == ()
    if host is None:
        return
    replay = Replay(snapshot, host)
    actions = [ACTIONS[action] for action in host.events.action.tolist()]
    assert {
        "pinned_reserved_bytes": host.reserved_bytes,
        "pinned_reserved_peak_bytes": replay.reserved.levels.peak[0],
        "pinned_active_bytes": host.active_bytes,
        "num_pinned_segments": len(host.segments),
        "num_pinned_allocs": actions.count("alloc"),
        "num_pinned_active": len(host.active_blocks().addr),
    }.items() <= truth.items()


def test_annotated_tensors_are_known_after_they_are_gone(recorded):
    kind, snapshot, _ = recorded
    if kind != "pinned":
        return
    device = snapshot.devices[0]
    replay = Replay(snapshot, device)
    found = attribution(replay)
    named = {EVIDENCE[row] for row in found.evidence.tolist()}
    assert "annotated as a tensor" in named
    cache = replay.annotations.life[-1]
    assert snapshot.texts[replay.annotations.text[-1]] == "kv cache, layer 3"
    assert replay.lives.size[cache] == 6 << 20
    assert replay.lives.gone[cache] < len(device.events), "it was freed again"


def _inactive_split(device) -> int:
    blocks = device.blocks
    per_segment = np.bincount(blocks.segment, minlength=len(device.segments))
    split = per_segment[blocks.segment] > 1
    return int(blocks.size[split & (blocks.state == STATES.index("inactive"))].sum())
