"""`/compare_traces`: tables of two traces joined by name."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.tb_plugin.contract.table import Column
from memboard.tb_plugin.facts.comparison.difference import (
    Figure,
    difference,
    figures_of,
    side_columns,
)
from memboard.tb_plugin.facts.comparison.traces import joined
from memboard.tb_plugin.facts.traces.module_table import paths
from tests.kineto_files import trained
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import ask, run_of


def test_equal_names_meet_in_their_order_and_none_is_lost():
    names, a, b = joined(["x", "x", "y"], ["x", "x", "x", "z"])
    assert names == ["x", "x", "y", "x", "z"]
    assert a.tolist() == [0, 1, 2, -1, -1]
    assert b.tolist() == [0, 1, -1, 2, 3]
    assert joined([], [])[0] == []


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
