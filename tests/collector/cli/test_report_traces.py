"""Traces in a report: recorded ones, and files, also opened by name."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from memboard.tb_plugin.cli import main
from memboard.tb_plugin.cli.open.command import first_place
from memboard.tb_plugin.index.logdirs import OpenedPaths
from memboard.tb_plugin.plugin import MemBoardPlugin
from tests.builders import RunBuilder
from tests.collector.torch_profiler.training import train
from tests.kineto_files import trained
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import ask
from tests.tb_plugin.readers.traces.reading import document, event

REAL = Path(os.environ.get("MEMBOARD_REAL_DATA", "nowhere")) / "kineto"
FIGURES = [
    pytest.param(path.parent / name, figures, id=f"{path.parent.name}/{name}")
    for path in sorted(REAL.rglob("expected.json"))
    for name, figures in json.loads(path.read_text()).get("independent", {}).items()
]


def said(capsys, *arguments: object, code: int = 0) -> str:
    assert main(["report", *map(str, arguments)]) == code
    return capsys.readouterr().out


def reported(capsys, *paths: Path, code: int = 0) -> list[dict]:
    return json.loads(said(capsys, "--json", *paths, code=code))["runs"]


def write(path: Path, *events: dict, **top: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(document(list(events), **top))
    return path


def test_a_directory_of_traces_is_reported_and_a_bad_file_hides_nothing(
    tmp_path, capsys
):
    folder = tmp_path / "logs"
    write(folder / "w_0.9.pt.trace.json", event("ProfilerStep#1", 10.5, 4), event())
    write(folder / "w_0.10.pt.trace.json", event(), distributedInfo={"rank": 5})
    (folder / "w_1.1.pt.trace.json").write_text("no")
    (run,) = reported(capsys, folder, code=4)
    assert run["run"]["made_of"] == "traces"
    first, bad, later = run["traces"]
    assert bad["worker"] == "w_1"
    assert "not JSON" in bad["problem"]
    assert (first["rank"], first["cycle"], first["events"]) == (None, 1, 2)
    assert first["by_ph_cat"] == {"X|cpu_op": 2}
    assert first["profiler_steps"] == [["ProfilerStep#1", 10.5, 4.0]]
    assert (later["rank"], later["name"]) == (5, "w_0.10.pt.trace.json")


@pytest.mark.parametrize(
    "long",
    [
        {"backend": "nccl" * 50_000},
        {"pg_config": [{"ranks": list(range(1024))} for _ in range(64)]},
    ],
)
def test_long_lists_of_process_groups_cost_nothing_else(tmp_path, capsys, long):
    info = {"rank": 3, "world_size": 1024, **long}
    path = write(tmp_path / "a.pt.trace.json", event(), distributedInfo=info)
    (run,) = reported(capsys, path)
    (trace,) = run["traces"]
    assert (trace["rank"], trace["events"], trace["problem"]) == (3, 1, None)
    assert trace["distributedInfo"]["world_size"] == 1024


def test_a_file_of_any_name_is_known_by_what_it_holds(tmp_path, capsys):
    path = write(tmp_path / "odd.json", event())
    (run,) = reported(capsys, path)
    (trace,) = run["traces"]
    assert trace["by_ph_cat"] == {"X|cpu_op": 1}
    assert main(["report", str(path)]) == 0
    assert "1 event" in capsys.readouterr().out


def test_the_url_of_a_trace_shows_the_trace_page(tmp_path):
    path = write(tmp_path / "a" / "rank0.1.pt.trace.json", event())
    for given in (
        OpenedPaths((str(path),)),
        OpenedPaths(folders=(str(tmp_path / "a"),)),
    ):
        place = first_place(
            given,
            lambda given=given: MemBoardPlugin(None, given).state().store,
        )
        assert place.startswith("view=trace&run=")


def test_traces_of_a_recorded_run_are_in_its_report(tmp_path, capsys):
    RunBuilder(tmp_path / "logs" / "exp").simple(1, 5)
    folder = tmp_path / "logs" / "exp" / "torch_traces"
    write(folder / "rank0.3.pt.trace.json", event())
    (run,) = reported(capsys, tmp_path / "logs")
    assert run["run"]["made_of"] == "recording"
    (trace,) = run["traces"]
    assert (trace["rank"], trace["events"]) == (0, 1)


def test_a_recordings_traces_are_listed(tmp_path, capsys):
    recorder = train(tmp_path / "exp", 9, num_traces_to_keep=1)
    (run,) = reported(capsys, tmp_path)
    first, second = run["traces"]
    assert (first["first_step"], first["last_step"]) == (2, 3)
    assert (first["exists"], second["exists"]) == (False, True)
    assert [Path(second["path"])] == list(recorder.saved_traces[0].paths)
    assert second["num_bytes"] == Path(second["path"]).stat().st_size
    assert second["num_steps"] == 2
    assert second["flops"] > 0
    assert "by self CPU" in second["summary"]
    assert second["complete"]
    text = said(capsys, tmp_path)
    assert "torch profiler: 2 traces, 1 of them here" in text
    assert re.search("0 +steps 2 to 3 .* not here", text)
    operators = text.partition("operators in steps ")[2].splitlines()
    assert operators[0].endswith("of rank 0, by self CPU")
    assert re.fullmatch(r" +operator +self CPU .* share", operators[1])
    assert (
        len(re.findall(r"^ +\S.* %$", "\n".join(operators[2:12]), re.MULTILINE)) == 10
    )


def recorded_at(logdir: Path, *, also: str = "") -> Path:
    """A trace that a recording names, and a link to it in the run's folder."""
    (rank,) = RunBuilder(logdir / "exp").simple(1, 5, close=False)
    meta = {
        "path": "traces/a.pt.trace.json",
        "cycle": 2,
        "first_step": 2,
        "last_step": 3,
    }
    rank.capture(kind="trace", function="step", step=3, meta=meta)
    rank.close()
    (file,) = (logdir / "exp").rglob("rank*.events")
    events = [event("aten::mm", 10.0 * at, 5) for at in range(40)]
    path = write(file.with_suffix("") / "traces" / "a.pt.trace.json", *events)
    if also:
        (logdir / "exp" / also).symlink_to(path)
    return path


@pytest.mark.parametrize("also", ["", "rank0.1.pt.trace.json"])
def test_a_trace_that_a_recording_names_is_read_once(tmp_path, capsys, also):
    """Wherever else the file is found."""
    path = recorded_at(tmp_path, also=also)
    (run,) = reported(capsys, tmp_path)
    (trace,) = run["traces"]
    assert (trace["path"], trace["exists"], trace["problem"]) == (str(path), True, None)
    assert (trace["rank"], trace["cycle"], trace["attempt"]) == (0, 2, 1)
    assert (trace["events"], trace["by_ph_cat"]) == (40, {"X|cpu_op": 40})
    text = said(capsys, tmp_path)
    assert "torch profiler: 1 trace, 1 of them here" in text
    assert re.search("0 +steps 2 to 3, 40 events", text)


@pytest.mark.parametrize("damage", ["cut", "junk", "empty"])
def test_what_is_wrong_with_a_trace_that_a_recording_names_is_said(
    tmp_path, capsys, damage
):
    path = recorded_at(tmp_path)
    data = path.read_bytes()
    path.write_bytes({"cut": data[:-900], "junk": b"junk", "empty": b""}[damage])
    (run,) = reported(capsys, tmp_path, code=4)
    problem = run["problems"][0]
    assert problem["path"].endswith("/traces/a.pt.trace.json")
    assert problem["rank"] == 0
    what = problem["what"].rstrip(".")
    for form in ((), ("--md",)):
        text = said(capsys, *form, tmp_path, code=4)
        assert what in text
        assert "a.pt.trace.json" in text
    (trace,) = run["traces"]
    assert trace["exists"]
    assert (trace["first_step"], trace["cycle"]) == (2, 2)
    told = trace["problem"] or trace["problems"][0]["what"]
    assert told
    reported(capsys, "--rank", "0", tmp_path, code=4)


def test_a_trace_is_named_with_where_it_lies_outside_of_the_logdir(tmp_path, capsys):
    """In a linked folder, that a recording names it or not."""
    path = recorded_at(tmp_path / "elsewhere")
    path.write_bytes(b"junk")
    found = tmp_path / "elsewhere" / "exp" / "rank0.1.pt.trace.json"
    found.write_bytes(b"junk")
    (events,) = path.parents[2].glob("rank*.events")
    events.write_bytes(events.read_bytes() + b"damage")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "linked").symlink_to(tmp_path / "elsewhere" / "exp")
    (run,) = reported(capsys, tmp_path / "logs", code=4)
    folder = tmp_path / "elsewhere" / "exp"
    shown = {one["path"] for one in run["problems"]}
    assert shown == {
        f"linked/{one.relative_to(folder)} -> {one}" for one in (path, found, events)
    }
    for form in ((), ("--md",)):
        text = said(capsys, *form, tmp_path / "logs", code=4)
        assert all(
            f"-> {one}" in text.replace("\\", "") for one in (path, found, events)
        )


@pytest.mark.parametrize("path", ["../../x", "/etc/passwd", "a\0b", 7, None, ""])
def test_a_capture_may_say_anything(tmp_path, capsys, path):
    meta = {"path": path, "first_step": "x", "flops": True, "summary": 3, "problem": []}
    (rank,) = RunBuilder(tmp_path / "exp").simple(1, 5, close=False)
    rank.capture(kind="trace", function="step", step=3, meta=meta)
    rank.close()
    (run,) = reported(capsys, tmp_path)
    (trace,) = run["traces"]
    assert trace["path"] is None
    assert trace["exists"] is False
    assert trace["first_step"] is trace["flops"] is trace["summary"] is None
    assert "not here" in said(capsys, tmp_path)


def test_a_run_without_traces_says_nothing_of_them(tmp_path, capsys):
    RunBuilder(tmp_path / "exp").simple(1, 5)
    assert "torch profiler" not in said(capsys, tmp_path)


@pytest.mark.parametrize(("path", "figures"), FIGURES)
def test_figures_of_real_traces_have_the_names_they_are_known_by(path, figures, capsys):
    (run,) = reported(capsys, path)
    (trace,) = run["traces"]
    for name in ("events", "by_ph_cat", "distributedInfo", "n_device_properties"):
        assert trace[name] == figures[name]
    assert trace["baseTimeNanoseconds"] == figures["baseTimeNanoseconds"]
    found = [
        [name, pytest.approx(start, abs=0.3), length]
        for name, start, length in trace["profiler_steps"]
    ]
    assert sorted(figures["profiler_steps"], key=lambda step: step[1]) == found


ROUTES = ("profile", "operators", "kernels", "trace_idle", "trace_path", "distributed")


def test_a_trace_is_reported_as_its_pages_say(tmp_path, capsys):
    for rank in range(2):
        path = tmp_path / "exp" / f"host_{rank}.100.pt.trace.json"
        trained(rank, world_size=2, wait_us=100.0 * (1 - rank)).write(path)
    (run,) = reported(capsys, tmp_path)
    page = Page(tmp_path)
    for route in ROUTES:
        answer = {**ask(page, route)}
        told = run["trace"][route]
        for key, value in answer.items():
            if isinstance(value, str) and not key.startswith("$"):
                assert told[key] == value, (route, key)
        table = answer.get("table")
        if table is not None:
            columns = {column["key"]: column for column in told["table"]["columns"]}
            for column in table["columns"]:
                assert columns[column["key"]]["texts"] == list(column["texts"])
                numbers = columns[column["key"]]["numbers"]
                assert np.array(numbers, float) == pytest.approx(
                    np.array(column["numbers"], float), nan_ok=True
                )
    text = said(capsys, tmp_path)
    for line in (
        "3 profiled steps, mean",
        "volta_sgemm_128x64_nn",
        "aten::mm",
        *ask(page, "trace_idle")["sentences"],
        *ask(page, "trace_path")["sentences"],
        ask(page, "distributed")["sentence"],
    ):
        assert line in " ".join(text.split()), line
    for form in ("--json", "--md"):
        assert said(capsys, form, "--rank", 1, tmp_path)


def test_a_trace_without_steps_and_devices_says_so(tmp_path, capsys):
    write(tmp_path / "a.pt.trace.json", event())
    text = said(capsys, tmp_path)
    assert "no steps are marked; all of it takes" in text
    assert "kernels" not in text
