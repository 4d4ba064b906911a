"""Contradictions are counted; a sound history has none, even without its beginning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from collector.format.snapshots import tables_of
from tb_plugin.analysis.allocator.replay import Replay, oddities_of
from tb_plugin.analysis.snapshots.tables import snapshot_of
from tests.tb_plugin.analysis.snapshots import (
    INCONSISTENT,
    models,
    real,
    real_devices,
    replay_of,
)

BLOCK = {"address": 4096, "size": 512, "state": "active_allocated"}
FREE = {"address": 4608, "size": 1024, "state": "inactive"}
SEGMENT: dict[str, Any] = {
    "device": 0,
    "address": 4096,
    "total_size": 1536,
    "stream": 0,
}


def oddities(events=(), blocks=(BLOCK, FREE), **segment) -> dict[str, int]:
    trace = [
        {"stream": 0, "size": 512, "addr": addr, "action": action, "time_us": at}
        for at, (action, addr) in enumerate(events)
    ]
    segments = [{**SEGMENT, "blocks": list(blocks), **segment}]
    dump = {"segments": segments, "device_traces": [trace]}
    snapshot = snapshot_of(tables_of(dump))
    return dict(oddities_of(Replay(snapshot, snapshot.devices[0])))


def test_a_sound_history_has_none():
    assert oddities() == {}
    taken = [("segment_alloc", 4096), ("alloc", 4608), ("free_requested", 4608)]
    assert oddities([*taken, ("free_completed", 4608), ("alloc", 4096)][1:]) == {}
    # A free without an alloc is of memory from before: the beginning is lost.
    assert oddities([("free_requested", 4608), ("free_completed", 4608)]) == {}


@given(models)
def test_what_the_allocator_model_did_has_none(model):
    assert dict(oddities_of(replay_of(model))) == {}


@pytest.mark.parametrize(
    ("what", "made"),
    [
        ("blocks that overlap", {"blocks": (BLOCK, {**FREE, "address": 4352})}),
        ("blocks that reach out of their segment", {"total_size": 1024}),
        ("blocks that reach out of their segment", {"address": 4352}),
        (
            "allocations that were never freed and are missing at the end",
            {"events": [("alloc", 65536)]},
        ),
        (
            "allocations at an address that was still in use",
            {"events": [("alloc", 4096), ("alloc", 4096)]},
        ),
        (
            "frees of segments, or parts of them, that were not there",
            {"events": [("segment_free", 8192), ("segment_free", 8192)]},
        ),
        (
            "moments at which more memory was released to the device than was reserved",
            {"events": [("segment_alloc", 4096)] * 9},
        ),
        (
            "moments at which more memory was freed than was live",
            {"events": [("alloc", 4096)] * 3, "blocks": ()},
        ),
    ],
)
def test_each_contradiction_is_counted(what, made):
    assert oddities(**made)[what] >= 1


def test_segments_that_overlap_are_counted():
    second = {**SEGMENT, "address": 4608, "blocks": []}
    dump = {"segments": [{**SEGMENT, "blocks": []}, second], "device_traces": [[]]}
    snapshot = snapshot_of(tables_of(dump))
    (device,) = snapshot.devices
    assert oddities_of(Replay(snapshot, device)) == {"segments that overlap": 1}
    apart = replace(device.segments, address=device.segments.address * 4)
    sound = replace(device, segments=apart)
    assert oddities_of(Replay(snapshot, sound)) == {}


@pytest.mark.parametrize(("name", "place", "figures"), real_devices())
def test_recorded_snapshots_have_none(name, place, figures):
    if name not in INCONSISTENT:
        device = real(name).device(place)
        assert oddities_of(Replay(real(name), device)) == {}
