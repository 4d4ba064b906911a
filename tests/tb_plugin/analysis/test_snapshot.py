"""The tables of a snapshot as columns with types, against the dump they were made of."""

from __future__ import annotations

import copy
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.analysis.allocator.lifetimes import ACTIONS
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.snapshots.snapshot import (
    DEFAULT_POOL,
    STATES,
    Snapshot,
)
from memboard.tb_plugin.analysis.snapshots.tables import SnapshotError, snapshot_of
from tests.simulate import Form, trained_rank
from tests.simulate.allocator.settings import parse_settings
from tests.tb_plugin.analysis.snapshots import EXPECTED, pickled, real


def made_of(dump) -> Snapshot:
    return snapshot_of(tables_of(dump))


@pytest.fixture(scope="module", params=["2.1", "2.6", "2.13"])
def dump(request):
    rank = trained_rank(
        1500,
        settings=parse_settings("expandable_segments:True,roundup_power2_divisions:4"),
        max_entries=900,
        graph_pool=True,
    )
    found = rank.snapshot(Form(request.param))
    other = copy.deepcopy(found)
    for segment in other["segments"]:
        segment["device"] = 2
    found["segments"] = other["segments"] + found["segments"]
    found["device_traces"] += [[], other["device_traces"][0][:100]]
    return found


def frames_of(snapshot: Snapshot, stack: int) -> list[tuple[str, str, int]]:
    stacks = snapshot.stacks
    return [
        (stacks.name[f], stacks.filename[f], int(stacks.line[f]))
        for f in stacks.of(stack).tolist()
    ]


def told_frames(row) -> list[tuple[str, str, int]]:
    return [(f["name"], f["filename"], f["line"]) for f in row.get("frames", ())]


def meant(text: str | None) -> str | None:
    return None if text in (None, "", "N/A") else text


def test_events_are_those_of_the_dump(dump):
    found = made_of(dump)
    assert [device.device for device in found.devices] == [0, 2]
    assert found.device(1) is None
    for device in found.devices:
        events, trace = device.events, dump["device_traces"][device.device]
        assert len(events) == len(trace)
        assert (events.time_us is None) == ("time_us" not in trace[0])
        for row, event in enumerate(trace):
            assert ACTIONS[events.action[row]] == event["action"]
            assert events.addr[row] == event.get("addr", 0)
            assert events.size[row] == event["size"]
            assert found.streams[events.stream[row]] == event["stream"]
            if events.time_us is not None:
                assert events.time_us[row] == event["time_us"]
            assert frames_of(found, int(events.stack[row])) == told_frames(event)
            for column, key in (
                (events.tag, "user_metadata"),
                (events.compile_context, "compile_context"),
            ):
                text = None if column[row] < 0 else found.texts[column[row]]
                assert text == meant(event.get(key))
            pool = None if events.pool[row] < 0 else found.pools[events.pool[row]]
            assert pool == event.get("pool_id")
            assert events.device_free[row] == event.get("device_free", NOTHING)


def test_segments_and_blocks_are_those_of_the_dump_by_address(dump):
    found = made_of(dump)
    for device in found.devices:
        own = [s for s in dump["segments"] if s["device"] == device.device]
        own.sort(key=lambda segment: segment["address"])
        segments, blocks = device.segments, device.blocks
        assert len(segments) == len(own)
        rows = [(row, b) for row, s in enumerate(own) for b in s["blocks"]]
        assert len(blocks) == len(rows)
        for row, segment in enumerate(own):
            assert segments.address[row] == segment["address"]
            assert segments.total_size[row] == segment["total_size"]
            assert found.streams[segments.stream[row]] == segment["stream"]
            assert found.pools[segments.pool[row]] == segment["segment_pool_id"]
            assert segments.is_large[row] == (segment["segment_type"] == "large")
            assert segments.is_expandable[row] == segment["is_expandable"]
            assert frames_of(found, int(segments.stack[row])) == told_frames(segment)
        for place, (row, block) in enumerate(rows):
            assert blocks.segment[place] == row
            assert blocks.address[place] == block["address"]
            assert blocks.size[place] == block["size"]
            assert blocks.requested_size[place] == min(
                block["requested_size"], block["size"]
            )
            assert STATES[blocks.state[place]] == block["state"]
            assert frames_of(found, int(blocks.stack[place])) == told_frames(block)
        assert device.reserved_bytes == sum(s["total_size"] for s in own)
        assert device.active_bytes == sum(s["active_size"] for s in own)
        assert device.allocated_bytes == sum(s["allocated_size"] for s in own)
        active = device.active_blocks()
        assert int(active.size.sum()) == device.active_bytes
        assert int(active.size[active.is_allocated].sum()) == device.allocated_bytes
    assert found.pools[0] == DEFAULT_POOL
    assert found.streams[0] == 0


def test_settings_and_annotations_are_those_of_the_dump(dump):
    found = made_of(dump)
    assert dict(found.settings) == dump.get("allocator_settings", {})
    notes = sorted(
        dump.get("external_annotations", ()), key=lambda note: note["time_us"]
    )
    told = found.annotations
    assert list(told.name) == [note["name"] for note in notes]
    assert told.time_us.tolist() == [note["time_us"] for note in notes]
    assert told.is_start.tolist() == [note["stage"] == "START" for note in notes]
    assert told.device.tolist() == [note["device"] for note in notes]
    assert found.tensors is None


def event(**more):
    return {"action": "alloc", "addr": 512, "size": 5, "stream": 0, **more}


def test_what_no_memory_can_have_is_set_right_and_counted():
    found = made_of(
        {
            "segments": [],
            "device_traces": [
                [
                    event(time_us=5),
                    event(time_us=3, size=-1),
                    event(time_us=4, size=1 << 60),
                    event(time_us=6, action="dance"),
                    event(time_us=7, addr=2**64 - 512),
                ]
            ],
        }
    )
    events = found.devices[0].events
    assert events.size.tolist() == [5, 0, 0, 5, 5]
    assert events.action.tolist() == [0, 0, 0, -1, 0]
    assert events.addr[-1] == -512
    assert found.oddities == {
        "actions that are not known": 1,
        "sizes that no memory has": 2,
        "times that go back": 1,
    }


def test_a_snapshot_of_torch_2_0_has_addresses_and_stacks():
    frames = [{"name": "allocate", "filename": "/me/backend.py", "line": 190}]
    used = {"addr": 1, "real_size": 700, "frames": frames}
    blocks = [
        {"size": 1024, "state": "active_allocated", "history": [used]},
        {"size": 512, "state": "active_pending_free", "history": [dict(used)]},
        {"size": 512, "state": "inactive"},
        {"size": 2048, "state": "active_awaiting_free", "history": ["nonsense"]},
    ]
    segments = [
        {
            "device": 0,
            "address": address,
            "total_size": 4096,
            "stream": 0,
            "segment_type": "small",
            "blocks": blocks,
        }
        for address in (1 << 30, 1 << 20)
    ]
    found = made_of(segments)
    table = found.devices[0].blocks
    offsets = [0, 1024, 1536, 2048]
    assert table.address.tolist() == [
        base + offset for base in (1 << 20, 1 << 30) for offset in offsets
    ]
    assert table.requested_size.tolist() == [700, 512, 512, 2048] * 2
    assert [STATES[state] for state in table.state[:4]] == [
        "active_allocated",
        "active_pending_free",
        "inactive",
        "active_pending_free",
    ]
    told = [frames_of(found, int(stack)) for stack in table.stack[:4]]
    assert told == [[("allocate", "/me/backend.py", 190)]] * 2 + [[]] * 2
    assert table.stack[0] == table.stack[1]


def test_tensors_that_the_training_knew():
    tables = {key: dict(table) for key, table in tables_of({"segments": []}).items()}
    tables["tensors"] = {
        "address": np.array([512, 1024]),
        "num_bytes": np.array([7, 8]),
        "category": np.array([2, 99]),
        "name": ("weight", "bias"),
        "device": np.array([0, 1]),
    }
    found = snapshot_of(tables).tensors
    assert [CATEGORIES[code] for code in found.category] == ["unsharded_param", "other"]
    assert list(found.name) == ["weight", "bias"]
    assert found.device.tolist() == [0, 1]
    tables["tensors"]["name"] = ("one",)
    del tables["tensors"]["device"]
    found = snapshot_of(tables).tensors
    assert list(found.name) == ["", ""]
    assert found.device.tolist() == [NOTHING, NOTHING]


def changed(table: str, column: str, values) -> dict:
    frames = [{"name": "f", "filename": "f.py", "line": 1}]
    segment = {
        "device": 0,
        "address": 512,
        "total_size": 512,
        "stream": 0,
        "blocks": [{"address": 512, "size": 512, "state": "inactive"}],
    }
    dump = {"segments": [segment], "device_traces": [[event(frames=frames)]]}
    tables = {key: dict(table) for key, table in tables_of(dump).items()}
    tables[table][column] = values
    return tables


@pytest.mark.parametrize(
    ("table", "column", "values"),
    [
        ("stacks", "num_frames", np.array([9])),
        ("stacks", "num_frames", np.array([-1])),
        ("stack_frames", "frame", np.array([4])),
        ("stack_frames", "frame", np.array([-1])),
        ("blocks", "segment", np.array([3])),
        ("blocks", "segment", np.array([-1])),
        ("events", "device", np.array([-1])),
        ("events", "size", np.array([1, 2, 3])),
        ("events", "size", np.array([0.5])),
        ("events", "size", ("text",)),
        ("frames", "name", np.array([[1]])),
        ("strings", "text", np.array([1])),
    ],
)
def test_tables_that_contradict_themselves_are_refused(table, column, values):
    with pytest.raises(SnapshotError):
        snapshot_of(changed(table, column, values))


def test_what_reaches_beyond_all_addresses_has_no_size():
    tables = changed("segments", "address", np.array([2**63 - 512]))
    found = snapshot_of(tables)
    assert found.oddities["sizes that no memory has"] >= 1
    for device in found.devices:
        ends = device.segments.address + device.segments.total_size
        assert (ends >= device.segments.address).all()
        # Every analysis that looks up addresses rests on that.
        assert len(Replay(found, device).span) == len(Replay(found, device).lives)


def test_lines_are_those_that_a_page_can_hold():
    found = snapshot_of(changed("frames", "line", np.array([2**62])))
    assert set(found.stacks.line.tolist()) == {2**31 - 1}


def test_more_devices_than_there_are_is_refused():
    with pytest.raises(SnapshotError, match="300 devices"):
        made_of({"segments": [], "device_traces": [[event()] for _ in range(300)]})


def test_stacks_that_are_not_there_are_none():
    found = snapshot_of(changed("events", "frames", np.array([77])))
    assert found.devices[0].events.stack.tolist() == [NOTHING]
    assert found.oddities == {"stacks that are not there": 1}


def test_nothing_at_all_is_a_snapshot_without_devices():
    assert made_of({}).devices == ()
    assert made_of([]).devices == ()
    assert snapshot_of({}).devices == ()


@given(st.data())
def test_whatever_a_column_holds_it_is_refused_or_read(data):
    table = data.draw(
        st.sampled_from(["events", "blocks", "segments", "stacks", "frames"])
    )
    tables = changed("events", "size", np.array([5]))
    column = data.draw(st.sampled_from(sorted(tables[table])))
    value = data.draw(
        st.one_of(
            st.integers(-(2**63), 2**63 - 1).map(lambda n: np.array([n])),
            st.floats().map(lambda n: np.array([n])),
            st.text().map(lambda text: (text,)),
            st.just(np.empty(0, np.int64)),
        )
    )
    tables[table][column] = value
    with suppress(SnapshotError):
        assert snapshot_of(tables).oddities is not None


_NOT_FILLED = ("Da1sypetals+SnapViewer__assets__memory.pickle",)
"""Made by hand: segments of 50 MB with blocks of some kB."""


@pytest.mark.parametrize("name", EXPECTED)
def test_recorded_snapshots_are_read_whole(name):
    found, dump = real(name), pickled(name)
    root = dump if isinstance(dump, dict) else {"segments": dump}
    assert bool(found.oddities) == (name in _NOT_FILLED)
    assert sum(len(d.segments) for d in found.devices) == len(root["segments"])
    events = sum(len(trace) for trace in root.get("device_traces", ()))
    assert sum(len(d.events) for d in found.devices) == events
    assert dict(found.settings) == root.get("allocator_settings", {})
