"""Routes are declared once, and say by its name which parameter is invalid, and why."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.contract.parameters import expected
from memboard.tb_plugin.rank_set import RankSet
from memboard.tb_plugin.server.routes import ROUTES, query_of
from tests.tb_plugin.client import Page

PAGES = Path(__file__).parents[2] / "tb_plugin" / "pages"
DECLARES = re.compile(r'@(?:route|of_\w+)\(\s*"(\w+)"')
INVALID = {
    "a whole number": ("many", "1.5", "NaN", "9" * 40, "\u0663", "²"),
    "a number": ("nan", "1e400", "inf", "left"),
    "one of": ("everyone", "../../etc/passwd"),
    "some of": ("explode",),
    "ranks and ranges": ("1-", "a", "0-x", "²", "1-99999999999"),
    "the name of a column": ("__class__('x')",),
    "": ("x" * 5000,),
}
"""What it cannot be, by how that which it may be begins."""


@pytest.fixture
def page(run, tmp_path) -> Page:
    run.simple(3, 20)
    return Page(tmp_path)


def test_every_route_is_declared_by_the_module_that_is_named_for_it():
    declared = {
        name: ".".join(path.relative_to(PAGES).with_suffix("").parts)
        for path in PAGES.rglob("*.py")
        for name in DECLARES.findall(path.read_text())
    }
    assert declared == ROUTES


def test_every_parameter_says_what_it_may_be():
    for name in ROUTES:
        query = query_of(name)
        for parameter in query.__struct_fields__:
            if parameter != "run":
                assert expected(query, parameter) != "something else", (name, parameter)


@pytest.mark.parametrize(
    ("route", "name", "value", "may_be"),
    [
        ("timeline", "px", "wide", "a whole number from 1 to 8,192"),
        ("timeline", "x", "sideways", "one of step, relative, wall"),
        ("timeline", "x0", "nan", "a number"),
        ("timeline", "ranks", "1-", "ranks and ranges of ranks, e.g. 0-7,64"),
        ("timeline", "series", "x" * 4001, "at most 4,000 characters"),
        ("overview", "rank", "-1", "a whole number from 0 to 10,000,000"),
        ("step_heatmap", "part", "gpu", "one of step, dataloader"),
        ("history", "again", "x", "a whole number from 0 to"),
        ("segments", "moment", "-2", "a whole number, -1 for before all events"),
        ("allocator_events", "actions", "alloc,none", "some of "),
        ("trace_slices", "tracks", "a b:1", "tracks like id:0-4,7;id:1"),
        ("trace_slices", "tracks", "a:0-4000", "at most 4000 tracks"),
        ("trace_slices", "t0", "1.5", "whole nanoseconds"),
        ("trace_report", "report", "none", "the id of a report"),
        ("trace_merged", "cycle", "0", "a whole number from 1 to"),
        ("operators", "sort", "a b", "the name of a column"),
        ("operator_memory", "device", "0", "a device as `type:index`"),
    ],
)
def test_what_an_invalid_parameter_may_be_is_said(page, route, name, value, may_be):
    response = page.raw(f"/{route}", run=page.run_id("exp"), **{name: value})
    assert response.status_code == 400
    said = json.loads(response.data)
    assert said["what"].startswith(f"The parameter {name} must be ")
    assert may_be in said["what"]
    assert said["where"] == f"{name}={value[:80]}"


def test_no_parameter_of_any_route_takes_what_it_cannot_be(page):
    run, num_refused = page.run_id("exp"), 0
    for route in ROUTES:
        query = query_of(route)
        for name in sorted({*query.__struct_fields__} - {"run"}):
            may_be = expected(query, name)
            tried = [v for begin, v in INVALID.items() if may_be.startswith(begin)]
            for value in (one for values in tried for one in values):
                response = page.raw(f"/{route}", run=run, **{name: value})
                assert response.status_code == 400, (route, name, value)
                said = json.loads(response.data)
                assert said["what"].startswith(f"The parameter {name} must be ")
                assert said["remedy"]
                num_refused += 1
    assert num_refused > 1000


def test_an_empty_parameter_is_like_a_missing_one(page):
    run = page.run_id("exp")
    asked = ({}, {"ranks": "", "px": "", "x": ""}, {"px": 0})
    tags = {page.raw("/timeline", run=run, **one).headers["ETag"] for one in asked}
    assert len(tags) == 1


def test_two_ends_may_come_in_any_order(page):
    run = page.run_id("exp")
    asked = ({"x0": 3, "x1": 9}, {"x0": 9, "x1": 3})
    tags = {page.raw("/timeline", run=run, **one).headers["ETag"] for one in asked}
    assert len(tags) == 1


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=8))
def test_ranks_read_as_they_are_written(pairs):
    text = ", ".join(f"{a}-{b}" if a != b else str(a) for a, b in pairs)
    found = RankSet.parse(text)
    wanted = {rank for a, b in pairs for rank in range(min(a, b), max(a, b) + 1)}
    assert {rank for rank in range(400) if rank in found} == wanted


@pytest.mark.parametrize("text", ["1-", "a", "-3", "1--2", "²", "1" * 9, "0," * 10_001])
def test_what_is_no_set_of_ranks_is_refused(text):
    with pytest.raises(ValueError, match="not ranks"):
        RankSet.parse(text)


@pytest.mark.parametrize(
    ("unit", "peak"),
    [("", r"[\d.]+ [KMG]iB"), ("KiB", r"[\d,.]+ KiB"), ("B", r"[\d,]+ B")],
)
def test_sentences_tell_sizes_in_the_unit_asked_for(page, unit, peak):
    asked = {"run": page.run_id("exp"), "unit": unit}
    (finding,) = page.get("/findings", **asked)["findings"]
    assert re.search(rf"The highest peak is {peak}\b", finding["sentence"])
