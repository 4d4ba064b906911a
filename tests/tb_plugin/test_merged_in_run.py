"""Merged traces in a run's directory: never counted beside what they were merged from."""

from __future__ import annotations

import json
import shutil

import pytest

from memboard.tb_plugin.cli import main
from tests.builders import RunBuilder
from tests.kineto_files import trained
from tests.tb_plugin.client import Page, answered, refresh
from tests.tb_plugin.merging.chrome import write_trace
from tests.tb_plugin.pages.profiled import columns_of

RANKS = (0, 1, 3)


@pytest.fixture
def folder(tmp_path):
    """Traces of three ranks."""
    found = tmp_path / "logs" / "exp"
    for rank in RANKS:
        made = trained()
        made.head["distributedInfo"] = {
            "backend": "nccl",
            "rank": rank,
            "world_size": 4,
        }
        made.slice(f"own of {rank}", 10_000, 5)
        made.write(found / f"host_{rank}.1.pt.trace.json")
    return found


def merge(folder, name):
    out = folder / name
    assert main(["merge", str(folder), "-o", str(out)]) == 0
    return out


def traces_of(page, name="exp"):
    return [(one["name"], one["rank"]) for one in page.of_run("/traces", name)["files"]]


def asked(page, route, **query):
    """An answer once what it is about was found, and is open."""

    def is_there(answer):
        choice = answer.get("choice")
        states = [one["state"] for one in answer.get("sources", ())]
        if choice is not None:
            states.append(choice["state"])
            if query.get("source") not in (None, choice["source"]):
                return False  # the run was listed a moment ago
        return "opening" not in states and not answer.get("num_opening")

    run = page.run_id("exp")
    return answered(lambda: page.get(f"/{route}", run=run, **query), is_there)


def shown_of(page, source):
    """What the pages show of one trace."""
    profile, operators, kernels = (
        asked(page, route, source=source)
        for route in ("profile", "operators", "kernels")
    )
    operators, kernels = (columns_of(one["table"]) for one in (operators, kernels))
    calls = zip(operators["name"], operators["num_calls"].tolist(), strict=True)
    times = zip(kernels["name"], kernels["total_ms"].round(3).tolist(), strict=True)
    return (
        profile["step"].tolist(),
        profile["duration_ms"].round(3).tolist(),
        {one["role"]: round(one["ms"].mean(), 3) for one in profile["parts"]},
        dict(calls),
        dict(times),
    )


@pytest.mark.parametrize("name", ["merged_trace.json.gz", "two.json.gz", "both.json"])
def test_beside_the_ranks_own_traces_it_changes_nothing(folder, name):
    page = Page(folder.parent)
    before = traces_of(page)
    own = asked(page, "distributed")
    merge(folder, name)
    refresh(page)
    assert traces_of(page) == before
    now = asked(page, "distributed")
    assert now["num_traces"] == 3
    assert columns_of(now["ranks"])["rank"].tolist() == list(RANKS)
    assert now["steps"].tolist() == own["steps"].tolist()
    trace = asked(page, "trace", ranks="0-9")
    assert sorted(one["rank"] for one in trace["sources"]) == list(RANKS)
    assert page.of_run("/traces", "exp")["run"]["num_ranks"] == 3


def test_in_a_recorded_run_without_traces_it_is_none_of_its_traces(tmp_path, folder):
    RunBuilder(tmp_path / "more" / "exp").simple(2, 5)
    shutil.copy(merge(folder, "two.json.gz"), tmp_path / "more" / "exp")
    page = Page(tmp_path / "more")
    assert traces_of(page) == []


@pytest.mark.parametrize("place", ["merged/all.json.gz", "all.json"])
def test_elsewhere_in_the_log_directory_it_is_no_run(folder, place):
    out = folder.parent / place
    out.parent.mkdir(exist_ok=True)
    assert main(["merge", str(folder), "-o", str(out)]) == 0
    page = Page(folder.parent)
    names = lambda: [one["name"] for one in page.get("/runs")["runs"]]  # noqa: E731
    assert names() == ["exp"]
    (folder / "host_1.1.pt.trace.json").unlink()
    refresh(page)
    # Of one of its ranks it is all there is.
    assert names() != ["exp"]


def test_of_a_recording_it_is_no_run_either(tmp_path):
    RunBuilder(tmp_path / "logs" / "exp").simple(2, 5)
    (tmp_path / "logs" / "merged").mkdir()
    out = tmp_path / "logs" / "merged" / "all.json.gz"
    assert main(["merge", str(tmp_path / "logs" / "exp"), "-o", str(out)]) == 0
    page = Page(tmp_path / "logs")
    assert [one["name"] for one in page.get("/runs")["runs"]] == ["exp"]
    # Without the recording it is shown.
    (other := tmp_path / "other").mkdir()
    shutil.copy(out, other)
    assert len(Page(other).get("/runs")["runs"]) == 1


def test_alone_it_is_all_of_its_ranks(folder, tmp_path):
    page = Page(folder.parent)
    run = page.run_id("exp")
    ids = {one["rank"]: one["id"] for one in page.of_run("/traces", "exp")["files"]}
    expected = {rank: shown_of(page, ids[rank]) for rank in RANKS}
    own = asked(page, "distributed")
    out = merge(folder, "two.json.gz")
    for file in folder.glob("host_*"):
        file.unlink()
    refresh(page)
    assert page.run_id("exp") == run
    assert traces_of(page) == [(out.name, rank) for rank in RANKS]
    ids = {one["rank"]: one["id"] for one in page.of_run("/traces", "exp")["files"]}
    for rank in RANKS:
        assert shown_of(page, ids[rank]) == expected[rank]
        names = columns_of(asked(page, "operators", source=ids[rank])["table"])["name"]
        assert [one for one in names if one.startswith("own")] == [f"own of {rank}"]
    now = asked(page, "distributed")
    of_now, of_own = columns_of(now["ranks"]), columns_of(own["ranks"])
    assert of_now["rank"].tolist() == list(RANKS)
    for column in ("step_ms", "computation_ms", "communication_ms"):
        assert of_now[column].round(3).tolist() == of_own[column].round(3).tolist()
    trace = asked(page, "trace", ranks="0-9")
    assert [one["rank"] for one in trace["sources"]] == list(RANKS)
    for source in trace["sources"]:
        tracks = [one for one in trace["tracks"] if one["rank"] == source["rank"]]
        assert sum(one["num_slices"] for one in tracks) == source["num_slices"] > 0


def test_composers_own_is_not_counted_either(folder):
    events = [
        {"name": "thread_sort_index", "ph": "M", "pid": 0, "tid": 70,
         "args": {"sort_index": 99999}},
        {"name": "a", "ph": "X", "pid": 0, "tid": 70, "ts": 1, "dur": 1},
    ]  # fmt: skip
    write_trace(folder / "renamed.json", events)
    page = Page(folder.parent)
    assert [rank for _, rank in traces_of(page)] == list(RANKS)


def test_the_report_counts_it_not(folder, capsys):
    merge(folder, "merged_trace.json.gz")
    capsys.readouterr()
    assert main(["report", str(folder), "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert sorted(one["rank"] for one in run["traces"]) == list(RANKS)


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("profile_2.json", 2),
        ("profile_2.json.gz", 2),
        ("1757000000.25-TP-3.trace.json.gz", 3),
        ("out.json", None),
        ("run.rank5.json.gz", 5),
    ],
)
def test_traces_of_other_names_are_found_by_what_they_hold(tmp_path, name, rank):
    made = trained()
    del made.head["distributedInfo"]
    made.write(tmp_path / "logs" / "exp" / name)
    (tmp_path / "logs" / "exp" / "config.json").write_text('{"a": [1, 2]}')
    page = Page(tmp_path / "logs")
    assert traces_of(page) == [(name, rank)]


def test_a_trace_that_is_still_written_is_found_when_it_grew(tmp_path):
    path = tmp_path / "logs" / "exp" / "out.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"schema')
    page = Page(path.parents[1])
    assert page.get("/runs")["runs"] == []
    with path.open("r+") as file:  # the directory's own time stays as it is
        file.write(json.dumps({"traceEvents": trained().events}))
    refresh(page)
    assert traces_of(page) == [("out.json", None)]
