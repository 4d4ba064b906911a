"""What a timeline shows first: a step of interest, without empty time at its ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kineto_files import KinetoFile
from tests.tb_plugin.client import Page, answered


def marked(lengths_us: list[int], rank: int = 0) -> KinetoFile:
    """Steps one after the other, each with work from its 10th to its 60th us."""
    made, at = KinetoFile(rank, 2), 1_000
    for number, took in enumerate(lengths_us, start=5):
        made.step(number, at, took)
        made.slice("aten::mm", at + 10, 50)
        at += took + 5
    return made


def focus(page: Page, **query: Any) -> dict[str, Any]:
    answer = answered(
        lambda: page.of_run("/trace", "exp", **query),
        lambda one: (
            bool(one["sources"])
            and all(source["state"] != "opening" for source in one["sources"])
        ),
    )
    return answer["focus"]


@pytest.fixture
def page(tmp_path):
    made = {0: marked([100, 100, 100]), 1: marked([100, 400, 100], rank=1)}
    for rank, file in made.items():
        file.write(tmp_path / "exp" / f"host_{rank}.1.pt.trace.json")
    return Page(tmp_path)


def test_it_is_the_slowest_traced_step_cut_to_its_work(page):
    assert focus(page) == {
        "rank": 1,
        "step": 6,
        "start_ns": 115_000,
        "end_ns": 165_000,
        "why": "slowest",
    }


def test_it_is_the_step_asked_for_on_the_rank_asked_for(page):
    found = focus(page, step=7, rank=1)
    assert (found["rank"], found["step"], found["why"]) == (1, 7, "asked")
    # A step that nobody traced is none to go to.
    assert focus(page, step=99)["why"] == "slowest"


def test_it_is_the_first_step_where_none_is_slow(page):
    found = focus(page, rank=0)
    assert (found["step"], found["why"]) == (5, "first")
    assert (found["start_ns"], found["end_ns"]) == (10_000, 60_000)


def test_without_steps_it_is_all_of_the_work(tmp_path):
    made = KinetoFile()
    made.slice("PyTorch Profiler (0)", 0, 9_000, "Trace")
    made.slice("aten::mm", 4_000, 50)
    made.slice("aten::add", 4_100, 20)
    made.write(tmp_path / "exp" / "host_0.1.pt.trace.json")
    found = focus(Page(tmp_path))
    assert (found["step"], found["why"]) == (None, "all")
    assert found["end_ns"] - found["start_ns"] == 120_000
