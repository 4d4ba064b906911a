"""Files given by `memboard open`: exactly those that were named, and nothing else."""

from __future__ import annotations

from pathlib import Path

from werkzeug.test import Client

from memboard.tb_plugin.formats.file_listing import file_id
from memboard.tb_plugin.index.logdirs import OpenedPaths, runs_of
from memboard.tb_plugin.plugin import MemBoardPlugin
from tests.builders import RunBuilder
from tests.tb_plugin.client import decode
from tests.tb_plugin.logdirs import write


def named_file(path: Path) -> str:
    return str(write(path))


def runs_shown(given: OpenedPaths) -> dict:
    plugin = MemBoardPlugin(None, given)
    answer = decode(Client(plugin.get_plugin_apps()["/runs"]).get("/runs"))
    return {run["name"]: run for run in answer["runs"]}


def test_files_and_folders_are_shown_and_nothing_beside_them(tmp_path):
    named = named_file(tmp_path / "a" / "memory_snapshot_rank3.pickle")
    write(tmp_path / "a" / "memory_snapshot_rank4.pickle")
    RunBuilder(tmp_path / "b" / "exp").simple(2, 3)
    RunBuilder(tmp_path / "c").simple(1, 3)
    shown = runs_shown(OpenedPaths((named,), (str(tmp_path / "b"),)))
    assert sorted(shown) == ["a", "b/exp"]
    assert (shown["a"]["made_of"], shown["a"]["num_ranks"]) == ("snapshots", 1)
    assert shown["b/exp"]["num_ranks"] == 2


def test_files_of_one_layout_are_one_run_with_ids_that_stay(tmp_path):
    paths = [
        named_file(tmp_path / "job" / "step_1" / "rank0_memory_snapshot.pickle"),
        named_file(tmp_path / "job" / "step_2" / "rank1_memory_snapshot.pickle"),
        named_file(tmp_path / "other" / "x.pickle"),
    ]
    first, second = runs_of(paths), runs_of(reversed(paths))
    assert {run.id for run in first} == {run.id for run in second}
    by_name = {run.name: run for run in first}
    assert sorted(by_name) == ["job", "other"]
    by_name["job"].list_files()
    files = by_name["job"].snapshots.found.files
    assert [(file.rank, file.said.step) for file in files] == [(0, 1), (1, 2)]
    assert [file.id for file in files] == [file_id("f", path) for path in paths[:2]]


def test_folders_of_the_same_name_are_told_apart(tmp_path):
    paths = [named_file(tmp_path / name / "out" / "s.pickle") for name in ("a", "b")]
    assert [run.name for run in runs_of(paths)] == [
        str(tmp_path / "a" / "out"),
        str(tmp_path / "b" / "out"),
    ]


def test_a_named_file_that_becomes_a_link_is_let_go(tmp_path):
    path = named_file(tmp_path / "a" / "memory_snapshot.pickle")
    secret = named_file(tmp_path / "secret.pickle")
    (run,) = runs_of([path])
    run.list_files()
    assert len(run.snapshots.found.files) == 1
    Path(path).unlink()
    Path(path).symlink_to(secret)
    run.list_files()
    assert run.snapshots.found.files == ()
    assert "This is a link" in run.problems[0].what
