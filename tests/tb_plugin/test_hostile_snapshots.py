"""Files with names of snapshots that hold anything: shown, or named with what is wrong."""

from __future__ import annotations

import gzip
import os
import pickle
import random
import socket
import time
from pathlib import Path

import fsspec
import pytest

from memboard.tb_plugin.formats.file_listing import file_id
from tests.tb_plugin.client import Page, answered, refresh
from tests.tb_plugin.logdirs import SMALL, write

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
    "memory_snapshot_rank@.pickle", "snapshot.pickle", "rank@_memory_snapshot.pickle",
    "iteration_40/rank@_memory_snapshot.pickle", "oom_rank@/snapshot.pickle",
    "step_000000000040_exit/000003_step_40.pickle", "oom_rank-@_snapshot.pickle",
    "rank@.40.memory_snapshot.pickle", "ep0-ba40-rank@.memory_snapshot.pickle",
    "step_40_rank@/snapshot.pickle", "snapshot_rank0@_p0d1c0t0.pickle",
    "snapshot_rank@_pid77.pickle", "rank@_oom_snapshot.pickle", "snapshot_rank@.pkl",
    "memory_snapshot_rank@_step40.pkl.gz", "memory_snapshot_rank@.json",
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
    found = {one["path"]: one["what"] for one in page.get("/runs")["problems"]}
    assert found.keys() == {"memory_snapshot_rank3.pickle", "dump.pickle"}
    assert "is a directory" in found["memory_snapshot_rank3.pickle"]
    assert "not a regular file" in found["dump.pickle"]


def test_what_is_damaged_at_a_store_is_named(tmp_path):
    url = "memory://damaged"
    system = fsspec.filesystem("memory")
    for number, kind in enumerate(HOSTILE):
        path = f"/damaged/exp/snapshot_rank{number}_pid7.pickle"
        system.pipe_file(path, HOSTILE[kind] or b"\0")
    page = Page(url)
    answered(lambda: page.get("/runs"), lambda found: found["runs"])
    run = page.store.run(page.run_id("exp"))
    run._file_problems._clock = lambda: time.time() + 60
    found = answered(
        lambda: page.of_run("/overview", "exp"),
        lambda found: len(found["problems"]) >= len(HOSTILE),
    )
    assert {problem["rank"] for problem in found["problems"]} == set(
        range(len(HOSTILE))
    )


def test_a_file_being_written_is_not_called_broken(tmp_path):
    path = write(tmp_path / "memory_snapshot.pickle", SMALL[:100])
    soon = time.time() + 3600  # it stays as new as it is, however slow this machine is
    os.utime(path, (soon, soon))
    page = Page(tmp_path)
    assert page.of_run("/overview")["problems"] == []


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
