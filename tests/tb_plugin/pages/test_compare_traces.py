"""`/compare_traces`: tables of two traces joined by name, or by place in a tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.operators.tree_match import NamedTree, matched_trees
from memboard.tb_plugin.contract.table import Column
from memboard.tb_plugin.facts.comparison.difference import (
    Figure,
    difference,
    figures_of,
    side_columns,
)
from memboard.tb_plugin.facts.comparison.traces import joined_by_name
from memboard.tb_plugin.facts.traces.module_table import paths
from memboard.tb_plugin.jobs.job import Job
from tests.kineto_files import KinetoFile, trained
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import ask, run_of


def test_equal_names_meet_in_their_order_and_none_is_lost():
    matched = joined_by_name(["x", "x", "y"], ["x", "x", "x", "z"])
    assert matched.names == ["x", "x", "y", "x", "z"]
    assert matched.a.tolist() == [0, 1, 2, -1, -1]
    assert matched.b.tolist() == [0, 1, -1, 2, 3]
    assert joined_by_name([], []).names == []


def test_modules_are_named_by_their_place():
    names = ["Net_0", "Linear_0", "Net_0.whole"]
    assert paths(names, [-1, 0, 0]) == ["Net_0", "Net_0 / Linear_0", "Net_0.whole"]


def columns(rows):
    return {one["key"]: one["numbers"] for one in rows["columns"]}


def test_a_row_of_one_side_alone_counts_as_zero_on_the_other():
    a = np.array([10.0, 8, 3, np.nan, 0, -10, np.nan])
    b = np.array([4.0, 9, np.nan, 5, 0, 5, np.nan])
    of_a, of_b, change, share = side_columns("seconds", "seconds", a, b)
    assert [one.title for one in (of_a, of_b)] == ["A", "B"]
    np.testing.assert_array_equal(
        change.numbers, [-6, 1, -3, 5, 0, 15, np.nan], "B less A"
    )
    assert not np.signbit(change.numbers[4]), "nothing less nothing has no sign"
    np.testing.assert_array_equal(
        share.numbers, [-0.6, 0.125, -np.inf, np.inf, 0, np.nan, np.nan]
    )
    assert change.longest == 15


def test_a_side_that_knows_nothing_is_no_column():
    nothing, some = np.full(2, np.nan), np.array([1.0, 2])
    names = Column("line", "Line", "text")
    alone = difference(names, ["x", "y"], side_columns("bytes", "bytes", nothing, some))
    assert [one.key for one in alone.columns] == ["line", "b_bytes"]
    assert (alone.usual, alone.num_rows) == ("b_bytes", 2)
    both = [*side_columns("bytes", "bytes", nothing, some, both=True)]
    assert len(both) == 4
    assert difference(names, [], []).num_rows == 0


@pytest.fixture
def two(tmp_path) -> tuple[Page, str, dict[str, str]]:
    """A trace of two steps, and one of three that wait less."""
    trained(0, 2, 150, num_steps=2).write(tmp_path / "exp" / "host_0.1.pt.trace.json")
    trained(0, 3, 0).write(tmp_path / "exp" / "host_0.2.pt.trace.json")
    page = Page(tmp_path)
    traces = ask(page, "profile")["choice"]["traces"]
    ids = {one["name"].split(".")[1]: one["id"] for one in traces}
    for source in ids.values():
        ask(page, "profile", source=source)
    return page, run_of(page), ids


def test_two_traces_of_one_run_can_be_compared(two):
    page, run, _ = two
    assert "compare" not in {
        tab["tab"] for tab in page.get("/overview", run=run)["empty"]
    }


PER = ("trace", "step")


def compared(two, table="operators", **query):
    page, run, ids = two
    query = {"source": ids["1"], "b_source": ids["2"], "table": table, **query}
    return page.get("/compare_traces", run=run, **query)


@pytest.mark.parametrize(
    ("table", "route"), [("operators", "operators"), ("kernels", "kernels")]
)
def test_its_numbers_are_those_of_each_traces_own_table(two, table, route):
    page, _, ids = two
    found = compared(two, table)
    assert (found["table"], found["lacks"]) == (table, "")
    assert found["per"] == "step", "they have not equally many"
    found = compared(two, table, measure="calls", per="trace")
    assert found["measure"] == "calls"
    names = found["rows"]["columns"][0]["texts"]
    for side, source in (("a", ids["1"]), ("b", ids["2"])):
        own = ask(page, route, source=source)
        num_calls = dict(zip(own["name"], own["num_calls"].tolist(), strict=True))
        rows = zip(names, columns(found["rows"])[f"{side}_calls"].tolist(), strict=True)
        assert {name: value for name, value in rows if value == value} == num_calls
    shown = [one["key"] for one in found["rows"]["columns"] if one["title"]]
    assert shown == [table, "a_calls", "b_calls", "difference_calls", "percent"]
    # All other measures are in files.
    first = found["measures"][0]["name"]
    assert first.endswith("_seconds")
    assert np.nansum(columns(found["rows"])[f"a_{first}"]) > 0


def test_sums_are_divided_by_steps_but_not_what_is_of_one_call(two):
    whole, step = (columns(compared(two, "kernels", per=per)["rows"]) for per in PER)
    for side, num_steps in (("a", 2), ("b", 3)):
        for key in ("calls", "total_seconds"):
            sums = whole[f"{side}_{key}"] / num_steps
            np.testing.assert_allclose(step[f"{side}_{key}"], sums)
        mean = f"{side}_mean_seconds"
        np.testing.assert_array_equal(step[mean], whole[mean])


def test_a_mean_step_is_compared_by_role(two):
    found = compared(two)
    assert found["sentence"].startswith("A step of B takes as long as one of A")
    roles = found["roles"]
    assert roles["summary"] == "A: mean of 2 steps; B: mean of 3 steps."
    names = roles["columns"][0]["texts"]
    assert names[-2:] == ["other", "whole step"]
    for key in ("a_seconds", "b_seconds", "difference_seconds"):
        values = columns(roles)[key]
        assert values[:-1].sum() == pytest.approx(values[-1])


def test_nothing_is_said_of_traces_that_are_not_there(two):
    found = compared(two, source="t0123456789abcdef", b_source="t0123456789abcdee")
    assert (found["sentence"], found["measure"]) == ("", "")
    assert found["roles"]["num_rows"] == found["rows"]["num_rows"] == 0
    assert found["lacks"].startswith("Neither has any operators")


def layers(path, names, took):
    """A model whose blocks call the same operator, which launches a kernel."""
    made = KinetoFile()
    whole = {"Python id": 1, "Python module id": 0}
    made.slice("nn.Module: Net_0", 0, 1000, "python_function", **whole)
    for number, name in enumerate(names):
        module = {"Python id": 2 + number, "Python parent id": 1}
        at = 100 * number
        made.slice(f"nn.Module: {name}", at + 5, 80, "python_function", **module)
        made.slice("aten::mm", at + 10, 50)
        made.kernel("gemm", at + 20, at + 30, took + number)
    made.write(path)


def placed_rows(found, side, key):
    """By name with depth, the numbers of a side."""
    rows, depth = {}, []
    names = found["rows"]["columns"][0]["texts"]
    values = columns(found["rows"])[f"{side}_{key}"].tolist()
    for name, parent, value in zip(
        names, found["parent"].tolist(), values, strict=True
    ):
        depth.append(0 if parent < 0 else depth[parent] + 1)
        rows["  " * depth[-1] + name] = value
    return rows


@pytest.fixture
def models(tmp_path):
    """The second has a block less and one of another kind before them."""
    folder = tmp_path / "exp"
    layers(folder / "host_0.1.pt.trace.json", ["Block_0", "Block_1"], 10)
    layers(folder / "host_0.2.pt.trace.json", ["Stem_0", "Block_7", "Block_8"], 20)
    page = Page(tmp_path)
    traces = ask(page, "profile")["choice"]["traces"]
    ids = {one["name"].split(".")[1]: one["id"] for one in traces}
    for source in ids.values():
        ask(page, "profile", source=source)
    return page, run_of(page), ids


def test_modules_meet_at_their_place_whatever_their_numbers(models):
    found = compared(models, "modules", measure="device_total_seconds")
    a, b = (placed_rows(found, side, "device_total_seconds") for side in "ab")
    assert a == pytest.approx(
        {
            "Net_0": 21e-6,
            "  Block_0 \N{RIGHTWARDS ARROW} Block_7": 10e-6,
            "  Block_1 \N{RIGHTWARDS ARROW} Block_8": 11e-6,
            "  Stem_0": np.nan,
        },
        nan_ok=True,
    )
    assert list(b.values()) == pytest.approx([63e-6, 21e-6, 22e-6, 20e-6])


def test_operators_of_one_name_are_compared_in_each_module(models):
    found = compared(models, "calls")
    assert found["measure"] == "device_total_seconds"
    rows = placed_rows(found, "a", "device_self_seconds")
    operators = [name for name in rows if "aten::mm" in name]
    assert operators == ["    aten::mm"]
    names = found["rows"]["columns"][0]["texts"]
    assert names.count("aten::mm") == 3
    sums = columns(found["rows"])
    for side, total in (("a", 21e-6), ("b", 63e-6)):
        assert np.nansum(sums[f"{side}_device_self_seconds"]) == pytest.approx(total)


def test_of_very_many_calls_those_that_differ_most_stay_with_what_is_around(
    models, monkeypatch
):
    monkeypatch.setattr("memboard.tb_plugin.facts.comparison.traces.MAX_ROWS", 4)
    found = compared(models, "calls")
    assert found["parent"].tolist() == [-1, 0, 0, 2]
    names = found["rows"]["columns"][0]["texts"]
    assert (names[0], *names[2:]) == (
        "nn.Module: Net_0",
        "nn.Module: Stem_0",
        "aten::mm",
    )
    assert "rows that differ least are not among them" in found["note"]


def test_while_a_trace_is_opened_nothing_is_said_of_it(models, monkeypatch):
    page, run, ids = models
    monkeypatch.setattr("memboard.tb_plugin.facts.traces.profiled.OPEN_SECONDS", 0.0)
    monkeypatch.setattr(Job, "wait", lambda _job, _seconds: False)
    fresh = Page(page.store.index.logdirs[0].path)
    query = {"source": ids["1"], "b_source": ids["2"]}
    found = fresh.get("/compare_traces", run=run, **query)
    assert (found["sentence"], found["roles"]["summary"]) == ("", "")
    assert found["lacks"] == "A and B are being opened."


NAMES = st.sampled_from(["Block_0", "Block_1", "Block_2", "Head_0", "aten::mm"])


@st.composite
def trees(draw):
    """Names below one row differ."""
    names, parents = [], []
    for _ in range(draw(st.integers(0, 12))):
        parent = draw(st.integers(-1, len(names) - 1))
        name = draw(NAMES)
        if (parent, name) not in zip(parents, names, strict=True):
            names.append(name)
            parents.append(parent)
    order = draw(st.permutations(range(len(names))))
    return NamedTree(names, parents, order)


@given(trees(), trees())
def test_matched_trees_hold_each_row_once_below_its_own_parent(a, b):
    matched = matched_trees(a, b)
    for tree, rows in ((a, matched.a), (b, matched.b)):
        assert sorted(rows[rows >= 0].tolist()) == list(range(len(tree.names)))
        for place, row in enumerate(rows.tolist()):
            parent = int(matched.parents[place])
            assert parent < place
            if row >= 0:
                around = -1 if parent < 0 else int(rows[parent])
                assert around == tree.parents[row]
    both = matched_trees(a, a)
    assert both.a.tolist() == both.b.tolist()
    assert sorted(both.names) == sorted(a.names)


def test_figures_have_a_unit_each():
    table = figures_of(
        "Numbers",
        [
            Figure("Peak", "bytes", 40.0, 30.0, note="· rank 2"),
            Figure("Step time", "seconds", 0.0, 1.0),
            Figure("Growth", "bytes", None, 1.0),
        ],
    )
    assert table.columns[-1].texts == ("bytes", "seconds", "bytes")
    numbers = {one.key: one.numbers for one in table.columns}
    np.testing.assert_array_equal(numbers["difference"], [-10, 1, np.nan])
    np.testing.assert_array_equal(numbers["percent"], [-0.25, np.nan, np.nan])


def test_what_a_trace_lacks_is_said(two):
    found = compared(two, "modules")
    assert found["lacks"] == (
        "Neither has any modules: it was recorded without with_stack."
    )
    assert compared(two, "memory")["note"].startswith("Memory of CUDA 0.")


def test_rows_that_differ_least_are_left_out_of_very_many(two, monkeypatch):
    every = compared(two)
    monkeypatch.setattr("memboard.tb_plugin.facts.comparison.traces.MAX_ROWS", 2)
    found = compared(two, "operators", b_run=two[1])
    names, kept = (one["rows"]["columns"][0]["texts"] for one in (every, found))
    assert len(kept) == 2
    assert f"{len(names) - 2} row" in found["note"]
    change = np.abs(every["rows"]["columns"][3]["numbers"])
    assert set(kept) == {names[row] for row in np.argsort(-change, kind="stable")[:2]}
