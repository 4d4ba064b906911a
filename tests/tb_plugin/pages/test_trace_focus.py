"""What a timeline shows first: a step of interest, without empty time at its ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import RunBuilder
from tests.kineto_files import KinetoFile
from tests.tb_plugin.client import Page, answered
from tests.tb_plugin.step_runs import Story, write


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
        "words": "Opened at step 6, the slowest traced (rank 1)",
        "start_ns": 115_000,
        "end_ns": 165_000,
    }


def test_it_is_the_step_asked_for_on_the_rank_asked_for(page):
    found = focus(page, step=7, rank=1)
    assert (found["words"], found["start_ns"]) == ("Opened at step 7", 520_000)
    # A step that nobody traced is none to go to.
    assert "the slowest" in focus(page, step=99)["words"]


def test_it_is_the_first_step_where_none_is_slow(page):
    found = focus(page, rank=0)
    assert found["words"] == "Opened at step 5, the first traced"
    assert (found["start_ns"], found["end_ns"]) == (10_000, 60_000)


def test_without_steps_it_is_all_of_the_work(tmp_path):
    made = KinetoFile()
    made.slice("PyTorch Profiler (0)", 0, 9_000, "Trace")
    made.slice("aten::mm", 4_000, 50)
    made.slice("aten::add", 4_100, 20)
    made.write(tmp_path / "exp" / "host_0.1.pt.trace.json")
    found = focus(Page(tmp_path))
    assert found["words"] == ""
    assert found["end_ns"] - found["start_ns"] == 120_000


def test_it_is_on_the_rank_that_the_others_wait_for(tmp_path):
    def more(rank: int, step: int) -> dict[str, float]:
        return {"dataloader": 38.0} if rank == 5 else {}

    write(tmp_path / "exp", Story(6, 60, in_step=True, more=more).tell())
    for rank in range(6):
        made = marked([100, 100, 300 if rank == 2 else 100], rank=rank)
        made.write(tmp_path / "exp" / f"host_{rank}.1.pt.trace.json")
    page = Page(tmp_path)
    found = focus(page)
    assert found["words"] == "Opened at step 5 of rank 5, the straggler"
    assert page.of_run("/trace", "exp")["shown_ranks"] == [5, 0, 1, 2]
    pinned = page.of_run("/trace", "exp", pinned="3-4")
    assert pinned["shown_ranks"] == [5, 3, 4, 0]
    # Who names ranks sees these alone.
    assert page.of_run("/trace", "exp", ranks="0,2")["shown_ranks"] == [0, 2]
    assert "rank 2" in focus(page, ranks="0,2")["words"]


def test_it_is_the_last_step_of_a_rank_that_ran_out_of_memory(tmp_path):
    run = RunBuilder(tmp_path / "exp")
    for rank in range(6):
        made = run.rank(rank, world_size=6)
        made.steps(range(8), allocated_peak_bytes=[1 << 30] * 8)
        if rank == 4:
            made.note("oom", step=7)
        made.close()
        trace = marked([100, 100, 100], rank=rank)
        trace.write(tmp_path / "exp" / f"host_{rank}.1.pt.trace.json")
    page = Page(tmp_path)
    words = focus(page)["words"]
    assert words == "Opened at step 7 of rank 4, which ran out of memory"
    assert page.of_run("/trace", "exp")["shown_ranks"] == [4, 0, 1, 2]
