"""Runs made of snapshot files: found, named, watched, and never more opened than that."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import random
import re
import socket
import time
from pathlib import Path
from types import SimpleNamespace

import fsspec
import pytest

from tb_plugin.formats.found_files import file_id
from tb_plugin.index import looks
from tb_plugin.index.logdirs import logdirs_of
from tb_plugin.index.walk import Index
from tests.builders import RunBuilder
from tests.made_snapshots import long_history
from tests.tb_plugin.client import Page, Ticking, answered, refresh

REAL = Path(os.environ.get("MEMBOARD_REAL_DATA", ""))
SMALL = pickle.dumps(long_history(20))
PLAIN = json.dumps({"segments": [], "device_traces": [[]]}).encode()


def write(path, data=SMALL):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (1.7e9, 1.7e9))  # long ago, so that nobody may still be writing it
    return path


def index_of(logdir, clock=None) -> Index:
    context = SimpleNamespace(logdir=str(logdir), flags=None)
    index = Index(logdirs_of(context), clock or Ticking())
    index.refresh()
    return index


def again(index) -> None:
    index._clock.later()
    index.refresh()


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
        ".": "memprofiler",
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
    look = looks.look
    monkeypatch.setattr(looks, "look", lambda path: looked.append(path) or look(path))
    index = index_of(tmp_path)
    assert shown(index) == {".": ["dump.pickle", "memory.json"]}
    names = sorted(Path(path).name for path in looked)
    assert names == [
        *("dump.pickle", "labels.json", "memory.json", "network-snapshot-000200.pkl"),
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
    assert "Take the snapshot again" in problem["remedy"]
    (summary,) = page.get("/runs")["runs"]
    assert (summary["name"], summary["num_ranks"]) == ("exp", 3)
    write(tmp_path / "exp" / "mine_rank1_at40.pickle")
    refresh(page)
    page.get("/runs")
    assert page.of_run("/overview", "exp")["problems"] == []


def test_looks_are_bounded_and_go_on_at_the_next_walk(tmp_path, monkeypatch):
    monkeypatch.setattr(looks, "MAX_LOOKS", 10)
    monkeypatch.setattr(looks, "LOOK_SECONDS", 1e9)
    for number in range(25):
        write(tmp_path / f"d{number:02d}.pickle")
    index = index_of(tmp_path)
    assert len(shown(index)["."]) == 10
    again(index)
    again(index)
    assert len(shown(index)["."]) == 25


def test_too_many_unknown_files_are_said(tmp_path, monkeypatch):
    monkeypatch.setattr(looks, "MAX_REMEMBERED", 3)
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
    (problem,) = page.of_run("/overview", "a")["problems"]
    assert (problem["path"], problem["rank"]) == ("a/memory_snapshot_rank3.pickle", 3)
    assert "leads to nothing" in problem["what"]
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
    assert "no plain file" in run.problems[0].what


HOSTILE = {
    "zeros": bytes(len(SMALL)),
    "zeros at the start": bytes(64) + SMALL[64:],
    "noise": random.Random(0).randbytes(5000),
    "its first half is gone": SMALL[len(SMALL) // 2 :],
    "a call": pickle.dumps(print),
    "a call, in words": b"cos\nsystem\n(S'true'\ntR.",
    "a bomb": gzip.compress(bytes(10_000_000)),
    "noise that is to be a gzip": b"\x1f\x8b" + random.Random(1).randbytes(4000),
    "a gzip that was cut off": gzip.compress(SMALL)[:11],
    "lists in lists": b"\x80\x04" + b"]" * 100_000 + b".",
    "a text": b"hello",
    "nothing": b"",
    "a bit of a pickle": SMALL[:40],
    "something else": pickle.dumps({"weights": [1.0] * 1000}),
}
NAMED = [path.replace("@", "3") for path in (
    *("memory_snapshot_rank@.pickle", "snapshot.pickle", "rank@_memory_snapshot.pickle"),
    *("iteration_40/rank@_memory_snapshot.pickle", "oom_rank@/snapshot.pickle"),
    *("step_000000000040_exit/000003_step_40.pickle", "oom_rank-@_snapshot.pickle"),
    *("rank@.40.memory_snapshot.pickle", "ep0-ba40-rank@.memory_snapshot.pickle"),
    *("step_40_rank@/snapshot.pickle", "snapshot_rank0@_p0d1c0t0.pickle"),
    *("snapshot_rank@_pid77.pickle", "rank@_oom_snapshot.pickle", "snapshot_rank@.pkl"),
    *("memory_snapshot_rank@_step40.pkl.gz", "memory_snapshot_rank@.json"),
)]  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_whatever_has_the_name_of_a_snapshot_is_shown_or_named(tmp_path, kind):
    for name in NAMED:
        write(tmp_path / "exp" / name, HOSTILE[kind])
    write(tmp_path / "exp" / "model.pickle", HOSTILE[kind])
    write(tmp_path / "exp" / "data.pkl", HOSTILE[kind])
    page = Page(tmp_path)
    page.get("/runs")
    problems = page.of_run("/overview", "exp")["problems"]
    said = {problem["path"].removeprefix("exp/") for problem in problems}
    assert said - {"model.pickle", "data.pkl"} == set(NAMED)
    assert all(problem["what"] and problem["remedy"] for problem in problems)
    if "start" not in kind and "half" not in kind:
        assert said == set(NAMED), "nobody's business"
    (summary,) = page.get("/runs")["runs"]
    assert summary["num_problems"] == len(problems)


def test_what_is_refused_once_it_is_opened_is_a_problem_of_its_run(tmp_path):
    """Its ends are those of a snapshot: only who reads it all sees what is in between."""
    path = write(
        tmp_path / "exp" / "memory_snapshot_rank3.pickle",
        pickle.dumps({"segments": [], "device_traces": [print]}),
    )
    page = Page(tmp_path)
    run_id = page.run_id("exp")
    assert page.get("/overview", run=run_id)["problems"] == []
    answered(
        lambda: page.get("/history", run=run_id, history=file_id("f", shown_as(path))),
        lambda found: found["state"] == "failed",
    )
    (problem,) = page.get("/overview", run=run_id)["problems"]
    assert problem["path"] == shown_as(path)
    assert "class or function" in problem["what"]
    assert page.get("/runs")["runs"][0]["num_problems"] == 1
    write(path)
    refresh(page)
    page.get("/runs")
    assert page.get("/overview", run=run_id)["problems"] == []


def shown_as(path) -> str:
    return f"{path.parent.name}/{path.name}"


@pytest.mark.parametrize("cut", ["zeros", "gone"])
def test_a_snapshot_of_any_name_whose_start_is_damaged_is_named(tmp_path, cut):
    data = SMALL[64:]
    write(tmp_path / "dump.pickle", bytes(64) + data if cut == "zeros" else data)
    page = Page(tmp_path)
    page.get("/runs")
    (problem,) = page.of_run("/overview")["problems"]
    assert problem["path"] == "dump.pickle"
    assert "first bytes are damaged" in problem["what"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_no_file_is_named_and_holds_nobody_up(tmp_path):
    write(tmp_path / "memory_snapshot_rank0.pickle")
    os.mkfifo(tmp_path / "memory_snapshot_rank1.pickle")
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(tmp_path)  # the path of a socket must be short
        try:
            made.bind("memory_snapshot_rank2.pickle")
        finally:
            os.chdir(here)
    (tmp_path / "memory_snapshot_rank3.pickle").mkdir()
    for name in ("dump.pickle", "events"):
        os.mkfifo(tmp_path / name)
    page = Page(tmp_path)
    page.get("/runs")
    problems = page.of_run("/overview")["problems"]
    assert [problem["rank"] for problem in problems] == [1, 2]
    (problem,) = page.get("/runs")["problems"]
    assert problem["path"] == "memory_snapshot_rank3.pickle"
    assert "is a directory" in problem["what"]


def test_what_is_damaged_at_a_store_is_named(tmp_path):
    url = "memory://damaged"
    system = fsspec.filesystem("memory")
    for number, kind in enumerate(HOSTILE):
        path = f"/damaged/exp/snapshot_rank{number}_pid7.pickle"
        system.pipe_file(path, HOSTILE[kind] or b"\0")
    page = Page(url)
    answered(lambda: page.get("/runs"), lambda found: found["runs"])
    run = page.store.run(page.run_id("exp"))
    run._snapshot_faults._clock = lambda: time.time() + 60
    found = answered(
        lambda: page.of_run("/overview", "exp"),
        lambda found: len(found["problems"]) >= len(HOSTILE),
    )
    assert {problem["rank"] for problem in found["problems"]} == set(
        range(len(HOSTILE))
    )


def test_a_bad_file_is_shown_as_bad_and_hides_nothing(tmp_path):
    write(tmp_path / "exp" / "memory_snapshot_rank0.pickle")
    write(tmp_path / "exp" / "memory_snapshot_rank1.pickle", b"")
    write(tmp_path / "exp" / "memory_snapshot_rank2.pickle", pickle.dumps({"a": 1}))
    write(tmp_path / "exp" / "memory_snapshot_rank3.pickle", SMALL[:-1])
    page = Page(tmp_path)
    found = page.of_run("/overview", "exp")
    assert {(p["rank"], p["severity"]) for p in found["problems"]} == {
        (1, "error"),
        (2, "error"),
        (3, "error"),
    }
    assert found["run"]["num_ranks"] == 4
    assert found["run"]["num_problems"] == 3
    write(tmp_path / "exp" / "memory_snapshot_rank2.pickle")
    refresh(page)
    page.get("/runs")
    found = page.of_run("/overview", "exp")
    assert {p["rank"] for p in found["problems"]} == {1, 3}, "a mended file is fine"


def test_a_file_being_written_is_not_called_broken(tmp_path):
    path = write(tmp_path / "memory_snapshot.pickle", SMALL[:100])
    soon = time.time() + 3600  # it stays as new as it is, however slow this machine is
    os.utime(path, (soon, soon))
    page = Page(tmp_path)
    assert page.of_run("/overview")["problems"] == []


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


def test_every_page_says_where_the_data_is(tmp_path):
    write(tmp_path / "exp" / "memory_snapshot_rank0.pickle")
    page = Page(tmp_path)
    (said,) = page.of_run("/overview", "exp")["recorded"]
    assert "Allocations" in said["reason"]
    assert page.of_run("/overview", "exp")["strip"]["lost"].tolist() in ([], [0])
    for route in (
        "/timeline",
        "/heatmap",
        "/functions",
        "/modules",
        "/module_timeline",
    ):
        reasons = [a["reason"] for a in page.of_run(route, "exp")["absent"]]
        assert any("Allocations" in reason for reason in reasons), route
    (said,) = page.of_run("/host", "exp")["absent"]
    assert "nothing of hosts" in said["reason"]


@pytest.mark.parametrize(
    "name",
    [
        '<img src=x onerror="alert(1)">_memory_snapshot.pickle',
        "..\\..\\memory_snapshot.pickle",
        "\x1b[31m_memory_snapshot.pickle",
        "\u202ememory_snapshot.pickle",
        "line\nbreak_memory_snapshot.pickle",
        os.fsdecode(b"\xff\xfe_memory_snapshot.pickle"),
        "x" * 230 + "_memory_snapshot.pickle",
    ],
)
def test_hostile_names_are_listed_as_text(tmp_path, name):
    write(tmp_path / "exp" / name)
    page = Page(tmp_path)
    run_id = page.run_id("exp")
    response = page.raw("/overview", run=run_id)
    assert response.status_code == 200
    page.get("/runs")
    run = page.store.run(run_id)
    (file,) = run.snapshots.files
    assert Path(file.path).read_bytes() == SMALL
    assert run.snapshots.by_id(file.id) is file
    assert all(c.isprintable() for c in file.said.label)


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
    monkeypatch.setattr("tb_plugin.formats.found_files.MAX_FILES", 3)
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
