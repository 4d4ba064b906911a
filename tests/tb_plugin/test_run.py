"""A run that is opened bit by bit: what is not read yet is not judged."""

from __future__ import annotations

import random
import threading
import time

import numpy as np
import pytest

from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.index.listing import FoundRun
from memboard.tb_plugin.index.run import Run
from tests.builders import RunBuilder
from tests.tb_plugin.client import Page, decode, refresh

PLENTY = 60.0


class Steps(Budget):
    """Allows so many pieces of work."""

    def __init__(self, count: int) -> None:
        super().__init__(PLENTY)
        self.count = count

    def allows(self, seconds: float = 0.0) -> bool:
        self.count -= 1
        self.exhausted |= self.count < 0
        return self.count >= 0


def opened(builder) -> tuple[FoundRun, Run]:
    folder = str(builder.files)
    found = FoundRun.recorded("id", "exp", folder, "exp", str(builder.folder))
    found.list_files()
    return found, Run(found)


def test_a_spent_budget_opens_a_part_and_the_next_ones_the_rest(run):
    run.simple(6, 5)
    _, opening = opened(run)
    opening.update(Steps(4))
    assert 0 < len(opening.files) < 6
    assert opening.unfinished
    assert not opening.is_whole
    unread = opening.unread_ranks
    assert unread
    assert unread == set(range(6)) - {
        file.rank for file in opening.files.values() if not file.unfinished
    }
    for _ in range(20):
        opening.update(Steps(4))
    assert opening.is_whole
    assert not opening.unfinished
    assert opening.unread_ranks == frozenset()


def test_files_that_all_grow_get_their_turns(run):
    ranks = run.simple(6, 5, close=False)
    found, following = opened(run)
    following.update(Budget(PLENTY))
    for round_ in range(6):
        for rank in ranks:
            rank.steps([5 + round_], allocated_peak_bytes=[1])
        found.list_files()
        following.update(Steps(3))
    newest = [
        max(ref.last_step for refs in file.behind.chunks.values() for ref in refs)
        for file in following.files.values()
    ]
    assert len(newest) == 6
    assert min(newest) > 4, "some rank was never read again"


@pytest.mark.parametrize("route", ["/overview", "/timeline", "/heatmap"])
def test_ranks_not_read_yet_are_not_lost_but_not_counted(
    run, tmp_path, monkeypatch, route
):
    run.simple(6, 5)
    run.rank(6, world_size=7).steps(range(5), allocated_peak_bytes=range(5))
    page = Page(tmp_path)
    run_id = page.run_id("exp")  # opens all of a small run
    (known,) = page.store.runs()
    known.files.clear()
    known._listing = -1
    monkeypatch.setattr("memboard.tb_plugin.facts.readers.Budget", lambda _: Steps(5))
    answer = page.get(route, run=run_id)
    assert known.unread_ranks
    if route == "/overview":
        strip = answer["strip"]
        assert len(strip["rank"]) == 7
        assert not strip["lost"].any()
        read = [bool(p == p) for p in strip["peak_bytes"]]
        assert 0 < sum(read) < 7
        assert answer["attempts"][0]["ended"] == "closed"
        assert answer["attempts"][0]["num_ranks"] == len(known.files)
    monkeypatch.undo()
    strip = page.get("/overview", run=run_id)["strip"]
    assert list(strip["lost"]) == [0] * 6 + [1]
    assert not any(p != p for p in strip["peak_bytes"])


def test_an_overview_cut_short_is_completed_by_the_next_polls(
    run, tmp_path, monkeypatch
):
    run.simple(6, 5)
    # The list of runs would have looked at so small a run already.
    monkeypatch.setattr("memboard.tb_plugin.server.state.STANDING_SECONDS", -1.0)
    page = Page(tmp_path)
    run_id = page.run_id("exp")
    monkeypatch.setattr(
        "memboard.tb_plugin.server.views.run.Budget", lambda _: Steps(2)
    )
    counted, tags = [], set()
    for _ in range(6):
        response = page.raw("/overview", run=run_id)
        tags.add(response.headers["ETag"])
        peaks = decode(response)["strip"]["peak_bytes"]
        counted.append(sum(peak == peak for peak in peaks))
    assert counted[0] < 6
    assert counted[-1] == 6
    assert len(tags) > 1
    last = response.headers["ETag"]
    again = page.raw("/overview", run=run_id, headers={"If-None-Match": last})
    assert again.status_code == 304


def test_a_long_look_at_one_run_keeps_nobody_from_another(tmp_path):
    for name in ("a", "b"):
        RunBuilder(tmp_path / name).simple(2, 5)
    page = Page(tmp_path)
    ids = {name: page.run_id(name) for name in ("a", "b")}
    busy, done = threading.Event(), threading.Event()

    def look_long():
        with page.store.run(ids["a"]).lock:
            busy.set()
            done.wait(PLENTY)

    looker = threading.Thread(target=look_long)
    looker.start()
    assert busy.wait(PLENTY)
    answered = threading.Thread(
        target=page.get, args=("/timeline",), kwargs={"run": ids["b"]}
    )
    answered.start()
    answered.join(PLENTY)
    assert not answered.is_alive()
    done.set()
    looker.join()


def zeros(size: int) -> bytes:
    return bytes(size)


def noise(size: int) -> bytes:
    return random.Random(0).randbytes(size)


@pytest.mark.parametrize("filled", [zeros, noise])
@pytest.mark.parametrize("size", [0.5, 1.0, 1.5])
def test_a_recording_that_is_written_over_is_not_shown_from_memory(
    run, tmp_path, filled, size
):
    """In place, while the server runs; whether it is longer then, or shorter."""
    _, spoilt = run.simple(2, 50)
    page = Page(tmp_path)
    found = page.of_run("/overview", "exp")
    assert found["problems"] == []
    assert not np.isnan(found["strip"]["peak_bytes"]).any()
    with spoilt.path.open("r+b") as file:
        length = int(spoilt.path.stat().st_size * size)
        file.write(filled(length))
        file.truncate(length)
    refresh(page)
    page.get("/runs")
    read = page.store.run(page.run_id("exp"))
    # Just now somebody may be creating it.
    seen = page.of_run("/overview", "exp")
    assert np.isnan(seen["strip"]["peak_bytes"]).tolist() == [False, True]
    read._clock = lambda: time.time() + 3600
    refresh(page)
    (summary,) = page.get("/runs")["runs"]
    assert summary["num_problems"] == 1
    (problem,) = page.of_run("/overview", "exp")["problems"]
    assert problem["rank"] == 1
    assert "The file holds no MemBoard records" in problem["what"]
    assert problem["path"].endswith(spoilt.path.name)


def test_a_file_that_is_still_being_read_is_no_damage(tmp_path, run, monkeypatch):
    run.simple(2, 50)
    page = Page(tmp_path)
    monkeypatch.setattr("memboard.tb_plugin.server.state.PICKER_SECONDS", -1.0)
    (summary,) = page.get("/runs")["runs"]
    shown = page.store.run(page.run_id("exp")).problems
    assert {one.what for one in shown} == {"The file has not been read to its end yet."}
    assert summary["num_problems"] == 0


def test_a_recording_that_was_written_over_and_goes_on_is_named(run, tmp_path):
    """Its process did not notice: what it writes from now on is still to be had."""
    (rank,) = run.simple(1, 50, close=False)
    page = Page(tmp_path)
    assert page.of_run("/overview", "exp")["problems"] == []
    with rank.path.open("r+b") as file:
        file.write(bytes(rank.path.stat().st_size))
    rank.note("after")
    refresh(page)
    page.get("/runs")
    found = page.of_run("/overview", "exp")
    assert np.isnan(found["strip"]["peak_bytes"]).all()
    assert found["problems"]
    assert {problem["rank"] for problem in found["problems"]} == {0}
    read = page.store.run(page.run_id("exp"))
    (file,) = read.files.values()
    assert [note.kind for note in file.notes()] == ["after"]
