"""`/compare_traces`: tables of two traces joined by name."""

from __future__ import annotations

import numpy as np
import pytest

from tb_plugin.pages.compare.traces import joined, paths
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


@pytest.fixture
def two(tmp_path) -> tuple[Page, str, dict[str, str]]:
    """A trace of two steps, and one of three that wait less."""
    trained(0, 2, 150).write(tmp_path / "exp" / "host_0.1.pt.trace.json")
    trained(0, 3, 0).write(tmp_path / "exp" / "host_0.2.pt.trace.json")
    page = Page(tmp_path)
    traces = ask(page, "profile")["choice"]["traces"]
    ids = {one["name"].split(".")[1]: one["id"] for one in traces}
    for source in ids.values():
        ask(page, "profile", source=source)
    return page, run_of(page), ids


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
    calls = next(one for one in found["measures"] if one["name"] == "calls")
    for side, other, source in (("a", 2, ids["1"]), ("b", 1, ids["2"])):
        own = ask(page, route, source=source)
        num_calls = dict(zip(own["name"], own["num_calls"].tolist(), strict=True))
        rows = zip(found["names"], calls[side].tolist(), found["only"], strict=True)
        known = {name: value for name, value, only in rows if only != other}
        assert known == num_calls
    first = found["measures"][0]
    assert first["unit"] == "seconds"
    assert np.nansum(first["a"]) > 0


def test_what_a_trace_lacks_is_said(two):
    found = compared(two, "modules")
    assert found["lacks"] == (
        "Neither has any modules: it was recorded without with_stack."
    )
    assert compared(two, "memory")["note"].startswith("Memory of CUDA 0.")


def test_rows_that_differ_least_are_left_out_of_very_many(two, monkeypatch):
    every = compared(two)
    monkeypatch.setattr("tb_plugin.pages.compare.traces.MAX_ROWS", 2)
    found = compared(two, "operators", b_run=two[1])
    assert len(found["names"]) == 2
    assert f"{len(every['names']) - 2} row" in found["note"]
    one = every["measures"][0]
    change = np.abs(np.nan_to_num(one["b"]) - np.nan_to_num(one["a"]))
    largest = {every["names"][row] for row in np.argsort(-change, kind="stable")[:2]}
    assert set(found["names"]) == largest
