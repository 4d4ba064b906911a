"""Route `/functions`: known numbers, defaults, ranks, captures, growth, hostile files."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.collector.format.columns import Column
from memboard.tb_plugin.api.memory.calls import FunctionStat
from memboard.tb_plugin.facts.functions.statistics import Sides, growth_text, label_of
from tests.builders import START_NS, RunBuilder, age, flip_bit
from tests.tb_plugin.client import Page, refresh

MS = 10**6
COLUMNS = (
    Column(name="iteration", unit="index", group="progress"),
    Column(name="context", unit="index", group="progress"),
    Column(name="rss_bytes", unit="bytes", group="process"),
    Column(name="allocated_bytes.all.current", unit="bytes", group="device"),
    Column(name="num_ooms", unit="count", group="device"),
    Column(name="hook.npp_diff", unit="bytes", group="process", dtype="f8"),
)
ALLOCATED = "allocated_bytes.all.current"


def snaps(rank, function, iterations, *, phase="train", base=1000.0, step=0, at_ns=None,
          sides=(0, 1), **columns):  # fmt: skip
    """Rows of snaps: at the start `base`, at the end 10 * iteration more."""
    rows = [(iteration, side) for iteration in iterations for side in sides]
    first = START_NS if at_ns is None else at_ns
    values = {
        "iteration": [i for i, _ in rows],
        "context": [side for _, side in rows],
        "rss_bytes": [2.0**30 + side for _, side in rows],
        ALLOCATED: [base + side * 10 * i for i, side in rows],
        "num_ooms": [0] * len(rows),
        **columns,
    }
    rank.rows(
        f"function/{function}",
        [step + i for i, _ in rows],
        phase=phase,
        times=[first + (i * 2 + side) * MS for i, side in rows],
        rolled_up=False,
        extra=COLUMNS,
        rows_per_chunk=3,
        **values,
    )


def columns_of(table):
    """Its values by column."""
    return {one["key"]: one["texts"] or one["numbers"] for one in table["columns"]}


def stats_of(response):
    """Of those in the table both sides and the difference, too."""
    values = columns_of(response["table"])
    return {
        stat["name"]: {
            **stat,
            **{
                side: values[key]
                for side in ("start", "end", "difference")
                if (key := f"{stat['name']}:{side}") in values
            },
        }
        for stat in response["stats"]
    }


def simple(run, num_ranks=1):
    ranks = []
    for number in range(num_ranks):
        rank = run.rank(number, world_size=num_ranks)
        rank.steps(range(20), rss_bytes=[2.0**30] * 20)
        rank.source("functions")
        snaps(rank, "step", [2, 3], base=1000.0 * (number + 1), step=10)
        snaps(rank, "eval", [2], phase="val", base=5000.0)
        ranks.append(rank)
    return ranks


def test_known_numbers(tmp_path):
    (rank,) = simple(RunBuilder(tmp_path / "exp"))
    rank.close()
    found = Page(tmp_path).of_run("/functions", "exp")
    listed = [(f["function"], f["phase"], f["kinds"]) for f in found["functions"]]
    assert listed == [("step", "train", ["snaps"]), ("eval", "val", ["snaps"])]
    assert (found["function"], found["phase"], found["rank"]) == ("step", "train", 0)
    assert found["source"] == "recorded"
    calls = found["calls"]
    assert calls["iteration"].tolist() == [2, 3]
    assert calls["attempt"].tolist() == [1, 1]
    assert calls["step"].tolist() == [12, 13]
    assert calls["start_ms"].tolist() == [(START_NS + ms * MS) / MS for ms in (4, 6)]
    assert calls["end_ms"].tolist() == [(START_NS + ms * MS) / MS for ms in (5, 7)]
    assert calls["collected"] == ["", ""]
    assert found["num_calls"] == 2
    stats = stats_of(found)
    assert list(stats) == ["rss_bytes", ALLOCATED, "num_ooms"]
    assert stats[ALLOCATED]["start"].tolist() == [1000, 1000]
    assert stats[ALLOCATED]["end"].tolist() == [1020, 1030]
    assert stats[ALLOCATED]["difference"].tolist() == [20, 30]
    groups = {name: (stat["unit"], stat["group"]) for name, stat in stats.items()}
    assert groups == {
        "rss_bytes": ("bytes", "process"),
        ALLOCATED: ("bytes", "device"),
        "num_ooms": ("count", "device"),
    }
    assert (found["attempt"], found["iteration"]) == (1, 3)
    assert found["over_ranks"]["stat"] == "allocated_bytes.all.current"
    assert found["shown"] == [found["drawn"]["stat"]["name"]] == [ALLOCATED]
    assert found["drawn"]["end"].tolist() == [1020, 1030]
    table = {one["key"]: one for one in found["table"]["columns"]}
    # Seen are these; all others are in files alone.
    titles = [one["title"] for one in table.values() if one["title"]]
    sides = ["Allocated start", "Allocated end", "Allocated Δ"]
    assert titles == ["Iteration", "Step", "Took", *sides]
    assert found["table"]["title"] == "2 calls of step, train, rank 0"
    assert table["took"]["numbers"].tolist() == pytest.approx([1e-3, 1e-3])
    assert table["iteration"]["hints"][0].startswith("began 20")
    assert list(table)[-4:] == ["call", "attempt", "start_ms", "end_ms"]
    assert found["tables"] == []
    assert found["module_window"] is None
    assert found["absent"] == []


def test_the_table_has_the_stats_and_sides_asked_for(tmp_path):
    (rank,) = simple(RunBuilder(tmp_path / "exp"))
    rank.close()
    names = f"num_ooms,{ALLOCATED},none such"
    found = Page(tmp_path).of_run("/functions", "exp", stats=names, sides="end")
    assert found["shown"] == [ALLOCATED, "num_ooms"]
    columns = found["table"]["columns"]
    titles = [one["title"] for one in columns if ":" in one["key"]]
    assert titles == ["", "Allocated end", "", "", "num_ooms end", ""]
    units = {one["key"]: one["unit"] for one in columns}
    assert units[f"{ALLOCATED}:difference"] == "change_bytes"
    assert (units["num_ooms:end"], units["num_ooms:difference"]) == ("count", "change")


def test_what_was_asked_for_is_shown(tmp_path):
    for rank in simple(RunBuilder(tmp_path / "exp"), 3):
        rank.close()
    page = Page(tmp_path)
    found = page.of_run(
        "/functions", "exp", function="eval", rank=2, stat=ALLOCATED, iteration=2
    )
    assert (found["function"], found["phase"], found["rank"]) == ("eval", "val", 2)
    assert found["ranks"].tolist() == [0, 1, 2]
    over = found["over_ranks"]
    assert over["stat"] == ALLOCATED
    assert over["rank"].tolist() == [0, 1, 2]
    assert over["difference"].tolist() == [20, 20, 20]
    assert over["of_ranks"] == 3
    found = page.of_run("/functions", "exp", stat=ALLOCATED, iteration=2)
    assert found["over_ranks"]["start"].tolist() == [1000, 2000, 3000]
    assert found["over_ranks"]["end"].tolist() == [1020, 2020, 3020]


@pytest.mark.parametrize(
    "asked",
    [
        {"function": "none such"},
        {"phase": "none such"},
        {"rank": 7},
        {"iteration": 99},
        {"attempt": 5},
        {"stat": "none such"},
        {"iteration": 10**11},
    ],
)
def test_what_is_not_there_has_a_default(tmp_path, asked):
    for rank in simple(RunBuilder(tmp_path / "exp"), 2):
        rank.close()
    found = Page(tmp_path).of_run("/functions", "exp", **asked)
    assert (found["function"], found["rank"], found["iteration"]) == ("step", 0, 3)
    assert found["over_ranks"]["stat"] == "allocated_bytes.all.current"


def test_a_call_that_never_ended_shows_its_start(tmp_path):
    rank = RunBuilder(tmp_path / "exp").rank()
    snaps(rank, "step", [1])
    snaps(rank, "step", [2], sides=(0,))
    found = Page(tmp_path).of_run("/functions", "exp")
    assert np.isnan(found["calls"]["end_ms"]).tolist() == [False, True]
    difference = stats_of(found)[ALLOCATED]["difference"]
    assert difference[0] == 10
    assert np.isnan(difference[1])


def test_a_restart_counts_its_calls_again(tmp_path):
    run = RunBuilder(tmp_path / "exp")
    first = run.rank()
    snaps(first, "step", [1, 2], base=100.0)
    first.close("exception", "boom")
    again = run.rank(attempt=1)
    snaps(again, "step", [1], base=200.0, at_ns=START_NS + 90_000 * 10**9)
    again.close()
    page = Page(tmp_path)
    found = page.of_run("/functions", "exp", stat=ALLOCATED)
    assert found["calls"]["attempt"].tolist() == [1, 1, 2]
    assert found["calls"]["iteration"].tolist() == [1, 2, 1]
    assert stats_of(found)[ALLOCATED]["start"].tolist() == [100, 100, 200]
    assert (found["attempt"], found["iteration"]) == (1, 2)  # memory rises most in it
    assert found["over_ranks"]["start"].tolist() == [100]
    found = page.of_run("/functions", "exp", stat=ALLOCATED, attempt=1, iteration=1)
    assert (found["attempt"], found["iteration"]) == (1, 1)
    assert found["over_ranks"]["start"].tolist() == [100]


def test_columns_may_change_between_calls(tmp_path):
    rank = RunBuilder(tmp_path / "exp").rank()
    snaps(rank, "step", [1])
    snaps(rank, "step", [2], **{"hook.npp_diff": [None, 7680.0]})
    snaps(rank, "step", [3])
    names = f"hook.npp_diff,{ALLOCATED}"
    found = Page(tmp_path).of_run("/functions", "exp", stats=names)
    assert found["calls"]["iteration"].tolist() == [1, 2, 3]
    hook = stats_of(found)["hook.npp_diff"]
    assert (hook["group"], hook["unit"]) == ("hook", "bytes")
    assert np.isnan(hook["start"]).all()
    assert np.array_equal(hook["end"], [np.nan, 7680.0, np.nan], equal_nan=True)
    assert stats_of(found)[ALLOCATED]["end"].tolist() == [1010, 1020, 1030]


def test_of_very_many_calls_the_newest_are_shown(tmp_path):
    rank = RunBuilder(tmp_path / "exp").rank()
    for start in range(1, 7001, 1000):
        snaps(rank, "step", range(start, start + 1000))
        rank.digest()
    page = Page(tmp_path)
    found = page.of_run("/functions", "exp")
    assert found["calls"]["iteration"].tolist() == list(range(6001, 7001))
    assert found["num_calls"] == 7000
    assert len(found["drawn"]["start"]) == found["table"]["num_rows"] == 1000
    snaps(rank, "step", [7001])
    refresh(page)
    found = page.of_run("/functions", "exp")
    assert found["calls"]["iteration"].tolist() == list(range(6002, 7002))
    assert found["num_calls"] == 7001


def test_a_growing_run_is_followed_and_an_unchanged_one_costs_a_304(tmp_path):
    (rank,) = simple(RunBuilder(tmp_path / "exp"))
    page = Page(tmp_path)
    run_id = page.run_id("exp")
    response = page.raw("/functions", run=run_id)
    etag = response.headers["ETag"]
    again = page.raw("/functions", run=run_id, headers={"If-None-Match": etag})
    assert again.status_code == 304
    for iteration in range(4, 9):
        snaps(rank, "step", [iteration], step=10)
        if iteration == 6:
            rank.digest()
        refresh(page)
        response = page.raw("/functions", run=run_id, headers={"If-None-Match": etag})
        assert response.status_code == 200
        found = page.of_run("/functions", "exp")
        assert found["calls"]["iteration"].tolist() == list(range(2, iteration + 1))
        assert stats_of(found)[ALLOCATED]["difference"].tolist() == [
            10.0 * i for i in range(2, iteration + 1)
        ]


# Captures.

MODULES = {"path": ("", "layers.0", "layers.1"), "type": ("Net", "Linear", "Linear")}
HOOKS = {
    "modules": MODULES,
    "values": {
        "module": np.array([0, 1, 2]),
        "rss_diff": np.array([300.0, 100.0, np.nan]),
        "npp_diff": np.array([7680.0, 4608.0, 2560.0]),
        "calls": np.array([1, 2, 2]),
    },
}
SAVED = {
    "modules": MODULES,
    "saved": {
        "module": np.array([1, 2, 2, -1]),
        "dtype": ("float32", "float32", "int64", "float32"),
        "num_tensors": np.array([2, 1, 1, 1]),
        "bytes": np.array([4096, 1024, 80, 10]),
        "npp_compat_bytes": np.array([4608, 2560, 80, 10]),
    },
}


def with_captures(tmp_path, **changes):
    (rank,) = simple(RunBuilder(tmp_path / "exp"))
    known = {"iteration": 3, "step": 13, "time_ns": START_NS + 7 * MS}
    rank.capture("hooks", tables=HOOKS, **{**known, **changes})
    meta = {"bytes": 5210, "npp_compat_bytes": 7258}
    rank.capture("activations", tables=SAVED, meta=meta, **{**known, **changes})
    rank.capture("modules", **known)
    rank.capture("history", context="start", **known)
    rank.capture("history", function="", iteration=0, label="mine", step=None)
    return rank


def test_what_a_call_adds_is_a_sentence(tmp_path):
    def said(start, end, unit="bytes", stat="rss_bytes"):
        first, last = np.array(start, float), np.array(end, float)
        known = FunctionStat(stat, label_of(stat), unit, "process")
        return growth_text(Sides(known, first, last, last - first), "step")

    assert said([10, 20, 30], [14, 22, 36]) == (
        "RSS grows by 4 B in a call of step (median of 3); from the first call to the"
        " last it grows by 26 B."
    )
    assert said([10], [10]) == "RSS does not change in a call of step."
    assert "not measured" in said([10], [np.nan])
    retries = said([0], [1], "count", "num_alloc_retries")
    assert retries == "num_alloc_retries grows by 1 in a call of step."


def test_statistics_keep_the_spelling_of_torch_where_it_is_not_common():
    labels = {
        "allocated_bytes.all.current": "Allocated",
        "inactive_split_bytes.all.current": "Inactive split",
        "active_bytes.large_pool.peak": "active_bytes.large_pool.peak",
        "vms_bytes": "VMS",
        "hook.rss_diff": "RSS change in forward",
        "hook.own_measure": "own_measure",
    }
    assert {name: label_of(name) for name in labels} == labels


def test_histories_of_the_call_come_first_with_a_command_for_any_name(tmp_path):
    rank = RunBuilder(tmp_path / "it's $(rm)").rank()
    for iteration in (2, 3):
        rank.capture("history", iteration=iteration, context="end", step=iteration)
    found = Page(tmp_path).of_run("/functions", "it's $(rm)", iteration=3)
    assert [one["iteration"] for one in found["histories"]] == [3, 2]
    assert found["num_own_histories"] == 1
    assert "--run 'it'\"'\"'s $(rm)' --rank 0 --history" in found["export_command"]


def test_hooks_and_activations_of_the_chosen_call(tmp_path):
    with_captures(tmp_path).close()
    page = Page(tmp_path)
    found = page.of_run("/functions", "exp")
    everything = "hooks, activations, modules, history"
    assert found["calls"]["collected"] == ["", everything]
    kinds = found["functions"][0]["kinds"]
    assert kinds == ["snaps", "hooks", "activations", "modules", "history"]
    saved, hooks = found["tables"]
    found_hooks, found_saved = columns_of(hooks["table"]), columns_of(saved["table"])
    assert found_hooks["module"] == ["Net", "layers.0", "layers.1"]
    assert found_hooks["type"] == ["Net", "Linear", "Linear"]
    units = {one["key"]: one["unit"] for one in hooks["table"]["columns"]}
    changes = {"rss_diff": "change_bytes", "npp_diff": "change_bytes"}
    assert units == {"module": "name", **changes, "calls": "count", "type": "text"}
    assert found_hooks["npp_diff"].tolist() == [7680, 4608, 2560]
    assert np.isnan(found_hooks["rss_diff"][2])
    assert found_saved["dtype"] == ["float32", "float32", "int64", "float32"]
    outside = "outside any module"
    assert found_saved["module"] == ["layers.0", "layers.1", "layers.1", outside]
    assert found_saved["type"] == ["Linear", "Linear", "Linear", ""]
    assert found_saved["bytes"].tolist() == [4096, 1024, 80, 10]
    assert found_saved["num_tensors"].tolist() == [2, 1, 1, 1]
    assert saved["table"]["summary"] == (
        "iteration 3, 5.09 KiB saved · MemProfiler's sum 7.09 KiB."
    )
    assert not saved["incomplete"]
    assert found["module_window"] == "step/train/3"
    shown = [(h["function"], h["context"], h["label"]) for h in found["histories"]]
    assert shown == [("step", "start", ""), ("", "", "mine")], (
        "the call's, then by time"
    )
    found = page.of_run("/functions", "exp", iteration=2)
    assert found["tables"] == []
    assert found["module_window"] is None


def test_the_call_nearest_to_a_step_is_shown_where_none_is_asked_for(tmp_path):
    simple(RunBuilder(tmp_path / "exp"))[0].close()
    page = Page(tmp_path)
    for asked, iteration in (({"step": 12}, 2), ({"step": 99}, 3), ({}, 3)):
        assert page.of_run("/functions", "exp", **asked)["iteration"] == iteration
    both = page.of_run("/functions", "exp", step=12, iteration=3)
    assert both["iteration"] == 3


def test_a_function_with_captures_alone_has_calls(tmp_path):
    rank = RunBuilder(tmp_path / "exp").rank()
    rank.capture("hooks", function="only", tables=HOOKS, iteration=4, step=9)
    found = Page(tmp_path).of_run("/functions", "exp")
    assert found["function"] == "only"
    assert found["calls"]["iteration"].tolist() == [4]
    assert found["calls"]["step"].tolist() == [9]
    assert found["calls"]["collected"] == ["hooks"]
    assert found["stats"] == []
    assert found["drawn"] is None
    assert "functions=True" in found["growth"]
    assert found["over_ranks"] is None
    assert [one["kind"] for one in found["tables"]] == ["hooks"]


def test_a_damaged_capture_is_named_and_the_rest_is_shown(tmp_path):
    rank = with_captures(tmp_path)
    rank.close()
    (at,) = [start for kind, start, _ in rank.offsets if kind == "capture"][:1]
    flip_bit(rank.path, at + 200)
    age(rank.path)
    found = Page(tmp_path).of_run("/functions", "exp")
    assert [one["kind"] for one in found["tables"]] == ["activations"]
    assert stats_of(found)[ALLOCATED]["difference"].tolist() == [20, 30]
    named = [p["what"] for p in found["problems"] if "damaged" in p["what"]]
    assert len(named) == 1
    assert 'the capture "hooks" of step, call 3' in named[0]
    again = Page(tmp_path)
    for route in ("/overview", "/functions", "/overview"):  # which looks through it all
        found = again.of_run(route, "exp")
    wholly = [p["what"] for p in found["problems"] if "damaged" in p["what"]]
    assert len(wholly) == 1


HOSTILE = [
    {"values": {"module": np.array([0.5, 1.5]), "x": np.array([1.0, 2.0])}},
    {"values": {"module": np.array([5, -7]), "x": np.array([1.0, 2.0])},
     "modules": {"path": ("",), "type": ("Net",)}},
    {"values": {"x": np.array([1.0, 2.0])}},
    {"values": {"module": ("a", "b"), "x": ("c", "d")}},
    {"modules": {"path": np.array([1, 2])}},
    {"saved": {"module": np.array([0, 1]), "dtype": np.array([1, 2])}},
    {"saved": {"module": np.array([-1, 0]), "bytes": ("a", "b")}},
    {"saved": {"module": np.array([-1]), "bytes": np.array([np.inf])}},
    {},
]  # fmt: skip


@pytest.mark.parametrize("tables", HOSTILE)
def test_captures_may_hold_anything(tmp_path, tables):
    (rank,) = simple(RunBuilder(tmp_path / "exp"))
    odd = {"incomplete": "yes", "bytes": "many", "npp_compat_bytes": 2**80}
    rank.capture("hooks", tables=tables, meta=odd, iteration=3)
    rank.capture("activations", tables=tables, meta=odd, iteration=3)
    found = Page(tmp_path).of_run("/functions", "exp")
    assert len(found["tables"]) == 2
    for table in found["tables"]:
        for column in table["table"]["columns"]:
            values = column["texts"] or column["numbers"]
            assert len(values) == table["table"]["num_rows"]
    assert "inf" not in found["tables"][0]["table"]["summary"]


def test_tables_may_hold_anything(tmp_path):
    rank = RunBuilder(tmp_path / "exp").rank()
    snaps(rank, "step", [1])
    odd = {"iteration": [None, -5, 2**40, 2, 2], "context": [0, 0, 0, 7, 1]}
    nothing = [1.0] * 5
    rank.rows("function/step", [-3, 0, 1, 2, 3], times=[-5, 0, 1, 2, 3], extra=COLUMNS,
              rolled_up=False, rss_bytes=nothing, **odd)  # fmt: skip
    # No such columns, another kind of table, and a name that is all markup.
    rank.rows("function/bare", range(2), rolled_up=False, rss_bytes=[1.0, 2.0])
    rank.rows("function/rolled", range(2), extra=COLUMNS, rss_bytes=[1.0, 2.0],
              iteration=[1, 2], context=[0, 1])  # fmt: skip
    snaps(rank, "<script>&\udcff", [1])
    found = Page(tmp_path).of_run("/functions", "exp")
    names = [f["function"] for f in found["functions"]]
    assert len(names) == 2
    assert "step" in names
    found = Page(tmp_path).of_run("/functions", "exp", function="step")
    assert found["calls"]["iteration"].tolist() == [2, 1]


def test_snaps_are_in_no_other_view(tmp_path):
    (rank,) = simple(RunBuilder(tmp_path / "exp"))
    snaps(rank, "step", [5], num_ooms=[1, 1], rss_bytes=[2.0**60] * 2)
    rank.close()
    page = Page(tmp_path)
    timeline = page.of_run("/timeline", "exp")
    assert [s["key"] for s in timeline["available"]] == ["step/rss_bytes"]
    assert [m["kind"] for m in timeline["marks"]] == []
    overview = page.of_run("/overview", "exp")
    values = {h["key"]: h["value"] for h in overview["headlines"]}
    assert values["rss_peak"] == 2.0**30
    assert overview["strip"]["peak_bytes"].tolist() == [2.0**30]


# Reports of MemProfiler.


def test_the_rank_and_the_call_in_which_memory_rises_most_open(tmp_path):
    run = RunBuilder(tmp_path / "exp")
    for number, iterations in enumerate(([1, 2], [9, 3], [1, 4])):
        rank = run.rank(number, world_size=3)
        snaps(rank, "step", iterations)
        rank.close()
    page = Page(tmp_path)
    found = page.of_run("/functions", "exp")
    assert (found["rank"], found["iteration"]) == (1, 9)
    assert page.of_run("/functions", "exp", rank=2)["iteration"] == 4
    assert page.of_run("/functions", "exp", rank=2, iteration=1)["iteration"] == 1


def test_calls_of_a_program_without_a_device_are_drawn_by_what_chose_them(tmp_path):
    """Resident memory, where no device's was recorded: not the first stat by its name."""
    rank = RunBuilder(tmp_path / "exp").rank()
    rows = [(iteration, side) for iteration in (1, 2, 3) for side in (0, 1)]
    rank.rows(
        "function/step",
        [iteration for iteration, _ in rows],
        rolled_up=False,
        extra=COLUMNS,
        iteration=[iteration for iteration, _ in rows],
        context=[side for _, side in rows],
        num_ooms=[0] * len(rows),
        rss_bytes=[2.0**30 + side * (iteration == 2) for iteration, side in rows],
    )
    found = Page(tmp_path).of_run("/functions", "exp")
    assert found["drawn"]["stat"]["name"] == "rss_bytes"
    assert found["iteration"] == 2
