"""What a page shows of a simulation while it is written: the death first, and how far."""

from __future__ import annotations

import os
import shutil
from types import SimpleNamespace

import pytest

from memboard.collector.simulate import SimulatedRun, write_run
from memboard.collector.simulate import run as writing
from tests.tb_plugin.client import Page

RANKS = 5


def looked_at(page: Page) -> SimpleNamespace | None:
    """The run as the rail and the Overview show it; None: there is none yet."""
    page.store.index._clock.later()
    answer = page.get("/runs")
    if not answer["runs"]:
        return None
    (run,), (standing,) = answer["runs"], answer["standings"]
    found = page.get("/findings", run=run["id"])["findings"]
    return SimpleNamespace(
        num_ranks=run["num_ranks"],
        is_live=run["live"],
        status=standing["status"],
        sentences={one["key"]: one["sentence"] for one in found},
    )


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """The page at every moment of the writing, and the logdir."""
    logdir = tmp_path_factory.mktemp("watched")
    page, seen = Page(logdir), []
    with pytest.MonkeyPatch.context() as patch:

        def watch(name: str) -> None:
            write = getattr(writing, name)

            def watched_write(*given):
                written = write(*given)
                seen.append(looked_at(page))
                return written

            patch.setattr(writing, name, watched_write)

        watch("_write_rows")  # behind it the file is not closed yet
        watch("_write_rank")
        write_run(SimulatedRun(num_ranks=RANKS, num_steps=30), logdir / "demo")
    seen.append(looked_at(page))
    return seen, logdir


def test_the_rank_that_dies_is_there_first(watched):
    first, *others = (one for one in watched[0] if one is not None)
    assert first.num_ranks == 1
    assert all(one.status == "out_of_memory" for one in (first, *others))
    assert all(any("ran out" in s or "retained" in s for s in one.sentences.values()) for one in (first, *others))  # fmt: skip


def test_no_rank_that_is_being_written_seems_killed(watched):
    seen, _ = watched
    assert [one.num_ranks if one else 0 for one in seen] == sorted(
        [*range(RANKS), *range(1, RANKS + 1), RANKS]
    )
    for one in filter(None, seen):
        keys = set(one.sentences)
        assert not keys & {"ended_lost", "unreadable", "empty"}, one.sentences


def test_the_page_says_how_far_the_simulation_is(watched):
    *before, last = filter(None, watched[0])
    for one in before:
        if one.num_ranks < RANKS:
            assert one.is_live
            of = f"Simulating {one.num_ranks} of {RANKS} ranks"
            assert one.sentences["simulating"].startswith(of)
    assert "simulating" not in last.sentences
    assert not last.is_live


def test_a_simulation_that_was_interrupted_is_not_going_on(watched, tmp_path):
    _, logdir = watched
    target = tmp_path / "logs"
    shutil.copytree(logdir, target)
    files = sorted(target.rglob("*.events"))
    files[0].unlink()
    for path in files[1:]:
        os.utime(path, (1e9, 1e9))
    one = looked_at(Page(target))
    assert not one.is_live
    assert one.sentences["simulating"].startswith(f"{RANKS - 1} of {RANKS} ranks were")
