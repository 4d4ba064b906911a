"""The index finds what exists, cheaply, and opens nothing that it should not."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from memboard.tb_plugin.index.logdirs import logdirs_of
from memboard.tb_plugin.index.search.folders import foreign_kind
from memboard.tb_plugin.index.search.walk import Index
from tests.builders import RunBuilder
from tests.tb_plugin.client import Page, Ticking, refresh
from tests.tb_plugin.logdirs import index_of

if TYPE_CHECKING:
    from pathlib import Path


def names(index: Index) -> list[str]:
    return sorted(run.name for run in index.runs.values())


def test_runs_are_named_as_tensorboard_names_them(tmp_path):
    for name in (".", "a", "deep/er/b"):
        RunBuilder(tmp_path / name).simple(2, 2)
    index = index_of(tmp_path)
    assert names(index) == [".", "a", "deep/er/b"]
    for run in index.runs.values():
        assert sorted(rank for rank, _ in run.files) == [0, 1]


def test_new_runs_ranks_and_rows_are_noticed_and_nothing_else_counts(tmp_path):
    clock = Ticking()
    (rank,) = RunBuilder(tmp_path / "a").simple(1, 10, close=False)
    index = index_of(tmp_path, clock)
    (run,) = index.runs.values()
    version = run.version

    def later() -> None:
        clock.later()
        index.refresh()

    later()
    assert run.version == version
    rank.steps([10], allocated_peak_bytes=[1])
    later()
    assert run.version == version + 1
    RunBuilder(tmp_path / "a").rank(1)
    later()
    assert run.version == version + 2
    RunBuilder(tmp_path / "b").simple(1, 1)
    later()
    assert names(index) == ["a", "b"]
    for path in (tmp_path / "b").rglob("*.events"):
        path.unlink()
    (tmp_path / "b" / "plugins" / "memboard").rmdir()
    later()
    assert names(index) == ["a"]


def test_a_poll_with_nothing_new_opens_and_lists_nothing_twice(tmp_path, monkeypatch):
    RunBuilder(tmp_path / "a").simple(3, 1)
    clock = Ticking()
    index = index_of(tmp_path, clock)
    for path in [tmp_path, *tmp_path.rglob("*")]:
        if path.is_dir():
            os.utime(path, (1e9, 1e9))
    clock.later()
    index.refresh()
    listed, opened = [], []
    here, scandir, open_ = threading.get_ident(), os.scandir, open

    def noted(path, names, do):
        # Threads that other tests left behind look at files of their own.
        if threading.get_ident() == here:
            names.append(str(path))
        return do

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", lambda p=".": noted(p, listed, scandir)(p))
        patch.setattr(
            "builtins.open", lambda p, *a, **k: noted(p, opened, open_)(p, *a, **k)
        )
        clock.later()
        index.refresh()
    assert listed == [str(tmp_path / "a" / "plugins" / "memboard")]
    assert opened == []


def test_logdir_spec_names_runs_by_group(tmp_path):
    for name in ("one", "two"):
        RunBuilder(tmp_path / name / "r").simple(1, 1)
    spec = f"first:{tmp_path / 'one'},{tmp_path / 'two'}"
    context = SimpleNamespace(
        logdir="", flags=SimpleNamespace(logdir="", logdir_spec=spec)
    )
    index = Index(logdirs_of(context), Ticking())
    index.refresh()
    assert names(index) == ["first/r", "r"]


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("file://elsewhere/runs", "file://elsewhere/runs"),
        ("simplecache::s3://k:secret@bucket/runs?x", "simplecache::s3://bucket/runs"),
        ("s3://[secret", "s3://…"),
    ],
)
def test_addresses_that_cannot_be_read_are_named(address, shown):
    index = index_of(address)
    (problem,) = index.problems()
    assert problem.path == shown
    assert "are not read" in problem.what
    assert index.runs == {}


def test_a_file_url_is_a_local_directory(tmp_path):
    RunBuilder(tmp_path / "a b").simple(1, 1)
    url = f"file://{tmp_path}".replace(" ", "%20")
    assert names(index_of(url)) == ["a b"]


def test_a_logdir_that_does_not_exist_yet_fills_when_it_does(tmp_path):
    clock = Ticking()
    index = index_of(tmp_path / "later", clock)
    assert len(index.problems()) == 1
    RunBuilder(tmp_path / "later").simple(1, 1)
    clock.later()
    index.refresh()
    assert names(index) == ["."]
    assert index.problems() == ()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("events.out.tfevents.1.host", "tfevents"),
        ("host.xplane.pb", "other"),
        ("rank_3_memory_stats.yaml", "memprofiler"),
        ("cuda_alloc_rank_0.f.1.start.pickle", "memprofiler"),
        ("worker0.123.pt.trace.json", None),
        ("ep0-ba3-rank1.json", None),
        ("memory_snapshot.pickle", None),
        ("model.pt", None),
        ("data.pickle", None),
        ("snapshot", None),
    ],
)
def test_other_tools_files_are_told_apart_by_name(name, kind):
    assert foreign_kind(name) == kind


def test_foreign_files_are_counted_and_our_own_are_not(tmp_path):
    run = RunBuilder(tmp_path / "a")
    run.simple(1, 1)
    (tmp_path / "a" / "memboard").mkdir()
    (tmp_path / "a" / "memboard" / "events.out.tfevents.1").touch()
    for name in ("events.out.tfevents.2", "memory_snapshot.pickle"):
        (tmp_path / "a" / name).touch()
    found = {f.kind: (f.num_files, f.example) for f in index_of(tmp_path).foreign()}
    assert found == {"tfevents": (1, "a/events.out.tfevents.2")}, (
        "what a run is made of is not foreign"
    )


def test_links_to_directories_are_followed_wherever_they_lead(tmp_path):
    RunBuilder(tmp_path / "outside" / "x").simple(1, 5)
    RunBuilder(tmp_path / "other").simple(1, 5)
    logdir = tmp_path / "logdir"
    RunBuilder(logdir / "a").simple(1, 5)
    (logdir / "latest").symlink_to(logdir / "a")
    (logdir / "one").symlink_to(tmp_path / "outside" / "x")
    (logdir / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "outside" / "x" / "other").symlink_to(tmp_path / "other")
    (logdir / "gone").symlink_to(tmp_path / "moved_away")
    page = Page(logdir)
    found = page.get("/runs")
    assert {run["name"]: run["num_ranks"] for run in found["runs"]} == {
        "a": 1,  # once: what lies in the logdir is found where it lies
        "one": 1,
        "one/other": 1,
        "out/x": 1,
        "out/x/other": 1,
    }
    assert page.of_run("/overview", "one")["strip"]["rank"].tolist() == [0]
    (problem,) = found["problems"]
    assert problem["path"] == "gone"
    assert "leads to nothing" in problem["what"]


def test_links_that_lead_around_end(tmp_path):
    RunBuilder(tmp_path / "outside" / "x").simple(1, 5)
    (tmp_path / "outside" / "x" / "back").symlink_to(tmp_path / "outside")
    (tmp_path / "outside" / "there").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "here").symlink_to(tmp_path / "outside")
    logdir = tmp_path / "logdir"
    (logdir / "a").mkdir(parents=True)
    (logdir / "out").symlink_to(tmp_path / "outside")
    (logdir / "itself").symlink_to(logdir)
    (logdir / "a" / "above").symlink_to("/")
    index = index_of(logdir)
    assert names(index) == ["out/x"]
    assert [problem.path for problem in index.problems()] == [
        "a/above",
        "out/x/back",
    ]
    assert "lies in itself" in index.problems()[0].what


def test_linked_rank_files_are_read_where_their_names_are_of_a_rank(tmp_path):
    outside = RunBuilder(tmp_path / "outside" / "x")
    (rank,) = outside.simple(1, 5)
    logdir = tmp_path / "logdir"
    inside = RunBuilder(logdir / "a")
    (kept,) = inside.simple(1, 5)

    def link(number: int, target: Path) -> None:
        name = kept.path.name.replace("rank00000", f"rank{number:05d}")
        (inside.files / name).symlink_to(target)

    secret = tmp_path / "secret"
    secret.write_bytes(rank.path.read_bytes())
    link(1, kept.path)
    link(2, rank.path)
    link(3, secret)
    link(4, tmp_path / "gone")
    index = index_of(logdir)
    (run,) = index.runs.values()
    assert sorted(rank for rank, _ in run.files) == [0, 1, 2]
    said = {problem.rank: problem.what for problem in run.problems}
    assert "leads out of the logdir" in said.pop(3)
    assert "leads to nothing" in said.pop(4)
    assert said == {}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_or_a_directory_in_place_of_a_file_is_not_opened(tmp_path):
    run = RunBuilder(tmp_path)
    (rank,) = run.simple(1, 5)
    os.mkfifo(run.files / rank.path.name.replace("rank00000", "rank00001"))
    (run.files / rank.path.name.replace("rank00000", "rank00002")).mkdir()
    page = Page(tmp_path)
    found = page.of_run("/overview")
    assert found["strip"]["rank"].tolist() == [0]
    assert sorted(p["rank"] for p in found["problems"]) == [1, 2]


def test_directories_too_deep_are_said(tmp_path):
    deep = tmp_path.joinpath(*["d"] * 20)
    RunBuilder(deep).simple(1, 1)
    index = index_of(tmp_path)
    assert index.runs == {}
    assert "levels deep" in index.problems()[0].what


def test_too_many_entries_are_said_and_what_was_found_stays(tmp_path, monkeypatch):
    monkeypatch.setattr("memboard.tb_plugin.index.search.walk.MAX_DIRECTORIES", 5)
    RunBuilder(tmp_path / "a").simple(1, 1)
    for number in range(20):
        (tmp_path / f"z{number:02d}").mkdir()
    index = index_of(tmp_path)
    assert names(index) == ["a"]
    assert any("too many entries" in p.what for p in index.problems())


def test_a_slow_walk_gives_way_and_goes_on_later(tmp_path, monkeypatch):
    monkeypatch.setattr("memboard.tb_plugin.index.search.walk._WALK_SECONDS", 0.5)
    for number in range(30):
        RunBuilder(tmp_path / f"r{number:02d}").simple(1, 1)

    class Slow(Ticking):
        def __call__(self) -> float:
            self.now += 0.1
            return self.now

    index = Index(logdirs_of(SimpleNamespace(logdir=str(tmp_path), flags=None)), Slow())
    index.refresh()
    assert 0 < len(index.runs) < 30
    for _ in range(200):
        index.refresh()
    assert len(index.runs) == 30


def test_news_of_a_store_while_a_walk_gives_way_are_walked_for(tmp_path, monkeypatch):
    """They may be of a directory that it has passed: a store lists behind its back."""
    monkeypatch.setattr("memboard.tb_plugin.index.search.walk._WALK_SECONDS", 0.0)
    for name in ("a", "b"):
        RunBuilder(tmp_path / name).simple(1, 1)
    news = 0
    monkeypatch.setattr(Index, "_num_news", lambda _: news)
    index = index_of(tmp_path)
    assert index.is_walking
    news = 1
    while index._walk is not None:
        index.refresh()
    assert index.is_walking
    while index.is_walking:
        index.refresh()
    assert names(index) == ["a", "b"]


def test_a_broken_run_does_not_hide_the_others(tmp_path):
    RunBuilder(tmp_path / "good").simple(1, 5)
    bad = RunBuilder(tmp_path / "bad")
    (bad.files / "rank00000-20260101T000000000-00000000.events").write_bytes(
        b"\0" * 5000
    )
    page = Page(tmp_path)
    found = {r["name"]: r for r in page.get("/runs")["runs"]}
    assert set(found) == {"good", "bad"}
    assert found["good"]["last_step"] == 4
    refresh(page)
    for route in ("/overview", "/timeline", "/heatmap", "/host"):
        page.of_run(route, "bad")
        page.of_run(route, "good")
