"""Routes of the Allocations view: against brute force, and what wrong questions get."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.simulate import Form
from tests.tb_plugin.client import numbers_of
from tests.tb_plugin.pages.history_runs import Slow, asked_of, painted, trained

FORM = Form()


@pytest.fixture
def snapshot():
    return trained().snapshot(FORM)


@pytest.fixture
def asked(run, snapshot):
    return asked_of(run, snapshot)


@pytest.mark.parametrize("order", ["allocation", "category", "group"])
@pytest.mark.parametrize(
    "window", [{}, {"e0": 100, "e1": 160}, {"e0": 1000, "e1": 3000}]
)
def test_a_tile_shows_at_each_column_what_lives_there(asked, snapshot, order, window):
    slow = Slow(snapshot)
    tile = asked.get(
        "allocations", order=order, colour="stack", px=50, rows=8000, **window
    )
    columns, lives = tile["columns"], tile["lives"]
    edges = columns["edge"]
    assert len(edges) == len(columns["moment"]) + 1
    assert edges[0] == window.get("e0", 0)
    assert edges[-1] == window.get("e1", slow.num_events)
    for number, moment in enumerate(columns["moment"]):
        inside = slow.active[int(edges[number]) : int(edges[number + 1])]
        assert slow.active[moment] == inside.max()
        assert columns["active"][number] == slow.level[moment]
    assert tile["peak_bytes"] == slow.active.max()
    assert tile["top_bytes"] == slow.active[columns["moment"]].max()
    bands = tile["band_bytes"].reshape(-1, len(columns["moment"]))
    rest = tile["rest"].reshape(bands.shape)
    assert (bands.sum(axis=0) == columns["active"]).all()
    born_at = {int(born): place for place, born in enumerate(lives["born"])}
    heights = painted(tile)
    for number, moment in enumerate(columns["moment"]):
        drawn = {life for life, column in heights if column == number}
        expected = {
            int(lives["life"][born_at[born]])
            for size, born in slow.states[moment].values()
            if size >= tile["min_bytes"]
        }
        assert drawn == expected
        thin = sum(
            size for size, _ in slow.states[moment].values() if size < tile["min_bytes"]
        )
        assert rest[:, number].sum() == thin
    sizes = dict(zip(lives["life"].tolist(), lives["size"].tolist(), strict=True))
    check_nothing_overlaps(heights, sizes, columns["active"], rest)


def check_nothing_overlaps(heights, sizes, totals, rest):
    """Of each column the blocks and rests fill the total without a gap."""
    by_column: dict[int, list[tuple[float, float]]] = {}
    for (life, column), lower in heights.items():
        by_column.setdefault(column, []).append((lower, lower + sizes[life]))
    for column, pieces in by_column.items():
        pieces.sort()
        gaps = pieces[0][0] + totals[column] - pieces[-1][1]
        for (_, upper), (lower, _) in pairwise(pieces):
            assert lower >= upper
            gaps += lower - upper
        assert gaps == rest[:, column].sum()


def test_thin_blocks_are_summed_up_and_the_answer_says_below_what(asked):
    tall = asked.get("allocations", px=50, rows=8000)
    low = asked.get("allocations", px=50, rows=100)
    assert low["min_bytes"] == int(0.75 * low["top_bytes"] / 100)
    assert low["lives"]["size"].min() >= low["min_bytes"] > tall["min_bytes"]
    assert (low["columns"]["active"] == tall["columns"]["active"]).all()
    assert low["rest"].sum() > tall["rest"].sum()


def test_zoomed_upwards_thinner_blocks_appear_and_others_go(asked):
    whole = asked.get("allocations", px=50, rows=100)
    top = whole["top_bytes"]
    part = asked.get("allocations", px=50, rows=100, y0=top * 0.4, y1=top * 0.5)
    assert part["min_bytes"] < whole["min_bytes"]
    assert part["top_bytes"] == pytest.approx(top * 0.5)
    lives = part["lives"]
    sizes = dict(zip(lives["life"].tolist(), lives["size"].tolist(), strict=True))
    for (life, _), lower in painted(part).items():
        assert lower < top * 0.5
        assert lower + sizes[life] > top * 0.4


def test_columns_of_time_are_equally_long_and_keep_the_peak(asked, snapshot):
    slow = Slow(snapshot)
    tile = asked.get("allocations", axis="time", px=64, rows=200)
    edge = tile["columns"]["edge"]
    assert tile["axis"] == "time"
    assert np.allclose(np.diff(edge), edge[-1] / 64)
    assert slow.active[tile["columns"]["moment"]].max() == slow.active.max()
    times = [event["time_us"] for event in snapshot["device_traces"][0]]
    assert edge[-1] == pytest.approx((times[-1] - times[0]) / 1e3)
    for moment, left, right in zip(
        tile["columns"]["moment"], edge, edge[1:], strict=False
    ):
        assert (times[moment] - times[0]) / 1e3 <= right
        following = times[min(moment + 1, len(times) - 1)] - times[0]
        # Where a column holds no event the one before it still stands.
        assert (times[moment] - times[0]) / 1e3 >= left or following / 1e3 >= left


def test_without_times_the_axis_is_that_of_events(run):
    asked = asked_of(run, trained().snapshot(Form(torch="2.1")))
    tile = asked.get("allocations", axis="time", px=10)
    assert tile["axis"] == "event"
    (device,) = asked.opened()["facts"]["devices"]
    assert not device["has_times"]
    assert device["first_ms"] is None
    assert np.isnan(device["curve"]["time_ms"]).all()


@pytest.mark.parametrize(
    "colour", ["category", "module", "stack", "age", "stream", "pool"]
)
def test_every_life_has_a_colour_and_groups_say_what_they_hold(asked, colour):
    tile = asked.get("allocations", px=30, rows=4000, order="group", colour=colour)
    groups = tile["groups"]
    assert 0 < len(groups) <= 13
    assert len({group["key"] for group in groups}) == len(groups)
    assert tile["lives"]["group"].max() < len(groups)
    assert (tile["lives"]["group"] == tile["lives"]["band"]).all()
    assert sum(group["bytes"] for group in groups) == tile["columns"]["active"].max()
    bands = tile["band_bytes"].reshape(len(groups), -1)
    highest = int(np.argmax(tile["columns"]["active"]))
    assert bands[:, highest].tolist() == [group["bytes"] for group in groups]
    # Where colours are not stacked, their bytes come besides.
    assert not len(tile["group_bytes"])
    other = asked.get("allocations", px=30, order="allocation", colour=colour)
    assert (other["group_bytes"].reshape(bands.shape) == bands).all()


def test_groups_stay_the_same_wherever_one_looks(asked):
    keys = [
        [
            group["key"]
            for group in asked.get("allocations", colour="stack", e0=e0, e1=e0 + 50)[
                "groups"
            ]
        ]
        for e0 in (0, 500, 2000)
    ]
    assert keys[0] == keys[1] == keys[2]


@pytest.mark.parametrize("window", [{}, {"e0": 700, "e1": 900}])
def test_holders_add_up_to_the_tile_and_to_the_exact_answer(asked, window):
    tile = asked.get("allocations", px=60, **window)
    held = asked.get("allocation_holders", px=60, **window)
    assert held["moment"].tolist() == tile["columns"]["moment"].tolist()
    assert held["stack"][-1] == -2
    width = len(held["moment"])
    matrix = np.zeros((len(held["stack"]), width))
    np.add.at(matrix, (held["slot"], held["column"]), held["change"])
    matrix = matrix.cumsum(axis=1)
    assert (matrix.sum(axis=0) == tile["columns"]["active"]).all()
    for column in (0, width // 2, width - 1):
        live = asked.get("allocation_live", moment=int(held["moment"][column]))
        expected = dict(zip(live["stack"], live["stack_bytes"], strict=True))
        found = dict(zip(held["stack"], matrix[:, column], strict=True))
        assert {s: b for s, b in found.items() if b} == expected
        assert held["allocated"][column] == live["allocated_bytes"]
        categories = dict(zip(live["stack"], live["stack_category"], strict=True))
        told = dict(zip(held["stack"][:-1], held["category"], strict=True))
        assert {s: told[s] for s in categories if s in told} == categories
        assert (
            sum(one["bytes"] for one in live["categories"]) == matrix[:, column].sum()
        )
        pending = sum(one["pending_bytes"] for one in live["categories"])
        assert pending == live["active_bytes"] - live["allocated_bytes"]


def test_what_lives_at_a_moment_is_what_the_trace_says(asked, snapshot):
    slow = Slow(snapshot)
    for moment in (0, 17, 500, slow.num_events - 1):
        live = asked.get("allocation_live", moment=moment)
        sizes = sorted((size for size, _ in slow.states[moment].values()), reverse=True)
        assert live["active_bytes"] == sum(sizes)
        assert live["num_blocks"] == len(sizes) == live["stack_blocks"].sum()
        assert live["stack_bytes"].sum() == sum(sizes)
        assert live["time_ms"] == snapshot["device_traces"][0][moment]["time_us"] / 1e3
        parts = [entry["bytes"] for entry in live["ledger"]["entries"]]
        assert sum(part for part in parts[:6]) == live["reserved_bytes"]


def test_the_smallest_of_very_many_stacks_are_summed_up(asked, monkeypatch):
    whole = asked.get("allocation_live")
    assert len(whole["stack"]) > 3
    monkeypatch.setattr("memboard.tb_plugin.pages.memory.live.MAX_LIVE_STACKS", 2)
    cut = asked.get("allocation_live")
    assert cut["stack"].tolist() == [*whole["stack"][:2].tolist(), -2]
    for column in ("stack_bytes", "stack_blocks"):
        assert cut[column].sum() == whole[column].sum()
        assert (cut[column][:2] == whole[column][:2]).all()
    assert len(cut["stack_category"]) == 2


def test_without_a_moment_it_is_the_peak(asked, snapshot):
    live = asked.get("allocation_live")
    slow = Slow(snapshot)
    assert live["moment"] == int(np.argmax(slow.active))
    assert live["active_bytes"] == slow.level[live["moment"]]
    before = asked.get("allocation_live", moment=-1)
    assert before["moment"] == -1
    assert before["num_blocks"] == 0
    assert before["time_ms"] is None
    far = asked.get("allocation_live", moment=10**9)
    assert far["moment"] == Slow(snapshot).num_events - 1


def test_a_range_says_what_became_of_what_it_allocated(asked, snapshot):
    trace = snapshot["device_traces"][0]
    for e0, e1 in ((0, len(trace)), (200, 900), (50, 50), (10**6, 10**7)):
        found = asked.get("allocation_range", e0=e0, e1=e1)
        inside = trace[e0:e1]
        born = {e["addr"] for e in inside if e["action"] == "alloc"}
        allocated = [e["size"] for e in inside if e["action"] == "alloc"]
        assert found["num_allocated"] == len(allocated)
        assert found["allocated_bytes"] == sum(allocated)
        assert found["freed_bytes"] + found["live_bytes"] == found["allocated_bytes"]
        assert found["num_freed"] + found["num_live"] == found["num_allocated"]
        gone = sum(e["size"] for e in inside if e["action"] == "free_completed")
        assert found["freed_bytes"] + found["earlier_freed_bytes"] == gone
        table = found["table"]
        assert numbers_of(table, "allocated_bytes").sum() == found["allocated_bytes"]
        assert numbers_of(table, "num_live").sum() == found["num_live"]
        assert (np.diff(numbers_of(table, "live_bytes")) <= 0).all()
        if born:
            active = Slow(snapshot).active[e0:e1]
            assert found["highest_bytes"] == active.max()
            assert found["highest_moment"] == e0 + int(np.argmax(active))


def test_the_card_of_a_block_is_that_of_its_events(asked, snapshot):
    trace = snapshot["device_traces"][0]
    uses: dict[int, int] = {}
    life = 0
    for number, event in enumerate(trace):
        if event["action"] != "alloc":
            continue
        version = uses.get(event["addr"], 0)
        uses[event["addr"]] = version + 1
        if life % 200 == 0:
            card = asked.get("allocation_block", life=life)
            assert card["name"] == f"b{event['addr']:x}_{version}"
            assert card["address"] == hex(event["addr"])
            assert card["size_bytes"] == event["size"]
            assert card["block_bytes"] >= event["size"]
            assert card["block_bytes"] % 512 == 0
            assert card["born"]["moment"] == number
            assert card["born"]["step"] is not None or number < 500
            ends = [
                later
                for later in range(number + 1, len(trace))
                if trace[later].get("addr") == event["addr"]
                and trace[later]["action"] == "free_completed"
            ]
            assert (card["gone"] or {}).get("moment") == (ends[0] if ends else None)
            assert card["evidence"]
            assert card["stream"] is not None
            assert card["pool"] == 0
            assert card["segment_bytes"] >= card["block_bytes"]
        life += 1


def test_siblings_are_the_others_of_the_same_stack(asked):
    live = asked.get("allocation_live")
    lives, moment = asked.get("allocations")["lives"], live["moment"]
    alive = (lives["born"] <= moment) & (lives["gone"] > moment)
    life = lives["life"][np.argmax(lives["size"] * alive)]
    card = asked.get("allocation_block", life=int(life), moment=moment)
    place = live["stack"].tolist().index(card["stack"])
    assert card["num_siblings"] == live["stack_blocks"][place] - 1
    assert card["sibling_bytes"] == live["stack_bytes"][place] - card["size_bytes"]
    assert card["num_ever"] > card["num_siblings"]


def test_stacks_are_those_of_the_file(asked, snapshot):
    found = asked.get("stacks")
    strings = found["strings"]
    trace = snapshot["device_traces"][0]
    lives = asked.get("allocations")["lives"]
    is_born = lives["born"] >= 0
    stacks, events = lives["stack"][is_born], lives["born"][is_born]
    for stack, born in zip(stacks[:20], events[:20], strict=True):
        rows = found["frame"][found["start"][stack] : found["start"][stack + 1]]
        shown = [
            (strings[found["name"][row]], strings[found["filename"][row]])
            for row in rows
        ]
        frames = trace[born]["frames"]
        assert shown == [(frame["name"], frame["filename"]) for frame in frames]
        assert found["line"][rows].tolist() == [frame["line"] for frame in frames]
    assert found["num_stacks"] == len(found["start"]) - 1 == len(found["user_frame"])
    told = found["user_frame"][found["user_frame"] >= 0]
    assert (found["kind"][told] < 3).all()


@pytest.mark.parametrize(
    ("route", "query", "status", "word"),
    [
        ("allocations", {"device": 7}, 404, "device"),
        ("allocations", {"stream": 99}, 404, "stream"),
        ("allocations", {"pool": 99}, 404, "pool"),
        ("allocation_live", {"moment": "-99999999999"}, 400, "moment"),
        ("allocation_block", {}, 404, "life"),
        ("allocation_block", {"life": 10**6}, 404, "life"),
    ],
)
def test_what_means_nothing_is_refused_by_its_name(asked, route, query, status, word):
    response = asked.raw(route, **query)
    assert response.status_code == status
    assert word in response.get_json()["where"]
    assert response.get_json()["remedy"]


@pytest.mark.parametrize(
    "query",
    [
        {"px": 0, "rows": 0},
        {"px": 8192, "rows": 8192},
        {"e0": 10**9, "e1": 10**9},
        {"e0": 900, "e1": 100},
        {"y0": -5, "y1": -3},
        {"y0": 1e18},
        {"axis": "time", "t0": -1e15, "t1": -1e14},
        {"axis": "time", "t0": 5, "t1": 5},
        {"axis": "time", "t0": 1e17},
    ],
)
def test_odd_windows_have_a_picture_too(asked, query):
    tile = asked.get("allocations", **query)
    assert len(tile["columns"]["edge"]) == len(tile["columns"]["moment"]) + 1 >= 2
    held = asked.get("allocation_holders", **query)
    assert held["moment"].tolist() == tile["columns"]["moment"].tolist()


def test_blocks_without_any_event_are_shown_as_they_are(run, snapshot):
    asked = asked_of(run, {"segments": snapshot["segments"], "device_traces": [[]]})
    (device,) = asked.opened()["facts"]["devices"]
    assert device["num_events"] == 0
    assert device["num_before"] == device["num_allocations"] > 0
    assert device["rounding_bytes"] == 0
    tile = asked.get("allocations", rows=8000, order="allocation")
    assert tile["columns"]["moment"].tolist() == [-1]
    assert tile["columns"]["active"].tolist() == [device["active_bytes"]]
    assert tile["columns"]["reserved"].tolist() == [device["reserved_bytes"]]
    live = asked.get("allocation_live")
    assert live["active_bytes"] == device["active_bytes"]
    assert asked.get("allocation_range")["num_allocated"] == 0
    card = asked.get("allocation_block", life=0)
    assert card["born"] is None
    assert card["gone"] is None
    assert card["is_rounded"]
    asked.get("allocation_holders")
    by_time = asked.get("allocations", axis="time")
    assert by_time["axis"] == "event"


def test_a_snapshot_of_nothing_has_no_device(run):
    asked = asked_of(run, {"segments": [], "device_traces": [[]]})
    facts = asked.opened()["facts"]
    assert facts["devices"] == []
    assert facts["default_device"] is None
    response = asked.raw("allocations")
    assert response.status_code == 404
    assert "device" in response.get_json()["where"]


def test_several_devices_are_kept_apart(run):
    one, other = trained(1000), trained(2000)
    first, second = one.snapshot(FORM), other.snapshot(FORM)
    for segment in second["segments"]:
        segment["device"] = 1
    both = {
        **first,
        "segments": first["segments"] + second["segments"],
        "device_traces": [first["device_traces"][0], second["device_traces"][0]],
    }
    asked = asked_of(run, both)
    facts = asked.opened()["facts"]
    assert [device["device"] for device in facts["devices"]] == [0, 1]
    for number in (0, 1):
        slow = Slow(both, number)
        tile = asked.get("allocations", device=number, px=20)
        assert tile["device"] == number
        assert tile["peak_bytes"] == slow.active.max()
        peaks = {peak["level"]: peak for peak in facts["devices"][number]["peaks"]}
        assert peaks["active"]["moment"] == int(np.argmax(slow.active))
    highest = max(
        facts["devices"],
        key=lambda device: max(p["bytes"] for p in device["peaks"][:1]),
    )
    assert facts["default_device"] == highest["device"]
    assert asked.get("allocation_live")["device"] == highest["device"]
