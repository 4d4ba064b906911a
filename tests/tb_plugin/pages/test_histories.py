"""Routes `/histories` and `/history`: what there is, opening it, and what cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.collector.format.snapshots import tables_of
from memboard.collector.format.snapshots.tags import tag_text
from tests.builders import START_NS, flip_bit
from tests.simulate import Form, oom_case
from tests.tb_plugin.client import refresh
from tests.tb_plugin.pages.history_runs import (
    Asked,
    Slow,
    asked_of,
    captured,
    dropped,
    trained,
)

FORM = Form()


@pytest.fixture
def snapshot():
    return trained().snapshot(FORM)


def test_captures_and_files_are_listed_by_time_with_what_took_them(run, snapshot):
    tables = tables_of(snapshot)
    rank = run.rank(2, world_size=4)
    made = [
        {"function": "step", "iteration": 3, "context": "start"},
        {"function": "", "iteration": 0, "label": "before eval"},
        {"function": "", "iteration": 0, "label": "oom"},
        {"function": "", "iteration": 0, "label": "oom", "context": "oom"},
        {"function": "", "iteration": 0, "label": "signal", "context": "signal"},
    ]
    for number, fields in enumerate(made):
        rank.capture(
            "history", tables=tables, time_ns=START_NS + number * 10**6, **fields
        )
    rank.capture("modules", time_ns=START_NS)
    rank.close()
    captured(run, snapshot, rank=0, time_ns=START_NS + 10**7)
    asked = Asked(run.folder.parent)
    found = asked.histories()
    assert [one["origin"] for one in found["histories"]] == [
        "call",
        "by_hand",
        "by_hand",
        "oom",
        "signal",
        "by_hand",
    ]
    assert found["num_histories"] == 6
    assert found["ranks"] == [0, 2]
    references = [one["reference"] for one in found["histories"]]
    assert found["default"] == references[3]["id"]
    assert references[0]["context"] == "start"
    assert references[3]["context"] == ""
    assert references[1]["label"] == "before eval"
    assert {one["state"] for one in found["histories"]} == {"closed"}
    assert not found["still_reading"]
    one_rank = asked.histories(rank=0)
    assert [one["reference"]["rank"] for one in one_rank["histories"]] == [0]
    assert one_rank["ranks"] == [0, 2]


def test_what_an_open_history_says_is_what_the_snapshot_holds(run, snapshot):
    asked = asked_of(run, snapshot)
    found = asked.opened()
    assert found["progress"] == 1
    assert found["problem"] is None
    facts = found["facts"]
    (device,) = facts["devices"]
    slow = Slow(snapshot)
    trace = snapshot["device_traces"][0]
    assert device["num_events"] == len(trace)
    assert device["num_allocations"] == sum(e["action"] == "alloc" for e in trace)
    assert device["first_ms"] == trace[0]["time_us"] / 1e3
    assert device["last_ms"] == trace[-1]["time_us"] / 1e3
    assert device["capacity_bytes"] == 80 * 2**30
    assert device["num_before"] == device["num_lost"] == 0
    blocks = [b for s in snapshot["segments"] for b in s["blocks"]]
    active = sum(b["size"] for b in blocks if b["state"] != "inactive")
    assert device["active_bytes"] == active
    reserved = sum(s["total_size"] for s in snapshot["segments"])
    assert device["reserved_bytes"] == reserved
    peaks = {peak["level"]: peak for peak in device["peaks"]}
    peak_moment = int(np.argmax(slow.active))
    assert peaks["active"]["moment"] == peak_moment
    assert peaks["active"]["bytes"] == slow.active[peak_moment]
    rounding_bytes = slow.active[peak_moment] - slow.level[peak_moment]
    assert device["rounding_bytes"] == rounding_bytes
    assert peaks["reserved"]["bytes"] >= reserved
    assert {setting["name"] for setting in facts["settings"]} >= {"max_split_size"}


def test_the_curve_keeps_every_peak(run, snapshot):
    asked = asked_of(run, snapshot)
    (device,) = asked.opened()["facts"]["devices"]
    curve, slow = device["curve"], Slow(snapshot)
    starts = curve["event"].tolist()
    assert len(starts) == 2000
    for start, stop, peak, active in zip(
        starts,
        [*starts[1:], slow.num_events],
        curve["peak"],
        curve["active"],
        strict=True,
    ):
        inside = slow.active[start:stop]
        assert active == inside.max()
        assert slow.active[peak] == inside.max()
    assert (curve["reserved"] >= curve["allocated"]).all()
    assert (curve["active"] >= curve["allocated"]).all()
    assert curve["reserved"].max() == device["peaks"][2]["bytes"]


def test_errors_spans_and_steps_are_marked(run):
    case = oom_case("really_full", 3)
    rank = case.ranks[0]
    asked = asked_of(run, rank.snapshot(FORM))
    facts = asked.opened()["facts"]
    (device,) = facts["devices"]
    marks = device["marks"]
    kinds = [marks["kinds"][kind] for kind in marks["kind"]]
    assert marks["num_marks"] == len(kinds)
    at = kinds.index("oom")
    moment = int(marks["moment"][at])
    event = rank.snapshot(FORM)["device_traces"][0][moment]
    assert event["action"] == "oom"
    assert marks["bytes"][at] == event["size"]
    assert marks["device_free"][at] == event["device_free"]
    names = {marks["labels"][label] for label in marks["label"]}
    assert {"out of memory", "ProfilerStep#1", "step 1"} <= names
    spans = np.isin(kinds, ["annotation", "step"])
    assert (marks["end"][spans] >= marks["moment"][spans]).all()
    assert np.isnan(marks["bytes"][spans]).all()
    first = [
        number
        for number, kind in enumerate(kinds)
        if kind == "step" and marks["step"][number] == 1
    ]
    assert len(first) == 1
    assert (np.diff(marks["moment"]) >= 0).all()


def test_tags_of_ours_are_steps_and_the_programs_own_are_marks(run):
    def tagged(number):
        if number < 20:
            return "the user's own"
        return tag_text(step=number // 20, phase="train", function="step")

    snapshot = trained(1000).snapshot(FORM)
    trace = snapshot["device_traces"][0]
    trace[:] = [
        {**event, "user_metadata": tagged(number) if event["action"] == "alloc" else ""}
        for number, event in enumerate(trace)
    ]
    del snapshot["external_annotations"][:]
    asked = asked_of(run, snapshot)
    (device,) = asked.opened()["facts"]["devices"]
    marks = device["marks"]
    kinds = [marks["kinds"][kind] for kind in marks["kind"]]
    labels = [marks["labels"][label] for label in marks["label"]]
    assert [
        label for kind, label in zip(kinds, labels, strict=True) if kind == "tag"
    ] == ["the user's own"]
    assert "step 3" in labels
    live = asked.get("allocation_live", moment=70)
    assert live["step"] == 3
    assert live["phase"] == "train"
    life = asked.get("allocations", e0=0, e1=10)["lives"]["life"][0]
    assert asked.get("allocation_block", life=int(life))["tag"] == "the user's own"


def test_of_very_many_marks_the_errors_and_the_longest_are_kept(run):
    snapshot = trained(1000).snapshot(FORM)
    trace = snapshot["device_traces"][0]
    start, end = trace[0]["time_us"], trace[-1]["time_us"]
    named = [
        ("whole", start, end),
        *((f"n{i}", start + 1, start + 2) for i in range(5000)),
    ]
    snapshot["external_annotations"][:] = [
        {"stage": stage, "name": name, "device": 0, "time_us": at}
        for name, first, last in named
        for stage, at in (("START", first), ("END", last))
    ]
    trace.append(
        {"action": "oom", "size": 5, "stream": 0, "device_free": 7, "time_us": end}
    )
    (device,) = asked_of(run, snapshot).opened()["facts"]["devices"]
    marks = device["marks"]
    assert len(marks["moment"]) == 2000
    assert marks["num_marks"] > 5000
    labels = {marks["labels"][label] for label in marks["label"]}
    assert {"whole", "out of memory"} <= labels


@pytest.mark.parametrize("route", ["allocations", "segment_timeline"])
def test_the_marks_of_many_steps_are_spread_and_a_tile_has_all_of_its_own(run, route):
    """5,000 steps of two events each, and of an axis of events or of time."""
    snapshot = trained(10_000).snapshot(FORM)
    trace = snapshot["device_traces"][0]
    trace[:] = [
        {
            **event,
            "user_metadata": tag_text(step=number // 2, phase="", function="step"),
        }
        for number, event in enumerate(trace)
    ]
    del snapshot["external_annotations"][:]
    asked = asked_of(run, snapshot)
    (device,) = asked.opened()["facts"]["devices"]
    marks, num_events = device["marks"], device["num_events"]
    assert marks["num_marks"] >= 5000
    assert len(marks["moment"]) == 2000
    gaps = np.diff(marks["moment"], prepend=0, append=num_events)
    assert gaps.max() <= num_events / 100

    def tile(**window):
        found = asked.get(route, px=300, **window)
        return found.get("picture", found)["marks"]

    e0 = num_events - 400
    part = tile(e0=e0)
    labels = {part["labels"][label] for label in part["label"]} - {"snapshot"}
    steps = range((e0 - 1) // 2, (num_events + 1) // 2)
    assert labels == {f"step {step}" for step in steps}
    first, last = (device[at] - device["first_ms"] for at in ("first_ms", "last_ms"))
    timed = tile(axis="time", t0=first, t1=last / 2)
    assert len(timed["moment"]) == 600
    assert timed["num_marks"] == marks["num_marks"]
    whole = tile()
    assert len(whole["moment"]) == 600
    assert np.diff(whole["moment"], append=num_events).max() <= num_events / 50


@pytest.mark.parametrize("route", ["allocations", "stacks", "allocation_live"])
def test_what_cannot_be_read_says_so_and_harms_nothing_else(tmp_path, snapshot, route):
    dropped(tmp_path / "job", "snapshot_rank0.pickle", snapshot)
    bad = tmp_path / "job" / "snapshot_rank1.pickle"
    good = (tmp_path / "job" / "snapshot_rank0.pickle").read_bytes()
    bad.write_bytes(good[: len(good) // 2])
    asked = Asked(tmp_path, "job")
    ids = {
        one["reference"]["rank"]: one["reference"]["id"]
        for one in asked.histories()["histories"]
    }
    asked.history = ids[1]
    found = asked.opened()
    assert found["state"] == "failed"
    assert found["facts"] is None
    assert "snapshot_rank1.pickle" in found["problem"]["path"]
    assert found["problem"]["remedy"]
    response = asked.raw(route)
    assert response.status_code == 422
    assert "snapshot_rank1.pickle" in response.get_json()["where"]
    failed = [one for one in asked.histories()["histories"] if one["state"] == "failed"]
    assert [one["reference"]["id"] for one in failed] == [ids[1]]
    assert failed[0]["problem"] == found["problem"]["what"]
    asked.history = ids[0]
    assert asked.opened()["state"] == "ready"


def test_a_damaged_capture_is_among_the_problems_of_its_run(run, snapshot):
    rank = run.rank(0, world_size=1)
    entry = rank.capture("history", "", iteration=0, tables=tables_of(snapshot))
    rank.close()
    flip_bit(rank.path, entry.offset + entry.num_bytes // 2)
    asked = Asked(run.folder.parent, history=f"0-{rank.header.attempt}-{entry.offset}")
    found = asked.opened()
    assert found["state"] == "failed"
    assert found["problem"]["path"].endswith(rank.path.name)
    refresh(asked.page)
    problems = asked.histories()["problems"]
    assert any(one["path"] == found["problem"]["path"] for one in problems)


@pytest.mark.parametrize(
    "history",
    ["", "nothing", "f0123456789abcdef", "0-x-17", "../../etc/passwd", "9-9-9" * 30],
)
def test_ids_that_are_nobodys_are_refused(run, snapshot, history):
    captured(run, snapshot)
    asked = Asked(run.folder.parent)
    asked.history = history
    if not history:  # the default one
        assert asked.opened()["state"] == "ready"
        return
    for route in ("history", "allocations"):
        response = asked.raw(route)
        assert response.status_code == 404
        assert response.get_json()["where"] == "exp"
    assert asked.page.raw("/histories", run="none").status_code == 404


HOSTILE = [
    {"events": {"action": np.zeros(3, np.int64)}},
    {"strings": {"text": ("alloc",)}, "events": {"action": np.zeros((3,), np.int64)}},
    {
        "frames": {"name": np.zeros(2, np.int64)},
        "stacks": {"num_frames": np.array([-5])},
    },
    {"stacks": {"num_frames": np.array([2**40])}, "stack_frames": {}},
    {"blocks": {"segment": np.array([7]), "size": np.array([1])}},
    {"strings": {"text": np.array([1])}},
]


@pytest.mark.parametrize("tables", HOSTILE)
def test_tables_that_contradict_are_refused_or_set_right(run, tables):
    rank = run.rank(0, world_size=1)
    entry = rank.capture("history", "", iteration=0, tables=tables)
    rank.close()
    asked = Asked(run.folder.parent, history=f"0-{rank.header.attempt}-{entry.offset}")
    found = asked.opened()
    assert found["state"] in ("ready", "failed")
    if found["state"] == "failed":
        assert found["problem"]["what"].endswith(".")
        assert asked.raw("allocations").status_code == 422
    else:
        assert asked.raw("allocations").status_code in (200, 404)


def test_a_trace_that_makes_no_sense_is_drawn_and_counted(run, snapshot):
    trace = snapshot["device_traces"][0]
    trace = [dict(event) for event in trace]
    rng = np.random.default_rng(0)
    for event in trace:
        if rng.random() < 0.1:
            event["size"] = -5
        if rng.random() < 0.1:
            event["time_us"] -= 10**9
        if rng.random() < 0.2:
            event["action"] = str(rng.choice(["free_completed", "alloc", "teleport"]))
    asked = asked_of(run, {**snapshot, "device_traces": [trace]})
    (device,) = asked.opened()["facts"]["devices"]
    said = " ".join(note["text"] for note in device["notes"] if note["warns"])
    for odd in (
        "sizes that no memory has",
        "times that go back",
        "actions that are not known",
        "allocations that were never freed and are missing at the end",
    ):
        assert odd in said
    for query in ({}, {"axis": "time"}, {"order": "allocation", "colour": "age"}):
        tile = asked.get("allocations", **query)
        held = asked.get("allocation_holders", **query)
        changes = np.zeros(len(held["moment"]))
        np.add.at(changes, held["column"], held["change"])
        assert (changes.cumsum() == tile["columns"]["active"]).all()


def test_one_file_of_two_names_is_shown_by_the_one_that_was_asked_for(
    tmp_path, snapshot
):
    dropped(tmp_path / "a", "snapshot_rank1.pickle", snapshot)
    (tmp_path / "b").mkdir()
    other = tmp_path / "b" / "snapshot_rank2.pickle"
    other.hardlink_to(tmp_path / "a" / "snapshot_rank1.pickle")
    asked = Asked(tmp_path, "a")
    assert asked.opened()["reference"]["rank"] == 1
    asked.run, asked.history = asked.page.run_id("b"), None
    found = asked.opened()
    assert found["state"] == "ready"
    assert found["reference"]["rank"] == 2
    assert found["reference"]["path"] == "b/snapshot_rank2.pickle"
