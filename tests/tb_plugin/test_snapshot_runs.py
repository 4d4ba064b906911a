"""Runs made of snapshot files: found, named, watched, and never more opened than that."""

from __future__ import annotations

import json
import os
import pickle
import re
from pathlib import Path

import pytest

from memboard.tb_plugin.formats.file_listing import file_id
from memboard.tb_plugin.index.search import sniffing
from tests.builders import RunBuilder
from tests.tb_plugin.client import Page, Ticking, refresh
from tests.tb_plugin.logdirs import SMALL, again, index_of, write

REAL = Path(os.environ.get("MEMBOARD_REAL_DATA", ""))
PLAIN = json.dumps({"segments": [], "device_traces": [[]]}).encode()


def shown(index) -> dict[str, list[str]]:
    """Shown paths by the run's name."""
    return {
        run.name: [file.shown_path for file in run.snapshots.found.files]
        for run in index.runs.values()
        if run.snapshots is not None
    }


def test_a_directory_with_snapshots_is_a_run_named_after_it(tmp_path):
    write(tmp_path / "exp" / "memory_snapshot_rank1.pickle")
    write(tmp_path / "exp" / "memory_snapshot_rank0.pickle")
    write(tmp_path / "top_snapshot.pickle")
    assert shown(index_of(tmp_path)) == {
        ".": ["top_snapshot.pickle"],
        "exp": [
            "exp/memory_snapshot_rank0.pickle",
            "exp/memory_snapshot_rank1.pickle",
        ],
    }


@pytest.mark.parametrize(
    ("paths", "ranks_and_steps"),
    [
        (
            [
                "memory_snapshot/iteration_10/rank1_memory_snapshot.pickle",
                "memory_snapshot/iteration_20_exit/rank0_memory_snapshot.pickle",
            ],
            [(0, 20), (1, 10)],
        ),
        (
            [
                "memory_snapshot/step_000000000010/000001_step_10.pickle",
                "memory_snapshot/step_000000000020_exit/000000_step_20.pickle",
            ],
            [(0, 20), (1, 10)],
        ),
        (
            [
                "memory_snapshot/step_4_rank1/snapshot.pickle",
                "memory_snapshot/oom_rank0/snapshot.pickle",
            ],
            [(0, None), (1, 4)],
        ),
        (
            [
                "memory_snapshot/step_1/rank_0/snapshot.pickle",
                "memory_snapshot/step_1/rank_1/snapshot.pickle",
            ],
            [(0, 1), (1, 1)],
        ),
    ],
)
def test_folders_of_steps_and_ranks_are_one_run(tmp_path, paths, ranks_and_steps):
    for path in paths:
        write(tmp_path / "job" / path)
    index = index_of(tmp_path)
    (run,) = index.runs.values()
    assert run.name == "job/memory_snapshot"
    files = run.snapshots.found.files
    assert [(file.rank, file.said.step) for file in files] == ranks_and_steps
    assert sorted(file.shown_path for file in files) == sorted(
        f"job/{path}" for path in paths
    )


def test_a_logdir_that_is_itself_of_one_step_says_so(tmp_path):
    write(tmp_path / "iteration_7" / "rank3_memory_snapshot.pickle")
    (run,) = index_of(tmp_path / "iteration_7").runs.values()
    (file,) = run.snapshots.found.files
    assert (run.name, file.rank, file.said.step) == (".", 3, 7)


def test_beside_a_recording_it_is_a_run_of_its_own(tmp_path):
    write(tmp_path / "exp" / "memory_snapshot.pickle")
    clock = Ticking()
    index = index_of(tmp_path, clock)
    assert [run.name for run in index.runs.values()] == ["exp"]
    (before,) = index.runs
    RunBuilder(tmp_path / "exp").simple(1, 2)
    again(index)
    names = {run.name: run.made_of for run in index.runs.values()}
    assert names == {"exp": "recording", "exp (snapshots)": "snapshots"}
    assert before in index.runs, "its id stays"


def test_files_of_memprofiler_stay_in_its_run(tmp_path):
    write(tmp_path / "cuda_alloc_rank_1.training_step.2.start.pickle")
    write(tmp_path / "sub" / "cuda_alloc_rank_0.training_step.2.end.pickle")
    write(tmp_path / "sub" / "memory_snapshot.pickle")
    page = Page(tmp_path)
    found = {run["name"]: run for run in page.get("/runs")["runs"]}
    assert {name: run["made_of"] for name, run in found.items()} == {
        tmp_path.name: "memprofiler",
        "sub": "memprofiler",
        "sub (snapshots)": "snapshots",
    }
    run = page.store.run(found["sub"]["id"])
    (file,) = run.snapshots.files
    path = "sub/cuda_alloc_rank_0.training_step.2.end.pickle"
    assert file.id == file_id("f", path)
    assert run.snapshots.by_id(file.id) is file
    said = file.said
    assert (said.rank, said.function, said.iteration) == (0, "training_step", 2)
    assert (said.context, file.path) == ("end", str(tmp_path / path))
    (history,) = page.of_run("/functions", "sub")["histories"]
    assert (history["id"], history["path"]) == (file.id, path)


def test_ids_are_of_the_path_below_the_logdir(tmp_path):
    for logdir in ("a", "b"):
        write(tmp_path / logdir / "x" / "memory_snapshot_rank0.pickle")
    ids = []
    for logdir in ("a", "b"):
        (run,) = index_of(tmp_path / logdir).runs.values()
        (file,) = run.snapshots.found.files
        ids.append(file.id)
    assert ids[0] == ids[1] == file_id("f", "x/memory_snapshot_rank0.pickle")
    assert re.fullmatch("f[0-9a-f]{16}", ids[0])
    page = Page(tmp_path / "a")
    run = page.store.run(page.run_id("x"))
    page.get("/overview", run=run.found.id)
    assert run.snapshots.by_id(ids[0]).name == "memory_snapshot_rank0.pickle"
    assert run.snapshots.by_id("f" + "0" * 16) is None
    assert run.snapshots.by_id("../../etc/passwd") is None


def test_files_that_come_grow_and_go_are_noticed(tmp_path):
    first = write(tmp_path / "exp" / "step_1" / "rank0_memory_snapshot.pickle")
    index = index_of(tmp_path)
    (run,) = index.runs.values()
    version = run.version
    again(index)
    assert run.version == version, "nothing new"
    write(tmp_path / "exp" / "step_2" / "rank0_memory_snapshot.pickle")
    again(index)
    assert run.version == version + 1
    assert [file.said.step for file in run.snapshots.found.files] == [1, 2]
    first.write_bytes(SMALL + SMALL)
    again(index)
    assert run.version == version + 2
    assert run.snapshots.found.files[0].num_bytes == 2 * len(SMALL)
    first.unlink()
    first.parent.rmdir()
    again(index)
    assert [file.said.step for file in run.snapshots.found.files] == [2]
    (tmp_path / "exp" / "step_2" / "rank0_memory_snapshot.pickle").unlink()
    again(index)
    assert index.runs == {}


def test_names_that_tell_nothing_are_looked_into_once(tmp_path, monkeypatch):
    write(tmp_path / "dump.pickle")
    write(tmp_path / "network-snapshot-000200.pkl", pickle.dumps({"G": 1}))
    write(tmp_path / "memory.json", PLAIN)
    write(tmp_path / "memory_timeline.json", json.dumps([1]).encode())
    write(tmp_path / "labels.json", PLAIN)
    looked = []
    look = sniffing.look
    monkeypatch.setattr(
        sniffing, "look", lambda path: looked.append(path) or look(path)
    )
    index = index_of(tmp_path)
    assert shown(index) == {".": ["dump.pickle", "memory.json"]}
    names = sorted(Path(path).name for path in looked)
    assert names == [
        "dump.pickle",
        "labels.json",
        "memory.json",
        "network-snapshot-000200.pkl",
    ]
    write(tmp_path / "one_more.pickle")
    again(index)
    assert len(looked) == 5


def test_a_file_that_is_still_empty_is_looked_at_again(tmp_path):
    path = write(tmp_path / "dump.pickle", b"")
    os.utime(tmp_path, (1e9, 1e9))
    index = index_of(tmp_path)
    assert index.runs == {}
    with path.open("wb") as file:  # in place: its directory does not change
        file.write(SMALL)
    again(index)
    assert shown(index) == {".": ["dump.pickle"]}


@pytest.mark.parametrize(
    ("data", "what"),
    [(b"", "is empty"), (SMALL[:9], "has no end"), (b"\x1f\x8b\x08", "was cut off")],
)
def test_a_stub_beside_snapshots_of_the_same_program_is_named(tmp_path, data, what):
    for number in (0, 2):
        write(tmp_path / "exp" / f"mine_rank{number}_at40.pickle")
    write(tmp_path / "exp" / "mine_rank1_at40.pickle", data)
    for other in ("model_rank1.pickle", "mine_rank1_at40.json", "mine.pickle"):
        write(tmp_path / "exp" / other, data)
    for number in range(20):
        write(tmp_path / "elsewhere" / f"mine_rank{number}_at40.pickle", data)
    page = Page(tmp_path)
    (problem,) = page.of_run("/overview", "exp")["problems"]
    assert problem["path"] == "exp/mine_rank1_at40.pickle"
    assert problem["rank"] == 1
    assert what in problem["what"]
    assert "Write the file again" in problem["remedy"]
    (summary,) = page.get("/runs")["runs"]
    assert (summary["name"], summary["num_ranks"]) == ("exp", 3)
    write(tmp_path / "exp" / "mine_rank1_at40.pickle")
    refresh(page)
    page.get("/runs")
    assert page.of_run("/overview", "exp")["problems"] == []


def test_looks_are_bounded_and_go_on_at_the_next_walk(tmp_path, monkeypatch):
    monkeypatch.setattr(sniffing, "MAX_LOOKS", 10)
    monkeypatch.setattr(sniffing, "LOOK_SECONDS", 1e9)
    for number in range(25):
        write(tmp_path / f"d{number:02d}.pickle")
    index = index_of(tmp_path)
    assert len(shown(index)["."]) == 10
    again(index)
    again(index)
    assert len(shown(index)["."]) == 25


def test_too_many_unknown_files_are_said(tmp_path, monkeypatch):
    monkeypatch.setattr(sniffing, "MAX_REMEMBERED", 3)
    for number in range(5):
        write(tmp_path / f"d{number}.pickle")
    write(tmp_path / "memory_snapshot.pickle")
    index = index_of(tmp_path)
    assert len(shown(index)["."]) == 4
    assert "not searched for memory snapshots" in index.problems()[0].what


def test_linked_files_are_shown(tmp_path):
    outside = write(tmp_path / "outside" / "dump.pickle")
    other = write(tmp_path / "outside" / "model.pickle", pickle.dumps({"G": 1}))
    logdir = tmp_path / "logdir"
    inside = write(logdir / "a" / "memory_snapshot_rank0.pickle")
    for name, target in {
        "memory_snapshot_rank1.pickle": outside,
        "dump.pickle": outside,
        "memory_snapshot_rank2.pickle": inside,
        "memory_snapshot_rank3.pickle": tmp_path / "gone",
        "model.pickle": other,
        "data.pkl": tmp_path / "gone",
    }.items():
        (logdir / "a" / name).symlink_to(target)
    (logdir / "b").symlink_to(outside.parent)
    page = Page(logdir)
    index = page.store.index
    page.get("/runs")
    assert shown(index) == {
        "a": [
            "a/dump.pickle",
            "a/memory_snapshot_rank0.pickle",
            "a/memory_snapshot_rank1.pickle",
            "a/memory_snapshot_rank2.pickle",
        ],
        "b": ["b/dump.pickle"],
    }
    runs = {run.name: run for run in index.runs.values()}
    assert {file.path for file in runs["a"].snapshots.found.files} == {
        str(inside),
        str(outside),
    }, "a link stands for its target"
    named = {
        (run, one["reference"]["path"])
        for run in ("a", "b")
        for one in page.of_run("/snapshot_files", run)["files"]
    }
    assert named == {
        ("a", f"a/dump.pickle -> {outside}"),
        ("a", "a/memory_snapshot_rank0.pickle"),
        ("a", f"a/memory_snapshot_rank1.pickle -> {outside}"),
        ("a", "a/memory_snapshot_rank2.pickle"),
        ("b", f"b/dump.pickle -> {outside}"),
    }, "where it lies is said of what lies outside of the logdir"
    (problem,) = page.of_run("/overview", "a")["problems"]
    assert (problem["path"], problem["rank"]) == ("a/memory_snapshot_rank3.pickle", 3)
    assert f"leads to nothing ({tmp_path / 'gone'})" in problem["what"]
    assert page.of_run("/overview", "b")["problems"] == []


def test_a_file_that_becomes_a_link_or_a_pipe_is_looked_at_anew(tmp_path):
    outside = write(tmp_path / "outside" / "secret")
    logdir = tmp_path / "logdir"
    path = write(logdir / "a" / "memory_snapshot_rank0.pickle")
    write(logdir / "a" / "memory_snapshot_rank1.pickle")
    index = index_of(logdir)
    (run,) = index.runs.values()
    path.unlink()
    path.symlink_to(outside)
    run.list_files()  # before the walk sees it
    assert next(file.path for file in run.snapshots.found.files) == str(outside)
    path.unlink()
    os.mkfifo(path)
    run.list_files()
    assert [file.rank for file in run.snapshots.found.files] == [1]
    assert "not a regular file" in run.problems[0].what


def test_the_summary_is_complete(tmp_path):
    write(tmp_path / "exp" / "step_3" / "memory_snapshot_rank0_world16.pickle")
    write(tmp_path / "exp" / "step_5" / "memory_snapshot_rank7_world16.pickle")
    write(tmp_path / "odd" / "first_snapshot.pickle")
    write(tmp_path / "odd" / "second_snapshot.pickle")
    found = {run["name"]: run for run in Page(tmp_path).get("/runs")["runs"]}
    run = found["exp"]
    assert (run["num_ranks"], run["world_size"], run["last_step"]) == (2, 16, 5)
    assert (run["imported"], run["made_of"], run["num_attempts"]) == (
        True,
        "snapshots",
        1,
    )
    assert run["first_ms"] == run["last_ms"] == 1.7e12
    assert not run["live"]
    assert not run["simulated"]
    run = found["odd"]
    assert (run["num_ranks"], run["world_size"], run["last_step"]) == (0, 0, None), (
        "files whose names say nothing are no ranks"
    )


def test_ten_thousand_files_are_listed(tmp_path):
    for step in range(100):
        folder = tmp_path / "exp" / f"step_{step}"
        folder.mkdir(parents=True)
        for rank in range(100):
            (folder / f"rank{rank}_memory_snapshot.pickle").write_bytes(b".")
    index = index_of(tmp_path)
    while index.is_walking:
        again(index)
    (run,) = index.runs.values()
    again(index)
    found = run.snapshots.found
    assert len(found.files) == 10_000
    assert found.ranks == list(range(100))
    assert found.last_step == 99
    assert len({file.id for file in found.files}) == 10_000
    version = run.version
    again(index)
    assert run.version == version


def test_too_many_files_are_said(tmp_path, monkeypatch):
    monkeypatch.setattr("memboard.tb_plugin.formats.file_listing.MAX_FILES", 3)
    for rank in range(5):
        write(tmp_path / f"memory_snapshot_rank{rank}.pickle")
    (run,) = index_of(tmp_path).runs.values()
    assert len(run.snapshots.found.files) == 3
    assert "Of 5 snapshot files, 3 are listed" in run.problems[0].what


@pytest.mark.skipif(not REAL.name, reason="MEMBOARD_REAL_DATA is not set")
def test_every_recorded_snapshot_is_listed():
    index = index_of(REAL)
    (run,) = (run for run in index.runs.values() if run.snapshots is not None)
    expected = json.loads((REAL / "snapshots" / "index.json").read_text())
    names = {path.name for path in (REAL / "snapshots").iterdir()}
    names -= {"index.json", "expected.json"}
    assert len(expected) == len(names)
    assert {file.name for file in run.snapshots.found.files} == names
    page = Page(REAL)
    assert page.of_run("/overview", run.name)["problems"] == []
