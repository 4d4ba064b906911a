"""`memboard open`, `report` and `import` of what lies at a store."""

from __future__ import annotations

import json
import pickle
import sys

import pytest

from memboard.tb_plugin.cli import main
from memboard.tb_plugin.cli.open import command as open_verb
from memboard.tb_plugin.cli.opening import open_files, path_or_url
from memboard.tb_plugin.index.logdirs import OpenedPaths
from memboard.tb_plugin.plugin import MemBoardPlugin
from tests.builders import RunBuilder
from tests.collector.cli.conftest import MEMORY, stored
from tests.made_snapshots import long_history

TRACE = {"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1}]}


@pytest.fixture
def address(tmp_path):
    """A folder at a store with a recording, a snapshot and a trace."""
    logs = tmp_path / "logs"
    RunBuilder(logs / "exp").simple(2, 30)
    with stored(logs) as found:
        snapshot = pickle.dumps(long_history(60), 4)
        for name, data in (
            ("snaps/rank3_memory_snapshot.pickle", snapshot),
            ("w.pt.trace.json", json.dumps(TRACE).encode()),
        ):
            MEMORY.pipe_file(f"{found.removeprefix('memory:/')}/{name}", data)
        yield found


def report(capsys, *arguments: str) -> dict:
    assert main(["report", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def answers_in(run: dict):
    """The answers of a run's pages, without the summary that each repeats."""
    for name, answer in run.items():
        for one in answer if isinstance(answer, list) else [answer]:
            if name != "run":
                yield {k: v for k, v in (one or {}).items() if k != "run"}


def test_a_report_of_a_store_says_what_that_of_a_copy_says(address, tmp_path, capsys):
    there = report(capsys, address, "--run", "exp")
    here = report(capsys, str(tmp_path / "logs"), "--run", "exp")
    assert there["logdir"] == address
    (mine,), (theirs,) = there["runs"], here["runs"]
    for volatile in ("id", "first_ms", "last_ms"):
        mine["run"].pop(volatile), theirs["run"].pop(volatile)
    assert mine["run"] == theirs["run"]
    assert [*answers_in(mine)] == [*answers_in(theirs)]
    everything = report(capsys, address + "/")
    found = {run["run"]["name"]: run["run"]["made_of"] for run in everything["runs"]}
    own = address.rpartition("/")[2]
    assert found == {"exp": "recording", "snaps": "snapshots", own: "traces"}


def test_single_files_of_a_store_are_reported(address, capsys):
    trace, snapshot = (
        f"{address}/w.pt.trace.json",
        f"{address}/snaps/rank3_memory_snapshot.pickle",
    )
    found = report(capsys, trace, snapshot)
    assert found["logdir"] == trace
    by_kind = {run["run"]["made_of"]: run for run in found["runs"]}
    assert by_kind["snapshots"]["run"]["num_ranks"] == 1
    (told,) = by_kind["traces"]["traces"]
    assert (told["path"], told["events"], told["problem"]) == (trace, 1, None)


def test_a_snapshot_of_a_store_is_imported(address, tmp_path, capsys):
    logdir = tmp_path / "imported"
    snapshot = f"{address}/snaps/rank3_memory_snapshot.pickle"
    assert main(["import", snapshot, "--logdir", str(logdir), "--run", "r"]) == 0
    assert "rank 3: 1 snapshot" in capsys.readouterr().out
    (snapshot,) = report(capsys, str(logdir))["runs"][0]["snapshots"]
    assert snapshot["history"]["rank"] == 3


@pytest.mark.parametrize(
    ("named", "what", "remedy"),
    [
        ("memory://nothing-is-here", "nothing at this address", "Check it"),
        ("s4://bucket/runs", "fsspec knows no s4://", "spelled"),
        ("gs://bucket/runs", "needs a package", "pip install 'memboard[gs]'"),
        ("az://c/runs", "needs a package", "pip install 'memboard[azure]'"),
        (
            "https://someone.blob.core.windows.net/c/runs?sv=1&sig=c2VjcmV0",
            "needs a package",
            "pip install 'memboard[azure]'",
        ),
    ],
)
@pytest.mark.parametrize("verb", ["open", "report", "merge", "export"])
def test_what_cannot_be_read_is_three_lines(
    verb, named, what, remedy, capsys, monkeypatch
):
    for module in ("gcsfs", "adlfs"):
        monkeypatch.setitem(sys.modules, module, None)
    assert main([verb, named]) == 2
    said = capsys.readouterr().err
    assert what in said
    assert remedy in said
    assert named.partition("?")[0] in said
    assert "c2VjcmV0" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("verb", "remedy"),
    [
        ("open", "memboard open '{}/exp'"),
        *((verb, "name the run's directory") for verb in ("merge", "export")),
    ],
)
def test_a_recording_is_opened_by_its_run(address, capsys, verb, remedy):
    found = MEMORY.find(address.removeprefix("memory:/"))
    path = next(f"memory:/{name}" for name in found if "rank00000" in name)
    assert main([verb, path]) == 2
    said = capsys.readouterr().err
    assert "one rank" in said
    assert remedy.format(address) in said


@pytest.mark.parametrize(
    ("below", "files", "folders"),
    [("", 0, 1), ("/w.pt.trace.json", 1, 0), ("/snaps", 0, 1)],
)
def test_what_is_opened_is_shown_first(address, below, files, folders):
    (found,), bad = open_files([path_or_url(address + below)], folders=True)
    assert bad == []
    given = OpenedPaths((str(found),) * files, (str(found),) * folders)
    plugin = MemBoardPlugin(None, given)
    place = open_verb.first_place(given, lambda: plugin.state().store)
    assert place.startswith("view=" if below else ("view=", "run="))
    assert plugin.is_active()


def test_a_file_url_is_a_path(tmp_path, capsys):
    RunBuilder(tmp_path / "a b" / "exp").simple(1, 3)
    url = f"file://{tmp_path}/a%20b"
    assert [run["run"]["name"] for run in report(capsys, url)["runs"]] == ["exp"]
