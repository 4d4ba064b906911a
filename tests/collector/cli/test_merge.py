"""`memboard merge`: what is named is merged, and what cannot be is said."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading

import pytest

from tests.builders import START_NS, RunBuilder
from tests.collector.cli.conftest import command
from tests.tb_plugin.merging.chrome import check, events, slice_of, torch_trace


def merge(*arguments: object) -> int:
    return command("merge", *arguments)


def read(path):
    data = path.read_bytes()
    trace = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    check(trace)
    return trace


def ranks(trace):
    return [one["rank"] for one in trace["metadata"]["ranks"]]


def recorded(folder, num_ranks=2, world_size=2):
    run = RunBuilder(folder)
    for number in range(num_ranks):
        rank = run.rank(number, world_size=world_size)
        rank.steps(range(10), rss_bytes=range(10))
        rank.close()
    return run


def hashes(folder):
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_run_is_merged_into_its_own_directory(tmp_path, capsys):
    run = recorded(tmp_path / "exp")
    torch_trace(
        run.folder / "rank1.pt.trace.json",
        [slice_of("aten::add", 1.0)],
        rank=1,
        base_ns=START_NS + 10**9,
    )
    before = hashes(tmp_path)
    assert merge(tmp_path) == 0
    out = run.folder / "merged_trace.json.gz"
    trace = read(out)
    assert ranks(trace) == [0, 1]
    assert "aten::add" in [e["name"] for e in events(trace, "X")]
    assert "2 ranks" in capsys.readouterr().out
    # Nothing that was merged has changed.
    after = hashes(tmp_path)
    del after[out]
    assert after == before


def test_the_result_is_not_merged_again_nor_replaced_unasked(tmp_path, capsys):
    run = recorded(tmp_path / "exp")
    assert merge(run.folder) == 0
    first = read(run.folder / "merged_trace.json.gz")
    assert merge(run.folder) == 2
    assert "--force" in capsys.readouterr().err
    assert merge(run.folder, "--force") == 0
    assert read(run.folder / "merged_trace.json.gz") == first


def test_a_missing_rank_is_said_and_the_others_are_merged(tmp_path, capsys):
    recorded(tmp_path / "exp", num_ranks=2, world_size=4)
    assert merge(tmp_path, "-o", tmp_path / "out.json") == 0
    told = capsys.readouterr().err
    assert "Rank 2 has no recording." in told
    assert "Rank 3 has no recording." in told
    problems = read(tmp_path / "out.json")["metadata"]["problems"]
    assert [one["rank"] for one in problems] == [2, 3]


def test_ranks_are_chosen_as_elsewhere(tmp_path):
    recorded(tmp_path / "exp", num_ranks=6, world_size=6)
    out = tmp_path / "out.json"
    assert merge(tmp_path, "--ranks", "0-1,5", "-o", out) == 0
    assert ranks(read(out)) == [0, 1, 5]


def test_files_and_directories_of_other_tools(tmp_path):
    paths = [
        torch_trace(tmp_path / "t" / f"r{n}.json", [slice_of("x", n)], rank=n)
        for n in range(3)
    ]
    assert merge(*paths[:2], "-o", tmp_path / "two.json") == 0
    assert ranks(read(tmp_path / "two.json")) == [0, 1]
    assert merge(tmp_path / "t", "-o", tmp_path / "all.json.gz") == 0
    assert ranks(read(tmp_path / "all.json.gz")) == [0, 1, 2]


def test_it_says_what_it_merged(tmp_path, capsys):
    paths = [
        torch_trace(tmp_path / "t" / f"r{n}.json", [slice_of("x", n)] * (n + 1), rank=n)
        for n in range(20)
    ]
    assert merge(*paths[:2], "-o", tmp_path / "two.json") == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{tmp_path / 'two.json'}: 2 ranks, 0.0 MB")
    assert lines == [
        f"  rank 0: {paths[0]}; 1 event of traces",
        f"  rank 1: {paths[1]}; 2 events of traces",
        "  Ids of flows begin anew in each trace: no arrow joins two ranks.",
    ]
    assert merge(*paths, "-o", tmp_path / "all.json") == 0
    assert "  4 more ranks: see `metadata` in the trace" in capsys.readouterr().out
    recorded(tmp_path / "exp")
    assert merge(tmp_path / "exp") == 0
    assert "not moved, by wall clocks" in capsys.readouterr().out


def test_one_rank_file_alone(tmp_path):
    run = recorded(tmp_path / "exp")
    path = sorted(run.files.iterdir())[1]
    assert merge(path, "-o", tmp_path / "one.json") == 0
    assert ranks(read(tmp_path / "one.json")) == [1]


def test_the_directorys_own_run_is_meant_also_where_others_lie_below(tmp_path):
    recorded(tmp_path / "exp", world_size=2)
    recorded(tmp_path / "exp" / "again", num_ranks=1, world_size=1)
    assert merge(tmp_path / "exp", "-o", tmp_path / "x.json") == 0
    assert ranks(read(tmp_path / "x.json")) == [0, 1]
    assert merge(tmp_path, "-o", tmp_path / "y.json") == 2
    assert merge(tmp_path, "--run", "exp/again", "-o", tmp_path / "y.json") == 0
    assert ranks(read(tmp_path / "y.json")) == [0]


def test_it_waits_for_ranks_that_are_still_writing(tmp_path):
    run = recorded(tmp_path / "exp", num_ranks=1, world_size=2)

    def come_late():
        rank = run.rank(1, world_size=2)
        rank.steps(range(5), rss_bytes=range(5))
        rank.close()

    late = threading.Timer(0.8, come_late)
    late.start()
    try:
        assert merge(tmp_path, "--wait", 120, "-o", tmp_path / "x.json") == 0
    finally:
        late.join()
    assert ranks(read(tmp_path / "x.json")) == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere"], "there is no such file"),
        (["--cycle", 0], "--cycle: '0' was given: give 1 or more"),
        (["--ranks", "x"], "ranks and ranges"),
        (["--attempt", 9], "there is no attempt 9"),
        (["--run", "other"], "no run 'other'"),
    ],
)
def test_what_cannot_be_is_said(tmp_path, capsys, arguments, told):
    recorded(tmp_path / "exp")
    path = tmp_path / "nowhere" if arguments == ["nowhere"] else tmp_path
    rest = [] if arguments == ["nowhere"] else arguments
    assert merge(path, *rest) == 2
    assert told in capsys.readouterr().err


def test_a_directory_with_nothing_in_it(tmp_path, capsys):
    assert merge(tmp_path) == 2
    assert "nothing to merge" in capsys.readouterr().err


def test_a_trace_is_never_replaced_by_the_result(tmp_path, capsys):
    path = torch_trace(tmp_path / "rank0.json", [slice_of("x", 1.0)], rank=0)
    before = path.read_bytes()
    assert merge(path, "-o", path, "--force") == 2
    assert "replace one of the traces" in capsys.readouterr().err
    assert path.read_bytes() == before
