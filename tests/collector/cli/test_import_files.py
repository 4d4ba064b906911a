"""`memboard import`: snapshots become captures of their ranks, equal to what was dumped."""

from __future__ import annotations

import gzip
import os
import pickle

import pytest

from memboard.collector.format.names import parse_rank_file_name
from memboard.collector.format.snapshots import rebuilt
from memboard.tb_plugin.cli import import_snapshots, main
from tests.collector.cli.conftest import command
from tests.errors_found import errors_in
from tests.made_snapshots import everything, long_history
from tests.recordings import read_run
from tests.simulate import oom_case
from tests.tb_plugin.client import Page, answered

WRITTEN_NS = 1_700_000_000 * 10**9


def write(path, snapshot=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = pickle.dumps(long_history(30) if snapshot is None else snapshot, 4)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    os.utime(path, ns=(WRITTEN_NS, WRITTEN_NS))
    return str(path)


def do_import(tmp_path, *arguments: str) -> int:
    where = ("--logdir", str(tmp_path / "logdir"), "--run", "exp")
    return main(["import", *arguments, *where])


def run_of(tmp_path):
    return read_run(tmp_path / "logdir" / "exp")


def test_what_was_dumped_comes_back_whole(tmp_path, capsys):
    made = everything()
    path = write(tmp_path / "memory_snapshot_rank3_step40.pickle", made)
    assert do_import(tmp_path, path) == 0
    assert "rank 3: 1 snapshot in" in capsys.readouterr().out
    (recording,) = run_of(tmp_path).values()
    (capture,) = recording.captures
    assert rebuilt(capture.tables) == made
    assert (capture.kind, capture.step, capture.function) == ("history", 40, "")
    assert capture.time_ns == WRITTEN_NS
    assert capture.meta["imported_from"]["path"] == path
    assert recording.header.rank == 3
    assert recording.header.world_size == 4
    assert recording.header.attempt.startswith("20231114T221320000-")
    assert recording.close.how == "closed"
    assert recording.sources() == {"history": "recorded", "device": "absent"}


def test_ranks_and_steps_of_a_layout_are_one_attempt(tmp_path):
    folder = tmp_path / "memory_snapshot"
    paths = [
        write(folder / f"step_{step}" / f"rank{rank}_memory_snapshot.pickle.gz")
        for step in (10, 20)
        for rank in (0, 1)
    ]
    assert do_import(tmp_path, *paths) == 0
    recordings = run_of(tmp_path)
    assert sorted(recordings) == [0, 1]
    for recording in recordings.values():
        assert [capture.step for capture in recording.captures] == [10, 20]
    assert len({r.header.job for r in recordings.values()}) == 1
    page = Page(tmp_path / "logdir")
    (run,) = page.get("/runs")["runs"]
    assert (run["name"], run["made_of"]) == ("exp", "recording")
    assert (run["num_ranks"], run["num_attempts"], run["live"]) == (2, 1, False)
    found = page.of_run("/functions", "exp", rank=1)["histories"]
    assert [history["step"] for history in found] == [10, 20]
    assert page.of_run("/overview", "exp")["problems"] == []
    (said,) = page.of_run("/timeline", "exp")["absent"]
    assert "imported from memory snapshots" in said["reason"]


def test_again_it_is_another_attempt(tmp_path):
    path = write(tmp_path / "memory_snapshot_rank0.pickle")
    assert do_import(tmp_path, path) == 0
    assert do_import(tmp_path, path) == 0
    files = list((tmp_path / "logdir").rglob("*.events"))
    assert len({parse_rank_file_name(file.name).attempt for file in files}) == 2
    (run,) = Page(tmp_path / "logdir").get("/runs")["runs"]
    assert run["num_attempts"] == 2


def test_files_of_memprofiler_keep_their_call(tmp_path):
    paths = [
        write(tmp_path / "cuda_alloc_rank_1.training_step.2.start.pickle"),
        write(tmp_path / "cuda_alloc_rank_1.before_oom.7.pickle"),
    ]
    assert do_import(tmp_path, *paths) == 0
    (recording,) = run_of(tmp_path).values()
    said = {
        (c.function, c.iteration, c.context, c.label, c.step)
        for c in recording.captures
    }
    assert said == {
        ("training_step", 2, "start", "", None),
        ("", 0, "", "before_oom", 7),
    }


def test_the_rank_is_as_the_user_says_else_as_the_name_says_else_0(tmp_path, capsys):
    plain = write(tmp_path / "snapshot.pickle")
    ranked = write(tmp_path / "memory_snapshot_rank2.pickle")
    assert do_import(tmp_path, plain, ranked) == 0
    assert sorted(run_of(tmp_path)) == [0, 2]
    assert "without a rank in the name: give --rank" in capsys.readouterr().out
    assert do_import(tmp_path, plain, ranked, "--rank", "5") == 0
    assert "--rank" not in capsys.readouterr().out
    assert sorted(run_of(tmp_path)) == [0, 2, 5]


def test_bad_files_are_told_and_the_others_imported(tmp_path, capsys):
    good = write(tmp_path / "memory_snapshot_rank0.pickle")
    hostile = tmp_path / "memory_snapshot_rank1.pickle"
    head = pickle.dumps({"segments": [], "device_traces": [print]}, 4)
    hostile.write_bytes(head)
    empty = tmp_path / "empty.pickle"
    empty.touch()
    missing = tmp_path / "missing.pickle"
    code = do_import(tmp_path, str(hostile), good, str(empty), str(missing))
    assert code == 0
    said = capsys.readouterr()
    assert sorted(run_of(tmp_path)) == [0]
    for path in (hostile, empty, missing):
        assert str(path) in said.err
    assert said.err.count("what to do:") == 3
    assert good not in said.err


def test_a_trace_is_no_snapshot(tmp_path, capsys):
    good = write(tmp_path / "memory_snapshot_rank0.pickle")
    trace = tmp_path / "host_1.1.pt.trace.json"
    trace.write_text('{"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "a"}]}')
    assert do_import(tmp_path, str(trace), good) == 0
    said = capsys.readouterr().err
    assert "this is a trace" in said
    assert f"where: {trace}" in said
    assert sorted(run_of(tmp_path)) == [0]
    assert do_import(tmp_path, str(trace)) == 2


def test_an_error_in_what_was_imported_has_a_verdict(tmp_path):
    case = oom_case("imbalance", 10_003)
    (tmp_path / "dumps").mkdir()
    case.write(tmp_path / "dumps")
    assert do_import(tmp_path, *map(str, (tmp_path / "dumps").glob("*.pickle"))) == 0
    page = Page(tmp_path / "logdir")
    found = answered(
        lambda: page.of_run("/findings", "exp"),
        lambda found: not found["still_reading"],
    )
    (one,) = errors_in(found)
    assert (one["origin"], one["rank"]) == ("file", case.label.rank)
    assert one["key"] == "imbalance"
    assert len(one["peers"]) == len(case.ranks) - 1
    assert one["history"].startswith(f"{case.label.rank}-")


def test_nothing_good_is_exit_code_2_and_writes_nothing(tmp_path, capsys):
    (tmp_path / "a.pickle").write_bytes(b"x" * 100)
    assert do_import(tmp_path, str(tmp_path / "a.pickle"), str(tmp_path)) == 2
    said = capsys.readouterr().err
    assert "neither a memory snapshot" in said
    assert "this is a directory" in said
    assert not (tmp_path / "logdir").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--run", "../out"),
        ("--run", "/etc"),
        ("--run", " "),
        ("--run", "exp", "--rank", "-1"),
        ("--run", "exp", "--rank", "10000000"),
    ],
)
def test_what_cannot_be_meant_is_exit_code_2(tmp_path, capsys, arguments):
    path = write(tmp_path / "memory_snapshot_rank0.pickle")
    logdir = tmp_path / "logdir"
    assert command("import", path, "--logdir", logdir, *arguments) == 2
    assert f"argument {arguments[-2]}" in capsys.readouterr().err
    assert not logdir.exists()


def test_a_logdir_that_cannot_be_written_is_said(tmp_path, capsys):
    path = write(tmp_path / "memory_snapshot_rank0.pickle")
    (tmp_path / "logdir").mkdir()
    (tmp_path / "logdir" / "exp").touch()
    assert do_import(tmp_path, path) == 2
    assert "logdir/exp" in capsys.readouterr().err


def test_one_too_large_for_a_capture_is_copied(tmp_path, monkeypatch, capsys):
    def too_large(_):
        raise ValueError("the capture is larger than ...")

    monkeypatch.setattr(import_snapshots, "encode_body", too_large)
    path = write(tmp_path / "memory_snapshot_rank3_step7.pickle")
    assert do_import(tmp_path, path) == 0
    assert "copied to" in capsys.readouterr().out
    page = Page(tmp_path / "logdir")
    (run,) = page.get("/runs")["runs"]
    assert (run["name"], run["made_of"], run["last_step"]) == ("exp", "snapshots", 7)
    (copy,) = (tmp_path / "logdir" / "exp").iterdir()
    assert (
        copy.read_bytes()
        == (tmp_path / "memory_snapshot_rank3_step7.pickle").read_bytes()
    )
