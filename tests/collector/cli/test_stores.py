"""`memboard merge` and `export` of what lies at a store: as of a local copy of it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from memboard.collector.format.names import EXPORT_MARK
from memboard.tb_plugin import storage
from memboard.tb_plugin.cli import main
from memboard.tb_plugin.merging import merged_trace as merging
from tests.builders import START_NS, RunBuilder
from tests.collector.cli.conftest import command, stored
from tests.collector.cli.recorded import add_history, add_modules, add_snaps
from tests.collector.cli.test_merge import read
from tests.tb_plugin.merging.chrome import events, slice_of, torch_trace

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ("--yaml", "--modules", "--history", "--config")


@pytest.fixture(autouse=True)
def _own_place(tmp_path, monkeypatch):
    """Results without a name go where the command is run."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def logs(tmp_path) -> Path:
    """A run of two ranks, with a trace that it captured and one beside it; and traces."""
    run = RunBuilder(tmp_path / "logs" / "exp")
    for number in range(2):
        rank = run.rank(number, world_size=2, config={"scalars": True})
        rank.steps(range(10), rss_bytes=range(10), step_time_seconds=[0.5] * 10)
        add_snaps(rank, "training_step", [2, 3])
        add_modules(rank, 2, function="training_step")
        add_history(rank, 2, "start")
        if number == 0:
            path = rank.path.with_suffix("") / "own.pt.trace.json.gz"
            slices = [slice_of("aten::mm", 1.0)]
            torch_trace(path, slices, rank=0, base_ns=START_NS + 10**9)
            for there in (path.name, "../../../../outside.json"):
                meta = {"path": there, "cycle": 1, "kept": True}
                rank.capture("trace", meta=meta)
        rank.close()
    torch_trace(
        run.folder / "rank1.pt.trace.json",
        [slice_of("aten::add", 1.0)],
        rank=1,
        base_ns=START_NS + 10**9,
    )
    for number in range(2):
        path = tmp_path / "logs" / "traces" / f"r{number}.json"
        torch_trace(path, [slice_of("x", number)], rank=number)
    return tmp_path / "logs"


@pytest.fixture
def address(logs):
    """The same at a store."""
    with stored(logs) as found:
        yield found


def told(trace: dict) -> list:
    """What it says of its ranks, with files named as below their logdir."""
    ranks = trace["metadata"]["ranks"]
    return [
        {**one, "files": [name.rpartition("/")[2] for name in one["files"]]}
        for one in ranks
    ]


def test_a_run_at_a_store_is_merged_as_its_copy_is(address, logs, tmp_path, capsys):
    assert main(["merge", address, "--run", "exp"]) == 0
    there = read(tmp_path / "here" / "merged_trace.json.gz")
    said = capsys.readouterr()
    assert "2 ranks" in said.out
    assert "outside.json" in said.err
    assert main(["merge", str(logs / "exp"), "-o", str(tmp_path / "copy.json")]) == 0
    here = read(tmp_path / "copy.json")
    assert there["traceEvents"] == here["traceEvents"]
    assert told(there) == told(here)
    names = {event["name"] for event in events(there, "X")}
    assert {"aten::mm", "aten::add", "step"} <= names
    assert not list((logs / "exp").glob("merged*"))


@pytest.mark.parametrize("below", ["/traces", "/traces/", "/exp"])
def test_a_directory_at_a_store_is_named_as_a_local_one(address, logs, tmp_path, below):
    out = tmp_path / "out.json"
    assert main(["merge", address + below, "-o", str(out)]) == 0
    copy = tmp_path / "copy.json"
    assert main(["merge", f"{logs}{below}", "-o", str(copy)]) == 0
    assert read(out)["traceEvents"] == read(copy)["traceEvents"]


def test_traces_of_a_store_and_of_a_disk_are_merged_together(address, logs, tmp_path):
    out = tmp_path / "out.json"
    named = (f"{address}/traces/r0.json", str(logs / "traces" / "r1.json"))
    assert main(["merge", *named, "-o", str(out)]) == 0
    assert [one["rank"] for one in told(read(out))] == [0, 1]


def test_a_store_that_goes_away_costs_what_it_has_not_sent(
    address, logs, tmp_path, capsys, monkeypatch
):
    open_trace = merging.open_trace

    def refuses(path: str):
        if path.endswith("rank1.pt.trace.json"):
            raise storage.StorageError("The store cannot be reached.", "Try again.")
        return open_trace(path)

    monkeypatch.setattr(merging, "open_trace", refuses)
    out = tmp_path / "out.json"
    assert main(["merge", f"{address}/exp", "-o", str(out)]) == 0
    assert "Only a part was merged" in capsys.readouterr().err
    trace = read(out)
    (problem,) = (one for one in trace["metadata"]["problems"] if one["rank"] == 1)
    assert "cannot be reached" in problem["what"]
    assert "aten::mm" in {event["name"] for event in events(trace, "X")}


def test_an_export_of_a_store_is_that_of_its_copy(address, logs, tmp_path):
    out = tmp_path / "there"
    assert main(["export", address, "--run", "exp", *KINDS, "-o", str(out)]) == 0
    copy = tmp_path / "copy"
    assert main(["export", str(logs / "exp"), *KINDS, "-o", str(copy)]) == 0
    written = {path.name: path.read_bytes() for path in out.iterdir()}
    assert written == {path.name: path.read_bytes() for path in copy.iterdir()}
    assert len(written) == 2 * 6 + 1


def test_without_a_place_an_export_is_written_where_one_is(address, tmp_path, capsys):
    assert main(["export", f"{address}/exp", "--rank", "1", "--yaml"]) == 0
    folder = tmp_path / "here" / "memprofiler"
    assert {path.name for path in folder.iterdir()} == {
        "rank_1_memory_stats.yaml",
        "rank_1_fsdp_memory_stats.yaml",
        EXPORT_MARK,
    }
    # Nothing is replaced unasked.
    assert main(["export", f"{address}/exp", "--rank", "1", "--yaml"]) == 2
    assert "--force" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["merge", "export"])
def test_results_stay_on_this_machine(verb, address, capsys, tmp_path):
    secret = "s3://me:secret@bucket/out.json"
    assert command(verb, address, "--run", "exp", "-o", secret) == 2
    said = capsys.readouterr().err
    assert "this machine's disks" in said
    assert "secret" not in said
    assert list((tmp_path / "here").iterdir()) == []


def test_an_export_is_of_runs_alone(address, capsys):
    assert main(["export", f"{address}/traces/r0.json"]) == 2
    assert "a directory was expected" in capsys.readouterr().err
    assert main(["export", address, "--run", "traces"]) == 2
    assert "choose a run that MemBoard recorded" in capsys.readouterr().err


@pytest.fixture
def s3(monkeypatch, tmp_path):
    """A server that speaks S3, and credentials as users set them."""
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    pytest.importorskip("moto.server", reason="moto[server] is not installed")
    from tests.collector.mirror.s3_server import S3

    server = S3()
    server.bucket = f"commands{uuid.uuid4().hex}"
    server.client().mkdir(server.bucket)
    for name, value in server.environ(str(tmp_path / "none")).items():
        monkeypatch.setenv(name, value)
    yield server
    server.close()


def test_a_bucket_is_merged_and_exported(s3, logs, tmp_path):
    s3.client().put(f"{logs}/", f"{s3.bucket}/runs/", recursive=True)
    url = f"s3://{s3.bucket}/runs"
    out = tmp_path / "out.json.gz"
    assert main(["merge", url, "--run", "exp", "-o", str(out)]) == 0
    assert main(["merge", str(logs / "exp"), "-o", str(tmp_path / "copy.json")]) == 0
    assert read(out)["traceEvents"] == read(tmp_path / "copy.json")["traceEvents"]
    files = tmp_path / "files"
    assert main(["export", f"{url}/exp", "--yaml", "-o", str(files)]) == 0
    assert len(list(files.glob("*.yaml"))) == 2 * 2
    # What was read lies nowhere on this machine.
    left = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert left == []


def test_a_bucket_that_refuses_is_no_empty_one(s3, logs, tmp_path, capsys):
    s3.client().put(f"{logs}/", f"{s3.bucket}/runs/", recursive=True)
    s3.proxy.denies = True
    for verb in ("merge", "export"):
        assert main([verb, f"s3://{s3.bucket}/runs"]) == 2
        said = capsys.readouterr().err
        assert "denied access" in said
        assert "AWS_ACCESS_KEY_ID" in said
        assert "AKIAOFNOBODY" not in said
    assert list((tmp_path / "here").iterdir()) == []
