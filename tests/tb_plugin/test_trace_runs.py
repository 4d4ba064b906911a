"""Files of traces: which run they belong to, in which order, and what is not opened."""

from __future__ import annotations

import gzip
import os

import pytest

from tests.builders import RunBuilder
from tests.tb_plugin import logdirs
from tests.tb_plugin.client import Page, answered, refresh
from tests.tb_plugin.readers.traces.reading import document, event

TRACE = document([event("a", 1, 5, args={"x": 1})])


@pytest.fixture
def logdir(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


def write(path, data=TRACE):
    return logdirs.write(path, data)


def shown(index) -> dict[str, list[tuple]]:
    return {
        run.name: [(f.name, f.rank, f.cycle) for f in run.traces.found.files]
        for run in index.runs.values()
        if run.traces is not None
    }


def ready(page, run_id) -> dict:
    """The Trace view's answer once every source is open."""
    return answered(
        lambda: page.get("/trace", run=run_id),
        lambda found: all(one["state"] != "opening" for one in found["sources"]),
    )


def test_cycles_are_ordered_as_numbers(logdir):
    names = ("w.9", "w.10", "w.100", "w.1700000000001", "w.1700000000000500000")
    for name in names:
        write(logdir / "exp" / f"{name}.pt.trace.json")
    found = shown(logdirs.index_of(logdir))["exp"]
    in_order = ("w.9", "w.10", "w.100", "w.1700000000000500000", "w.1700000000001")
    assert [name.removesuffix(".pt.trace.json") for name, _, _ in found] == list(
        in_order
    )
    assert [cycle for _, _, cycle in found] == [1, 2, 3, 4, 5]


def test_the_rank_is_what_the_trace_says_before_what_its_name_says(logdir):
    said = document([event()], distributedInfo={"backend": "nccl", "rank": 12})
    write(logdir / "rank3.1.pt.trace.json", said)
    write(
        logdir / "rank4.1.pt.trace.json.gz", gzip.compress(said.replace(b"12", b"13"))
    )
    write(logdir / "rank5.1.pt.trace.json")
    ranks = [rank for _, rank, _ in shown(logdirs.index_of(logdir))["."]]
    assert ranks == [5, 12, 13]


def test_folders_of_ranks_and_iterations_are_one_run(logdir):
    write(logdir / "exp" / "rank_0" / "ep0-ba5-rank0.json")
    write(logdir / "exp" / "rank_1" / "ep0-ba5-rank1.json")
    write(logdir / "exp" / "iteration_40" / "rank0_trace.json.gz", gzip.compress(TRACE))
    write(logdir / "exp" / "iteration_5" / "rank0_trace.json.gz", gzip.compress(TRACE))
    assert shown(logdirs.index_of(logdir)) == {
        "exp": [
            ("ep0-ba5-rank0.json", 0, 1),
            ("rank0_trace.json.gz", 0, 1),
            ("rank0_trace.json.gz", 0, 2),
            ("ep0-ba5-rank1.json", 1, 1),
        ]
    }


def test_in_a_recorded_runs_directory_they_belong_to_it(logdir):
    RunBuilder(logdir / "exp").simple(1, 5)
    write(logdir / "exp" / "torch_traces" / "rank0.3.pt.trace.json")
    write(logdir / "other" / "rank0.3.pt.trace.json")
    page = Page(logdir)
    made_of = {run["name"]: run["made_of"] for run in page.get("/runs")["runs"]}
    assert made_of == {"exp": "recording", "other": "traces"}
    (file,) = page.of_run("/traces", "exp")["files"]
    assert (file["name"], file["rank"]) == ("rank0.3.pt.trace.json", 0)
    assert file["path"] == "exp/torch_traces/rank0.3.pt.trace.json"


def test_files_that_come_later_appear_and_those_that_go_do_not_stay(logdir):
    first = write(logdir / "exp" / "w.1.pt.trace.json")
    page = Page(logdir)
    assert page.of_run("/traces", "exp")["num_files"] == 1
    write(logdir / "exp" / "w.2.pt.trace.json")
    refresh(page)
    assert page.of_run("/traces", "exp")["num_files"] == 2
    first.unlink()
    refresh(page)
    (file,) = page.of_run("/traces", "exp")["files"]
    assert file["name"] == "w.2.pt.trace.json"


def test_a_file_that_still_grows_is_opened_again(logdir):
    events = [event(f"n{i}", i, args={"x": i * 7919 % 1000}) for i in range(3000)]
    packed = gzip.compress(document(events))
    path = write(
        logdir / "exp" / "rank0.1.pt.trace.json.gz", packed[: len(packed) // 2]
    )
    page = Page(logdir)
    run_id = page.run_id("exp")
    (part,) = ready(page, run_id)["sources"]
    assert 0 < part["num_slices"] < 3000
    assert part["notes"]
    path.write_bytes(packed)
    refresh(page)
    # What it held is shown, and called ready, until all of it is open.
    (whole,) = answered(
        lambda: page.get("/trace", run=run_id)["sources"],
        lambda found: found[0]["num_slices"] != part["num_slices"],
    )
    assert (whole["state"], whole["num_slices"]) == ("ready", 3000)


def test_the_file_itself_can_be_had_whole_and_in_part(logdir):
    write(logdir / "exp" / "rank0.1.pt.trace.json")
    page = Page(logdir)
    run_id = page.run_id("exp")
    (file,) = page.get("/traces", run=run_id)["files"]
    whole = page.raw("/trace_file", run=run_id, source=file["id"])
    assert (whole.status_code, whole.data) == (200, TRACE)
    whole.close()
    assert 'filename="rank0.1.pt.trace.json"' in whole.headers["Content-Disposition"]
    assert whole.headers["X-Content-Type-Options"] == "nosniff"
    part = page.raw(
        "/trace_file", run=run_id, source=file["id"], headers={"Range": "bytes=3-9"}
    )
    assert (part.status_code, part.data) == (206, TRACE[3:10])
    part.close()
    assert part.headers["Content-Range"] == f"bytes 3-9/{len(TRACE)}"
    for source in ("t0000000000000000", "../../etc/passwd", file["path"]):
        answer = page.raw("/trace_file", run=run_id, source=source)
        assert answer.status_code in (400, 404)


def test_linked_traces_are_shown_where_their_names_are_of_a_trace(logdir, tmp_path):
    """Whoever may write into a logdir must not have any file downloaded."""
    outside = write(tmp_path / "outside" / "rank0.1.pt.trace.json")
    secret = write(tmp_path / "secret")
    write(logdir / "exp" / "rank1.1.pt.trace.json")
    (logdir / "exp" / "rank0.1.pt.trace.json").symlink_to(outside)
    (logdir / "exp" / "rank3.1.pt.trace.json").symlink_to(secret)
    (logdir / "exp" / "rank4.1.pt.trace.json").symlink_to(tmp_path / "gone")
    (logdir / "linked").symlink_to(outside.parent)
    os.mkfifo(logdir / "exp" / "rank2.1.pt.trace.json")
    page = Page(logdir)
    answer = page.of_run("/traces", "exp")
    assert [file["path"] for file in answer["files"]] == [
        f"exp/rank0.1.pt.trace.json -> {outside}",
        "exp/rank1.1.pt.trace.json",
    ]
    assert [file["rank"] for file in answer["files"]] == [0, 1]
    said = {problem["path"]: problem["what"] for problem in answer["problems"]}
    assert "not a regular file" in said["exp/rank2.1.pt.trace.json"]
    assert f"leads out of the logdir, to {secret}" in said["exp/rank3.1.pt.trace.json"]
    assert "leads to nothing" in said["exp/rank4.1.pt.trace.json"]
    assert [f["rank"] for f in page.of_run("/traces", "linked")["files"]] == [0]


def test_a_file_that_became_a_link_is_not_given(logdir, tmp_path):
    secret = write(tmp_path / "secret.json", b"secret")
    path = write(logdir / "exp" / "rank0.1.pt.trace.json")
    page = Page(logdir)
    run_id = page.run_id("exp")
    (file,) = page.get("/traces", run=run_id)["files"]
    path.unlink()
    path.symlink_to(secret)
    answer = page.raw("/trace_file", run=run_id, source=file["id"])
    assert answer.status_code == 404
    assert b"secret" not in answer.data


def test_recordings_point_to_traces_and_know_their_cycle(logdir):
    (rank,) = RunBuilder(logdir / "exp").simple(1, 5, close=False)
    for cycle, said in (
        (2, "traces/a.pt.trace.json"),
        (3, "../../x.json"),
        (4, "gone"),
    ):
        rank.capture(
            kind="trace", function="step", step=3, meta={"path": said, "cycle": cycle}
        )
    rank.close()
    (file,) = (logdir / "exp").rglob("rank*.events")
    write(file.with_suffix("") / "traces" / "a.pt.trace.json")
    write(file.parent.parent / "x.json", b"{}")
    page = Page(logdir)
    (found,) = page.of_run("/traces", "exp")["files"]
    assert (found["recorded"], found["rank"], found["cycle"]) == (True, 0, 2)
    assert ready(page, page.run_id("exp"))["sources"][0]["num_slices"] == 1


def test_a_linked_recording_is_named_with_where_it_lies(logdir, tmp_path):
    (rank,) = RunBuilder(tmp_path / "elsewhere").simple(1, 5, close=False)
    meta = {"path": "traces/a.pt.trace.json", "cycle": 1}
    rank.capture(kind="trace", function="step", step=3, meta=meta)
    rank.close()
    (file,) = (tmp_path / "elsewhere").rglob("rank*.events")
    trace = file.with_suffix("") / "traces" / "a.pt.trace.json"
    write(trace)
    with file.open("ab") as out:
        out.write(b"damage" * 20)
    single = logdir / "single" / "plugins" / "memboard"
    single.mkdir(parents=True)
    (single / file.name).symlink_to(file)
    (logdir / "exp").symlink_to(tmp_path / "elsewhere")
    page = Page(logdir)
    shown = file.relative_to(tmp_path / "elsewhere")
    (found,) = page.of_run("/traces", "exp")["files"]
    assert found["path"].partition(" -> ")[::2] == (
        f"exp/{shown.parent}/{trace.relative_to(file.parent)}",
        str(trace),
    )
    assert ready(page, page.run_id("exp"))["sources"][0]["num_slices"] == 1
    (problem,) = page.of_run("/overview", "exp")["problems"]
    assert problem["path"] == f"exp/{shown} -> {file}"
    (problem,) = page.of_run("/overview", "single")["problems"]
    assert problem["path"] == f"single/plugins/memboard/{file.name} -> {file}"


def test_another_tools_traces_of_the_same_rank_have_cycles_of_their_own(logdir):
    """As torch's own handler leaves them in the run's directory."""
    (rank,) = RunBuilder(logdir / "exp").simple(1, 5, close=False)
    for cycle in (1, 2):
        meta = {"path": f"traces/{cycle}.pt.trace.json", "cycle": cycle}
        rank.capture(kind="trace", function="step", iteration=cycle, meta=meta)
    rank.close()
    (file,) = (logdir / "exp").rglob("rank*.events")
    for cycle in (1, 2):
        write(file.with_suffix("") / "traces" / f"{cycle}.pt.trace.json")
    said = document([event()], distributedInfo={"backend": "nccl", "rank": 0})
    theirs = [f"host_7.170000000000{n}.pt.trace.json" for n in range(3)]
    for name in theirs:
        write(logdir / "exp" / name, said)
    page = Page(logdir)
    run_id = page.run_id("exp")
    found = answered(
        lambda: page.get("/traces", run=run_id)["files"],
        lambda files: all(one["rank"] == 0 for one in files),
    )
    assert {one["name"]: one["cycle"] for one in found} == {
        "1.pt.trace.json": 1,
        "2.pt.trace.json": 2,
        **dict(zip(theirs, (3, 4, 5), strict=True)),
    }

    def shown(**query):
        found = page.get("/trace", run=run_id, **query)["sources"]
        return [one["name"] for one in found if one["kind"] == "trace"]

    assert shown() == ["2.pt.trace.json"]
    assert shown(cycle=1) == ["1.pt.trace.json"]
    assert shown(cycle=3) == theirs[:1]
    chosen = page.get("/profile", run=run_id)["choice"]
    assert len(chosen["traces"]) == 5
