"""Contradictions are counted; a sound history has none, even without its beginning."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.analysis.allocator.replay import Replay, oddities_of
from memboard.tb_plugin.analysis.snapshots.snapshot import SnapshotError
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
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
            "blocks that are active at the end and were freed before",
            {"events": [("alloc", 4096), ("free_completed", 4096)]},
        ),
        (
            "allocations larger than their block at the end",
            {"events": [("alloc", 4096)], "blocks": ({**BLOCK, "size": 256},)},
        ),
        (
            "frees of what was free already",
            {"events": [("free_completed", 4608), ("free_completed", 4608)]},
        ),
    ],
)
def test_each_contradiction_is_counted(what, made):
    assert oddities(**made)[what] >= 1


@pytest.mark.parametrize(
    ("what", "segments"),
    [
        ("reaches into 0x1200", [SEGMENT, {**SEGMENT, "address": 4608}]),
        ("0x1000 stands twice", [SEGMENT, SEGMENT]),
        ("reaches into", [{**SEGMENT, "blocks": [BLOCK, {**FREE, "address": 4352}]}]),
        ("`total_size` is below 0", [{**SEGMENT, "total_size": -512}]),
        ("`size` is below 0", [{**SEGMENT, "blocks": [{**BLOCK, "size": -512}]}]),
        (
            "`requested_size` is below 0",
            [{**SEGMENT, "blocks": [{**BLOCK, "requested_size": -1}]}],
        ),
        ("no lists of blocks", "none"),
        ("no lists of blocks", [{**SEGMENT, "blocks": 7}]),
        ("none of its segments", [{**SEGMENT, "total_size": "large"}]),
        ("none of its segments", [{**SEGMENT, "address": None}]),
    ],
)
def test_memory_that_cannot_be_is_refused(what, segments):
    if isinstance(segments, list):
        segments = [{"blocks": [], **segment} for segment in segments]
    with pytest.raises(SnapshotError, match=what):
        snapshot_of(tables_of({"segments": segments, "device_traces": [[]]}))


def test_rows_of_another_type_are_left_out_and_counted():
    nan = float("nan")
    sound = {"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "time_us": 5}
    trace = [
        sound,
        {**sound, "size": nan},
        {**sound, "addr": "0x1000"},
        {**sound, "addr": 8192, "time_us": nan},
        {**sound, "addr": 8192, "action": "free_completed", "time_us": 9.0},
    ]
    segments = [
        {**SEGMENT, "blocks": [BLOCK, {**FREE, "size": None}]},
        {**SEGMENT, "address": 65536, "total_size": 1.5, "blocks": [BLOCK]},
    ]
    found = snapshot_of(tables_of({"segments": segments, "device_traces": [trace]}))
    assert found.left_out == {
        "events whose address or size is no whole number": 2,
        "segments without a whole number for address, size or device": 1,
        "blocks without a whole number for address or size": 1,
    }
    assert found.oddities == {"times that are no whole number": 1}
    (device,) = found.devices
    assert device.events.addr.tolist() == [4096, 8192, 8192]
    assert device.events.time_us is not None
    assert device.events.time_us.tolist() == [5, 5, 9]
    assert device.segments.address.tolist() == [4096]
    assert device.blocks.size.tolist() == [512]


def test_a_free_of_less_than_was_allocated_is_counted():
    taken = {"action": "alloc", "addr": 4608, "size": 1024, "stream": 0, "time_us": 1}
    freed = {**taken, "action": "free_requested", "size": 512}
    segments = [{**SEGMENT, "blocks": [BLOCK, FREE]}]
    dump = {"segments": segments, "device_traces": [[taken, freed]]}
    snapshot = snapshot_of(tables_of(dump))
    found = oddities_of(Replay(snapshot, snapshot.devices[0]))
    assert found == {"frees smaller than their allocation": 1}


@pytest.mark.parametrize(
    ("what", "block", "segment"),
    [
        ("states of blocks that are not known", {"state": "active_maybe"}, {}),
        ("states of blocks that are not known", {"state": None}, {}),
        ("segments that their blocks do not fill", {"size": 256}, {}),
        ("segments that their blocks do not fill", {}, {"blocks": []}),
        ("streams that are no whole number", {}, {"stream": "default"}),
        ("pools that are no two whole numbers", {}, {"segment_pool_id": "mine"}),
        ("pools that are no two whole numbers", {}, {"segment_pool_id": (0.5, 1)}),
    ],
)
def test_what_a_state_without_events_says_wrongly_is_counted(what, block, segment):
    other = {**SEGMENT, "address": 65536, "stream": 7, "segment_pool_id": (1, 2)}
    odd = {**SEGMENT, "segment_pool_id": (0, 0), "blocks": [{**BLOCK, **block}, FREE]}
    sound = {**other, "blocks": [{**BLOCK, "address": 65536, "size": 1536}]}
    dump = {"segments": [{**odd, **segment}, sound], "device_traces": [[]]}
    found = snapshot_of(tables_of(dump))
    assert found.oddities == {what: 1}
    # What the others say stays.
    row = found.devices[0].segments
    assert found.streams[row.stream[1]] == 7
    assert found.pools[row.pool[1]] == (1, 2)


@pytest.mark.parametrize("device", [-1, 1 << 40, 1000])
def test_a_segment_of_no_device_is_left_out_and_no_pinned_memory(device):
    sound = {**SEGMENT, "blocks": [BLOCK, FREE]}
    other = {**sound, "device": device, "address": 65536}
    dump = {"segments": [sound, other], "device_traces": [[]]}
    found = snapshot_of(tables_of(dump))
    assert sum(found.left_out.values()) == 1
    assert [one.device for one in found.devices] == [0]
    assert found.devices[0].reserved_bytes == 1536


@pytest.mark.parametrize("key", ["addr", "size"])
def test_an_event_without_address_or_size_is_left_out(key):
    event = {"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "time_us": 1}
    lacking = {name: value for name, value in event.items() if name != key}
    trace = [event, {**lacking, "action": "free_completed"}]
    segments = [{**SEGMENT, "blocks": [BLOCK, FREE]}]
    found = snapshot_of(tables_of({"segments": segments, "device_traces": [trace]}))
    assert sum(found.left_out.values()) == 1
    assert len(found.devices[0].events) == 1


def test_stacks_that_are_no_lists_of_frames_are_counted():
    event = {"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "time_us": 1}
    freed = {**event, "action": "free_completed", "frames": []}
    segments = [{**SEGMENT, "blocks": [BLOCK, FREE]}]
    trace = [{**event, "frames": 5}, freed]
    found = snapshot_of(tables_of({"segments": segments, "device_traces": [trace]}))
    assert found.oddities["stacks that are no lists of frames"] >= 1


def test_events_that_are_in_no_lists_are_left_out():
    dump = {"segments": [{**SEGMENT, "blocks": [BLOCK]}], "device_traces": [7]}
    found = snapshot_of(tables_of(dump))
    assert sum(found.left_out.values()) == 1
    assert len(found.devices[0].blocks) == 1


@pytest.mark.parametrize(("name", "place", "figures"), real_devices())
def test_recorded_snapshots_have_none(name, place, figures):
    if name not in INCONSISTENT:
        device = real(name).device(place)
        assert oddities_of(Replay(real(name), device)) == {}
