"""Snapshots of the model have torch's structure."""

from __future__ import annotations

from itertools import pairwise

import pytest

from memboard.collector.format.snapshots import rebuilt, tables_of
from tests.simulate import Form, trained_rank
from tests.simulate.allocator.allocator import CachingAllocator
from tests.simulate.allocator.settings import GIB, MIB, parse_settings
from tests.simulate.allocator.stats import (
    ACTIVE,
    ALLOCATED,
    LARGE,
    REQUESTED,
    RESERVED,
    SMALL,
)
from tests.simulate.history.history import History
from tests.simulate.history.sites import Frame, Site, Sites
from tests.simulate.snapshots.events import snapshot
from tests.simulate.snapshots.stacks import TrainingSites, site_names

VERSIONS = ("2.1", "2.6", "2.11", "2.13")
EXPANDABLE = parse_settings("expandable_segments:True")


@pytest.fixture(scope="module", params=["plain", "expandable", "ring"])
def rank(request):
    return trained_rank(
        9000,
        seed=3,
        settings=EXPANDABLE if request.param == "expandable" else parse_settings(""),
        max_entries=2500 if request.param == "ring" else None,
        stacks="python" if request.param == "ring" else "all",
        graph_pool=True,
    )


KEYS = {
    "2.1": {"action", "addr", "size", "stream", "frames"},
    "2.6": {"action", "addr", "size", "stream", "time_us", "frames"},
}
KEYS["2.11"] = KEYS["2.6"] | {"compile_context", "user_metadata"}
KEYS["2.13"] = KEYS["2.11"] | {"pool_id"}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_keys_are_the_version_s(rank, version):
    found = rank.snapshot(Form(version))
    top = {"segments", "device_traces"}
    if version != "2.1":
        top |= {"allocator_settings", "external_annotations"}
    assert set(found) == top
    (trace,) = found["device_traces"]
    for event in trace:
        assert set(event) | {"frames"} == KEYS[version]
        assert list(event)[-1] == "frames" or "frames" not in event
    segment = found["segments"][0]
    assert list(segment) == [
        "device",
        "address",
        "total_size",
        "allocated_size",
        "active_size",
        "requested_size",
        "stream",
        "segment_type",
        "segment_pool_id",
        "is_expandable",
        "frames",
        "blocks",
    ]
    names = ["address", "size", "requested_size", "state", "frames"]
    assert all(list(b) == names for s in found["segments"] for b in s["blocks"])
    if version != "2.1":
        has_reuse = "graph_capture_record_stream_reuse" in found["allocator_settings"]
        assert has_reuse == (version != "2.6")
        assert list(found["allocator_settings"]["roundup_power2_divisions"])[-1] == (
            "32768"
        )


def test_segments_tile_and_add_up_to_the_statistics(rank):
    found = rank.snapshot(Form())
    stats = rank.allocator.stats
    segments = found["segments"]
    sums = {key: sum(s[key] for s in segments) for key in segments[0] if "_size" in key}
    assert sums == {
        "total_size": stats.get(RESERVED),
        "allocated_size": stats.get(ALLOCATED),
        "active_size": stats.get(ACTIVE),
        "requested_size": stats.get(REQUESTED),
    }
    for name, pool in (("small", SMALL), ("large", LARGE)):
        total = sum(s["total_size"] for s in segments if s["segment_type"] == name)
        assert total == stats.get(RESERVED, pool)
    addresses = [segment["address"] for segment in segments]
    assert addresses == sorted(addresses)
    for segment in segments:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at
            at += block["size"]
        assert at == segment["address"] + segment["total_size"]
    assert {segment["segment_pool_id"] for segment in segments} == {(0, 0), (0, 1)}
    assert len({segment["stream"] for segment in segments}) == 2


def test_lists_of_frames_are_shared_as_torch_shares_them():
    found = trained_rank(4000).snapshot(Form("2.6"))
    (trace,) = found["device_traces"]
    for before, event in pairwise(trace):
        pair = (before["action"], event["action"])
        if pair == ("segment_alloc", "alloc"):
            assert before["frames"] is event["frames"]
        if pair == ("free_requested", "free_completed"):
            same = before["addr"] == event["addr"]
            assert (before["frames"] is event["frames"]) == same
    allocs = [event for event in trace if event["action"] == "alloc"]
    assert len({id(event["frames"]) for event in allocs}) == len(allocs)
    live = {event["addr"]: event["frames"] for event in allocs}
    states = set()
    for segment in found["segments"]:
        for block in segment["blocks"]:
            states.add(block["state"])
            if block["state"] != "inactive":
                assert block["frames"] is live[block["address"]]
            else:
                assert block["frames"] == []
    # The side stream's gathered parameters await the default stream.
    assert states == {"active_allocated", "inactive"}
    empty = {
        id(b["frames"])
        for s in found["segments"]
        for b in (s, *s["blocks"])
        if not b["frames"]
    }
    assert len(empty) == 1


def test_several_devices_streams_and_pending_blocks():
    sites = Sites()
    allocators = [CachingAllocator(GIB, history=History()) for _ in range(2)]
    for place, allocator in enumerate(allocators):
        history = allocator.history
        assert history is not None
        history.site = sites.number(Site((Frame("f", "a.py", place),), "tag", "0/1"))
        block = allocator.allocate(30 * MIB, stream=1)
        allocator.record_stream(block, 0)
        allocator.free(block)
        history.annotate("START", f"step of {place}")
    allocators.append(CachingAllocator(GIB))  # a device without a history
    found = snapshot(allocators, sites)
    assert [len(trace) for trace in found["device_traces"]] == [3, 3, 0]
    for place, segment in enumerate(found["segments"]):
        (block,) = segment["blocks"]
        assert (segment["device"], block["state"]) == (place, "active_pending_free")
        assert segment["active_size"] == 30 * MIB > segment["allocated_size"] == 0
        assert block["frames"] == [{"name": "f", "filename": "a.py", "line": place}]
        event = found["device_traces"][place][-1]
        assert (event["compile_context"], event["user_metadata"]) == ("0/1", "tag")
        assert event["stream"] == segment["stream"] > 0
    names = [(row["device"], row["name"]) for row in found["external_annotations"]]
    assert names == [(0, "step of 0"), (1, "step of 1")]


def test_contexts_decide_which_events_have_frames():
    rank = trained_rank(3000)
    with_frames = {}
    for context in ("all", "alloc", "state"):
        found = rank.snapshot(Form("2.6", context))
        events = found["device_traces"][0]
        with_frames[context] = {e["action"] for e in events if "frames" in e}
        assert all(b["frames"] for s in found["segments"] for b in s["blocks"]) is False
        live = [b for s in found["segments"] for b in s["blocks"]]
        assert all(b["frames"] for b in live if b["state"] == "active_allocated")
    frees = {"free_requested", "free_completed"}
    assert with_frames["all"] == frees | {"alloc", "segment_alloc"}
    assert with_frames["alloc"] == {"alloc", "segment_alloc"}
    assert with_frames["state"] == set()


def test_an_oom_has_the_free_bytes_instead_of_an_address():
    sites = Sites()
    allocator = CachingAllocator(100 * MIB, history=History())
    with pytest.raises(Exception, match="bytes were asked for"):
        allocator.allocate(100 * MIB + 1)
    (event,) = snapshot([allocator], sites, Form("2.6"))["device_traces"][0]
    assert event["device_free"] == 100 * MIB
    assert event["size"] == 100 * MIB + 512
    assert "addr" not in event


def test_the_columnar_form_keeps_all_of_it(rank):
    found = rank.snapshot(Form())
    assert rebuilt(tables_of(found)) == found


def test_torch_s_own_commands_read_it(rank):
    viz = pytest.importorskip("torch.cuda._memory_viz")
    found = rank.snapshot(Form("2.6"))
    assert "TOTAL MEM" in viz.trace(found)
    assert "allocated" in viz.segsum(found)


@pytest.mark.parametrize("stacks", ["all", "python"])
def test_stacks_tell_the_lines_apart(stacks):
    sites = Sites()
    training = TrainingSites(sites, stacks)
    numbers = {name: training[name] for name in site_names()}
    frames = {name: sites[number].frames for name, number in numbers.items()}
    python = [name for name, found in frames.items() if found]
    assert len({frames[name] for name in python}) > 25
    with pytest.raises(KeyError):
        training["no such site"]
    # The engine's thread has no Python but for the sharding's hooks.
    assert bool(frames["gradient"]) == (stacks == "all")
    assert frames["reduce"]
