"""`/segments`, `/segment_timeline` and `/allocator_events` against what a snapshot says."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from memboard.tb_plugin.api.memory.segments import ACTION_WORDS
from tests.builders import RunBuilder
from tests.simulate import Form, oom_case
from tests.tb_plugin.client import numbers_of, texts_of
from tests.tb_plugin.pages.history_runs import Asked, asked_of, trained


@pytest.fixture(scope="module")
def snapshot() -> dict[str, Any]:
    return trained().snapshot(Form())


@pytest.fixture
def asked(tmp_path, snapshot) -> Asked:
    return asked_of(RunBuilder(tmp_path / "exp"), snapshot)


def failed_rank(case: Any) -> dict[str, Any]:
    return case.snapshot(case.label.rank)


def test_the_last_moment_is_what_the_snapshot_itself_shows(asked, snapshot):
    found = asked.get("segments", moment=len(snapshot["device_traces"][0]) - 1)
    known = {segment["address"]: segment for segment in snapshot["segments"]}
    rows, blocks = found["segments"], found["blocks"]
    assert found["num_segments"] == len(known)
    assert sorted(rows["address"].tolist()) == sorted(known)
    assert found["reserved_bytes"] == sum(s["total_size"] for s in known.values())
    for row, address in enumerate(rows["address"].tolist()):
        first, count = int(rows["first_block"][row]), int(rows["num_blocks"][row])
        drawn = slice(first, first + count)
        assert blocks["size"][drawn].tolist() == [
            block["size"] for block in known[address]["blocks"]
        ]
        assert (blocks["state"][drawn] > 0).tolist() == [
            block["state"] != "inactive" for block in known[address]["blocks"]
        ]


def test_segments_are_filled_by_their_blocks_at_any_moment(asked):
    for moment in (-1, 0, 700, 1500, 2500):
        found = asked.get("segments", moment=moment)
        rows, size = found["segments"], found["blocks"]["size"]
        sums = [
            size[first : first + count].sum()
            for first, count in zip(
                rows["first_block"].tolist(), rows["num_blocks"].tolist(), strict=True
            )
        ]
        assert sums == rows["total_bytes"].tolist()
        parts = ("allocated_bytes", "pending_bytes", "free_bytes")
        assert sum(found[part] for part in parts) == found["reserved_bytes"]
        assert _free_bytes(found) == found["free_bytes"]


def _free_bytes(found) -> float:
    split, whole = (
        numbers_of(found["free_sizes"], f"{one}_bytes") for one in ("split", "whole")
    )
    return (split + whole).sum()


def test_segments_of_one_size_class(asked):
    small = asked.get("segments", moment=1500, size_class="small")
    large = asked.get("segments", moment=1500, size_class="large")
    assert {kind.split(" ")[0] for kind in small["kinds"]} == {"small"}
    assert {kind.split(" ")[0] for kind in large["kinds"]} == {"large"}
    everything = asked.get("segments", moment=1500)
    assert small["num_segments"] > 0
    assert (
        small["reserved_bytes"] + large["reserved_bytes"]
        == everything["reserved_bytes"]
    )


def test_what_is_free_and_pinned_is_of_the_segments_in_sight(asked):
    everything = asked.get("segments", moment=1500)
    parts = [
        asked.get("segments", moment=1500, size_class=one) for one in ("small", "large")
    ]
    for part in parts:
        assert _free_bytes(part) == part["free_bytes"]
        shown = set(part["segments"]["address"].tolist())
        assert set(part["pins"]["address"]) <= shown
        kept = numbers_of(part["pinners"], "alone_bytes").sum()
        assert kept <= part["pinned_bytes"] <= part["free_bytes"]
    pinned = [set(one["pins"]["address"]) for one in (everything, *parts)]
    assert pinned[0] == pinned[1] | pinned[2]
    assert all(pinned)


def test_lines_that_pin_are_each_listed_once(asked):
    pinners = asked.get("segments", moment=1500)["pinners"]
    found = numbers_of(pinners, "allocated_at").astype(int).tolist()
    stacks = asked.get("stacks")
    frames = [int(stacks["user_frame"][stack]) for stack in found if stack >= 0]
    named = [frame for frame in frames if frame >= 0]
    assert named
    assert len(named) == len(set(named))


def test_opens_at_the_error_and_says_what_was_in_the_way(tmp_path):
    case = oom_case("fragmented", 3)
    asked = asked_of(RunBuilder(tmp_path / "exp"), failed_rank(case))
    found = asked.get("segments")
    assert found["action"] == "oom"
    why = found["why"]
    figures = {one["name"]: one["bytes"] for one in why["figures"]}
    assert why["tone"] == "bad"
    assert why["sentence"].startswith("An allocation of ")
    assert " failed although " in why["sentence"]
    assert figures["Requested"] == found["action_bytes"]
    (hint,) = (one["hint"] for one in why["figures"] if one["name"] == "Requested")
    block_bytes = int(re.search(r"up to ([\d,]+) bytes", hint)[1].replace(",", ""))
    assert figures["Free for it"] > block_bytes > figures["Largest free block"]
    assert figures["Device had"] >= 0
    assert [one["name"] for one in why["figures"] if one["is_cause"]] == [
        "Largest free block"
    ]
    assert numbers_of(found["pinners"], "alone_bytes").sum() > 0
    # Whatever is freed: no segment of it is as long as the request.
    assert found["segments"]["total_bytes"].max() < block_bytes
    assert not len(why["lives"])
    assert why["more"][0].startswith("No segment that it may use is that large")
    assert why["culprit"] == numbers_of(found["pinners"], "allocated_at")[0]
    assert found["pins"]["text"][0].startswith("pinned by ")


def test_a_request_of_ones_own(asked):
    why = asked.get("segments", moment=1500, request=512)["why"]
    assert why["tone"] == "ok"
    assert why["sentence"].startswith("512 B fits: the largest free block is ")
    assert why["more"][0].endswith("is free for small requests on stream default.")
    huge = asked.get("segments", moment=1500, request=1 << 50)["why"]
    assert huge["tone"] == "bad"
    assert huge["sentence"].startswith("1024 TiB does not fit: ")
    assert huge["culprit"] == -1
    rest = asked.get("segments", moment=1500)["why"]
    assert rest["tone"] == "plain"
    assert " reserved is free, the largest block " in rest["sentence"]
    assert rest["more"][0].endswith(" from being returned.")
    assert "Requested" not in [one["name"] for one in rest["figures"]]


def test_the_blocks_in_the_way_of_a_request_are_named(asked):
    found = []
    for moment in range(0, 2700, 300):
        state = asked.get("segments", moment=moment)
        longest = int(state["segments"]["total_bytes"].max())
        blocks = state["blocks"]
        sizes = dict(zip(blocks["life"].tolist(), blocks["size"].tolist(), strict=True))
        why = asked.get("segments", moment=moment, request=longest)["why"]
        if why["tone"] == "ok":
            assert not len(why["lives"])
            continue
        held = [sizes[life] for life in why["lives"].tolist()]
        assert held == sorted(held, reverse=True) != []
        assert why["more"][0].startswith("Freeing ")
        assert why["more"][0].endswith("would make room for it.")
        found.append(moment)
    assert found


def test_the_timeline_adds_up_to_what_is_reserved(asked):
    for order in ("allocation", "category"):
        tile = asked.get("segment_timeline", px=300, order=order)["picture"]
        assert (
            tile["columns"]["active"].tolist() == tile["columns"]["reserved"].tolist()
        )
        assert tile["peak_bytes"] == tile["columns"]["reserved"].max()
        assert sum(group["bytes"] for group in tile["groups"]) == tile["peak_bytes"]


def test_events_are_those_of_the_trace(asked, snapshot):
    trace = snapshot["device_traces"][0]
    found = asked.get("allocator_events", e0=100, count=50)
    assert found["num_events"] == len(trace)
    table = found["table"]
    actions = next(c["hints"] for c in table["columns"] if c["key"] == "action")
    assert actions == [event["action"] for event in trace[100:150]]
    words = [ACTION_WORDS[event["action"]] for event in trace[100:150]]
    assert texts_of(table, "action") == words
    sizes = np.abs(numbers_of(table, "bytes")).tolist()
    assert sizes == [event["size"] for event in trace[100:150]]
    blocks = texts_of(table, "block")
    for row, event in enumerate(trace[100:150]):
        if event["action"] in ("alloc", "free_requested", "free_completed"):
            life = int(numbers_of(table, "life")[row])
            card = asked.get("allocation_block", life=life)
            assert int(card["address"], 16) == event["addr"]
            assert card["name"] == blocks[row]
        else:
            assert numbers_of(table, "life")[row] == -1


def test_events_behind_the_end_are_the_last_one(asked, snapshot):
    last = len(snapshot["device_traces"][0]) - 1
    found = asked.get("allocator_events", e0=10**8)
    assert found["e0"] == last
    assert found["table"]["num_rows"] == 1


def test_events_of_some_actions_are_a_list_of_their_own(asked, snapshot):
    trace = snapshot["device_traces"][0]
    wanted = ("segment_alloc", "segment_free")
    known = [row for row, event in enumerate(trace) if event["action"] in wanted]
    found = asked.get("allocator_events", actions=",".join(wanted), moment=known[3])
    assert found["num_events"] == len(trace)
    assert found["table"]["num_all"] == len(known)
    assert found["row_of_moment"] == 3
    assert numbers_of(found["table"], "event").tolist() == known[:200]
    later = asked.get("allocator_events", actions="free_completed", e0=40, count=5)
    freed = [row for row, one in enumerate(trace) if one["action"] == "free_completed"]
    assert numbers_of(later["table"], "event").tolist() == freed[40:45]
    for row, life in zip(
        freed[40:45], numbers_of(later["table"], "life").tolist(), strict=True
    ):
        card = asked.get("allocation_block", life=life)
        assert card["gone"]["moment"] == row


def test_events_of_an_action_that_never_was_are_none(asked):
    found = asked.get("allocator_events", actions="annotate")
    assert (found["table"]["num_rows"], found["table"]["num_all"]) == (0, 0)
    assert found["row_of_moment"] == -1
    assert found["table"]["empty"] == "None of these is in this history."


def test_bytes_of_events_have_the_sign_of_what_they_do(asked, snapshot):
    trace = snapshot["device_traces"][0]
    signs = {"alloc": 1, "free_completed": -1, "segment_alloc": 1, "segment_free": -1}
    for action, sign in signs.items():
        found = asked.get("allocator_events", actions=action, count=20)["table"]
        sizes = [event["size"] for event in trace if event["action"] == action][:20]
        assert numbers_of(found, "bytes").tolist() == [sign * size for size in sizes]
        assert set(texts_of(found, "unit")) <= {"change_bytes"}
    times = numbers_of(asked.get("allocator_events", count=3)["table"], "time_ms")
    began = trace[0]["time_us"]
    expected = [(event["time_us"] - began) / 1e3 for event in trace[:3]]
    assert times == pytest.approx(expected, abs=1e-3)


def test_blocks_have_the_category_of_their_card(asked):
    found = asked.get("segments", moment=1500)
    blocks, names = found["blocks"], found["categories"]
    free = blocks["life"] < 0
    assert (blocks["category"][free] == len(names)).all()
    lives = blocks["life"][~free][::37].tolist()
    for life, category in zip(lives, blocks["category"][~free][::37], strict=True):
        card = asked.get("allocation_block", life=life)
        assert card["category"] == names[category]["category"]
