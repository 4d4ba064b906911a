"""What torch 2.14 added to snapshots: pinned host memory, annotations; and later keys."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memboard.collector.format.snapshots import tables_of
from memboard.collector.format.snapshots.tags import annotation_text, tag_text
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.snapshots.snapshot import HOST
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from memboard.tb_plugin.cli import main
from tests.builders import RunBuilder
from tests.made_snapshots import block, event, everything, frame, long_history, segment
from tests.pinned import PinnedMemory
from tests.simulate import Form
from tests.tb_plugin.pages.history_runs import asked_of, trained

MIB = 1 << 20
LOADER = [frame("pin", 9, "loader.py"), frame("main", 3)]
OFFLOAD = [frame("offload", 71, "offload.py"), frame("main", 4)]


def pinned() -> PinnedMemory:
    memory = PinnedMemory()
    batches = [memory.pin(3 * MIB, LOADER) for _ in range(3)]
    memory.pin(40 * MIB, OFFLOAD)
    memory.free(batches[0])
    memory.free(batches[1], waits=True)
    return memory


def report(capsys, folder, *options: str) -> str:
    assert main(["report", str(folder), *options]) == 0
    return str(capsys.readouterr().out)


def dumped(tmp_path, snapshot: object):
    (tmp_path / "memory_snapshot.pickle").write_bytes(pickle.dumps(snapshot, 4))
    return tmp_path


def test_pinned_memory_is_a_device_of_its_own_on_blocks(run):
    memory = pinned()
    snapshot = {**trained().snapshot(Form()), **memory.keys()}
    asked = asked_of(run, snapshot)
    facts = asked.opened()["facts"]
    titles = {one["device"]: one["title"] for one in facts["devices"]}
    assert titles == {0: "device 0", HOST: "pinned host memory"}
    assert facts["default_device"] == 0, "though more is pinned than the device has"
    live = asked.get("allocation_live", device=HOST)
    assert live["active_bytes"] == memory.peak_bytes == 76 * MIB
    assert live["reserved_bytes"] == 76 * MIB
    assert live["pinned_host_bytes"] is None, "it is not beside itself"
    stacks = asked.get("stacks")
    line = {
        int(at): stacks["strings"][stacks["name"][stacks["user_frame"][at]]]
        for at in live["stack"]
    }
    sizes = zip(live["stack"].tolist(), live["stack_bytes"].tolist(), strict=True)
    assert {line[at]: size for at, size in sizes} == {
        "offload": 64 * MIB,
        "pin": 12 * MIB,
    }
    keys = [entry["key"] for entry in live["ledger"]["entries"]]
    assert "non_torch" not in keys, "all that torch pins is known to torch"
    events = asked.get("allocator_events", device=HOST)
    assert events["num_events"] == len(memory.events)


def test_pinned_memory_stands_beside_a_device_and_in_none_of_its_figures(run, tmp_path):
    plain = trained().snapshot(Form())
    times = [one["time_us"] for one in plain["device_traces"][0]]
    memory = PinnedMemory(time_us=times[len(times) // 2])
    memory.pin(40 * MIB, OFFLOAD)
    memory.pin(3 * MIB, LOADER)
    with_it = asked_of(run, {**plain, **memory.keys()})
    without = asked_of(RunBuilder(tmp_path / "plain"), plain)
    for moment in (0, len(times) // 2 + 3, len(times) - 1):
        found, before = (
            one.get("allocation_live", device=0, moment=moment)
            for one in (with_it, without)
        )
        beside = found.pop("pinned_host_bytes")
        assert before.pop("pinned_host_bytes") is None, "not recorded is not zero"
        assert beside == (0 if moment == 0 else 68 * MIB)
        assert str(found) == str(before)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(("pin", "free", "wait")),
            st.integers(1, 1 << 24),
            st.booleans(),
        ),
        max_size=40,
    ),
    st.booleans(),
)
def test_figures_are_those_of_the_allocator_whatever_was_pinned(calls, is_nested):
    memory, held = PinnedMemory(), list[int]()
    for call, size, of_loader in calls:
        if call == "pin" or not held:
            held.append(memory.pin(size, LOADER if of_loader else OFFLOAD))
        else:
            memory.free(held.pop(size % len(held)), waits=call == "wait")
    keys = memory.keys()
    if is_nested:  # as a list for each device, like device_traces
        keys["host_traces"] = [keys["host_traces"]]
    snapshot = snapshot_of(tables_of({**everything(), **keys}))
    assert [one.device for one in snapshot.devices if not one.is_host] == [0, 1, 2]
    host = snapshot.device(HOST)
    assert (host is None) == (not calls)
    if host is not None:
        assert host.reserved_bytes == memory.reserved_bytes
        assert host.active_bytes == memory.active_bytes
        replay = Replay(snapshot, host)
        assert replay.active.peak[0] == memory.peak_bytes
        assert replay.reserved.levels.peak[0] == memory.reserved_bytes


def test_a_report_has_pinned_memory_by_line_apart_from_devices(tmp_path, capsys):
    memory, plain = pinned(), long_history(300)
    folder = dumped(tmp_path, {**plain, **memory.keys()})
    (found,) = json.loads(report(capsys, folder, "--json"))["runs"][0]["snapshots"]
    host = found["pinned_host_memory"]
    assert (host["reserved_bytes"], host["peak_active_bytes"]) == (76 * MIB, 76 * MIB)
    assert [(one["label"], one["bytes"]) for one in host["holders"]] == [
        ("offload.py:71 offload", 64 * MIB),
        ("loader.py:9 pin", 12 * MIB),
    ]
    dumped(tmp_path, plain)
    (before,) = json.loads(report(capsys, folder, "--json"))["runs"][0]["snapshots"]
    assert before["pinned_host_memory"] is None
    assert found["devices"] == before["devices"]
    dumped(tmp_path, {**plain, **memory.keys()})
    text = report(capsys, folder)
    assert "pinned host memory, which is no memory of a device" in text
    assert "offload.py:71 offload" in text


def test_a_snapshot_of_pinned_memory_alone_opens(tmp_path, capsys, run):
    memory = pinned()
    snapshot = {"segments": [], "device_traces": [], **memory.keys()}
    asked = asked_of(run, snapshot)
    assert asked.opened()["facts"]["default_device"] == HOST
    assert asked.get("allocation_live")["device"] == HOST
    text = report(capsys, dumped(tmp_path / run.folder.name, snapshot))
    assert "76.00 MiB active" in text


PLACES = {
    "": lambda made: [made],
    "segments[]": lambda made: made["segments"],
    "segments[].blocks[]": lambda made: [
        one for of in made["segments"] for one in of["blocks"]
    ],
    "device_traces[][]": lambda made: made["device_traces"][0],
    "host_traces[]": lambda made: made["host_traces"],
    "host_segments[]": lambda made: made["host_segments"],
    "external_annotations[]": lambda made: made["external_annotations"],
}
VALUES = st.one_of(
    st.integers(-(2**70), 2**70),
    st.text(max_size=5),
    st.booleans(),
    st.none(),
    st.lists(st.integers(0, 9), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=2),
)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([*PLACES]),
    st.from_regex(r"later_[a-z]{1,8}", fullmatch=True),
    VALUES,
)
def test_a_key_of_a_later_torch_is_named_and_changes_nothing_else(place, key, value):
    plain = {**long_history(200), **pinned().keys()}
    plain["external_annotations"] = everything()["external_annotations"]
    later: dict[str, Any] = pickle.loads(pickle.dumps(plain))
    for entry in PLACES[place](later):
        entry[key] = value
    before, after = (snapshot_of(tables_of(one)) for one in (plain, later))
    assert before.unread == ()
    assert after.unread == (f"{place}.{key}" if place else key,)
    for one, other in zip(before.devices, after.devices, strict=True):
        assert one.reserved_bytes == other.reserved_bytes
        assert Replay(before, one).active.peak == Replay(after, other).active.peak


def test_keys_that_are_not_read_are_named_on_the_page_and_in_the_report(
    tmp_path, capsys, run
):
    snapshot = {**long_history(200), "uvm_segments": [{"size": 7}]}
    (device,) = asked_of(run, snapshot).opened()["facts"]["devices"]
    assert any("uvm_segments" in note["text"] for note in device["notes"])
    folder = dumped(tmp_path / run.folder.name, snapshot)
    assert "not read: uvm_segments" in report(capsys, folder)
    found = json.loads(report(capsys, folder, "--json"))["runs"][0]["snapshots"]
    assert ["uvm_segments"] in [one["not_read"] for one in found]


def annotated() -> dict[str, Any]:
    """A step that annotates what is at an address, which is freed and used again."""
    base, step = 1 << 40, tag_text(step=7, phase="train", function="step")
    said = annotation_text("grad", "fc.weight.grad")
    trace = [
        event("segment_alloc", base, 4 * MIB, 1, frames=LOADER),
        event("alloc", base, MIB, 2, frames=OFFLOAD, user_metadata=step),
        event("annotate", base, MIB, 3, frames=[], user_metadata=said),
        event("alloc", base + MIB, MIB, 4, frames=OFFLOAD, user_metadata=step),
        event("annotate", base + MIB, MIB, 5, user_metadata="kv cache"),
        event("annotate", base + MIB, MIB, 6, user_metadata="layer 3"),
        event("free_requested", base, MIB, 7),
        event("free_completed", base, MIB, 8),
        event("alloc", base, 2 * MIB // 4, 9, frames=LOADER, user_metadata=step),
        event("annotate", base + 3 * MIB, 512, 10, user_metadata="nothing is here"),
    ]
    blocks = [
        block(base, MIB, requested_size=MIB // 2, frames=LOADER),
        block(base + MIB, MIB, requested_size=MIB, frames=OFFLOAD),
        block(base + 2 * MIB, 2 * MIB, "inactive", frames=[]),
    ]
    return {"segments": [segment(base, blocks)], "device_traces": [trace]}


@pytest.mark.parametrize("is_dict", [False, True])
def test_annotations_are_of_the_allocation_that_was_there(
    run, tmp_path, capsys, is_dict
):
    snapshot = annotated()
    if is_dict:  # as torch 2.15 takes them too
        snapshot["device_traces"][0][4]["user_metadata"] = {"kv": 1, "of": "cache"}
    first = "kv=1, of=cache" if is_dict else "kv cache"
    asked = asked_of(run, snapshot)
    cards = [asked.get("allocation_block", life=life) for life in range(3)]
    assert [one["annotations"] for one in cards] == [[], [first, "layer 3"], []]
    assert (cards[0]["category"], cards[0]["evidence"]) == (
        "grad",
        "annotated as a tensor",
    )
    assert cards[0]["tensor"] == "fc.weight.grad"
    assert cards[2]["evidence"] != "annotated as a tensor", (
        "another life at the address"
    )
    assert {one["born"]["step"] for one in cards} == {7}, "a tag stays what it was"
    folder = dumped(tmp_path / run.folder.name, snapshot)
    found = json.loads(report(capsys, folder, "--json"))["runs"][0]["snapshots"]
    (device,) = found[-1]["devices"]
    assert device["annotations"] == [{"text": "layer 3", "bytes": MIB, "num_blocks": 1}]
    assert "layer 3" in report(capsys, folder)
