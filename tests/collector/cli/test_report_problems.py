"""What a reader knows of damage is in every form of the report, on the page, and its code."""

from __future__ import annotations

import json
import os
import pickle
import time
from typing import TYPE_CHECKING, Any

import pytest

from memboard.tb_plugin.cli import main
from memboard.tb_plugin.cli.report import traces as report_traces
from memboard.tb_plugin.facts.histories import figures, file_peaks
from memboard.tb_plugin.formats.plain_files import WRITING_SECONDS
from memboard.tb_plugin.index.search import sniffing
from tests.made_snapshots import long_history
from tests.tb_plugin.client import Page, answered
from tests.tb_plugin.readers.traces.reading import document, event

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FORMS = ((), ("--md",), ("--json",))


@pytest.fixture
def logdir(tmp_path) -> Path:
    """A folder with a good snapshot and a good trace."""
    (tmp_path / "exp").mkdir()
    put_snapshot(tmp_path, "good")
    events = [event("aten::mm", at * 10.0, 5) for at in range(40)]
    (tmp_path / "exp" / "good.pt.trace.json").write_bytes(document(events))
    return tmp_path


def put_snapshot(logdir: Path, name: str) -> Path:
    path = logdir / "exp" / f"{name}_snapshot.pickle"
    path.write_bytes(pickle.dumps(long_history(80)))
    return path


@pytest.fixture
def report(capsys):
    """The text of a form, and the exit code."""

    def reported(*arguments: object) -> tuple[str, int]:
        code = main(["report", *map(str, arguments)])
        return capsys.readouterr().out, code

    return reported


def problems_in(text: str) -> list[dict[str, Any]]:
    told = json.loads(text)
    return told["problems"] + [one for run in told["runs"] for one in run["problems"]]


def test_whole_files_have_no_problem(logdir, report):
    assert problems_in(report(logdir, "--json")[0]) == []
    assert [report(logdir, *form)[1] for form in FORMS] == [0, 0, 0]


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_cut_trace_is_said_to_be_cut(logdir, report, share):
    trace = logdir / "exp" / "good.pt.trace.json"
    data = trace.read_bytes()
    trace.write_bytes(data[: int(len(data) * share)])
    for form in FORMS:
        text, code = report(logdir, *form)
        assert code == 4
        assert "good.pt.trace.json" in text
        assert "The file ends inside its list of events" in text
    problems = problems_in(report(logdir, "--json")[0])
    cut = next(one for one in problems if "ends inside" in one["what"])
    assert cut["path"] == "exp/good.pt.trace.json"
    assert cut["salvaged"]
    assert cut["remedy"]
    page = Page(logdir)
    name = "exp (traces)"
    page.get("/runs")
    answered(
        lambda: page.of_run("/profile", name)["choice"],
        lambda choice: choice["state"] == "ready",
    )
    shown = page.of_run("/overview", name)["problems"]
    assert cut["what"] in [one["what"] for one in shown]
    (summary,) = (one for one in page.get("/runs")["runs"] if one["name"] == name)
    assert summary["num_problems"] == len(shown) > 0


@pytest.mark.parametrize("data", [b"junk\n", b"\x80\x04]q", bytes(range(256)) * 9])
def test_a_file_of_no_kind_beside_others_is_named(logdir, report, data):
    (logdir / "exp" / "junk.pickle").write_bytes(data)
    for form in FORMS:
        text, code = report(logdir, *form)
        assert code == 4
        assert "junk.pickle" in text
    (problem,) = problems_in(report(logdir, "--json")[0])
    assert problem["path"] == "exp/junk.pickle"
    page = Page(logdir)
    page.get("/runs")
    (shown,) = page.of_run("/overview", "exp")["logdir_problems"]
    assert shown["what"] == problem["what"]


def fifo(path: Path) -> None:
    os.mkfifo(path)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def broken_link(path: Path) -> None:
    path.symlink_to("nowhere")


def looping_link(path: Path) -> None:
    path.symlink_to(path.name)


def long_loop(path: Path) -> None:
    other = path.with_name("other.txt")
    other.symlink_to(path.name)
    path.symlink_to(other.name)


@pytest.mark.parametrize(
    ("put", "what"),
    [
        (empty, "The file is empty."),
        (fifo, "This is not a regular file; it is not opened."),
        (broken_link, "This is a link that leads to nothing"),
        (looping_link, "This is a link that leads around to itself"),
        (long_loop, "This is a link that leads around to itself"),
    ],
)
@pytest.mark.parametrize(
    "name", ["mem.pickle", "memory_snapshot_2.pickle", "mine.pkl.gz", "x.pt.trace.json"]
)
def test_what_looks_like_ours_and_is_no_file_is_named(logdir, report, put, what, name):
    """A FIFO is not even opened: whoever waits for its bytes waits for ever."""
    put(logdir / "exp" / name)
    for form in FORMS:
        text, code = report(logdir, *form)
        assert code == 4
        assert name in text
    named = {
        one["path"]: one["what"] for one in problems_in(report(logdir, "--json")[0])
    }
    assert list(named) == [f"exp/{name}"]
    assert what in named[f"exp/{name}"] or put is empty


def test_the_page_names_an_empty_file_that_nobody_seems_to_be_writing(logdir):
    path = logdir / "exp" / "mem.pickle"
    path.touch()
    page = Page(logdir)

    def named_after(seconds: float, *, is_named: bool) -> None:
        changed_at = time.time() - seconds
        os.utime(path, (changed_at, changed_at))

        def problems() -> list[str]:
            page.get("/runs")
            shown = page.of_run("/overview", "exp")["logdir_problems"]
            return [one["path"] for one in shown]

        answered(problems, lambda paths: ("exp/mem.pickle" in paths) == is_named)

    named_after(-600, is_named=False)
    named_after(WRITING_SECONDS, is_named=True)
    assert WRITING_SECONDS <= 10


@pytest.mark.parametrize("put", [fifo, broken_link, looping_link])
def test_a_trace_of_another_name_that_is_no_file_is_named(logdir, report, put):
    put(logdir / "exp" / "torch_profile.json")
    text, code = report(logdir, "--json")
    assert code == 4
    (problem,) = problems_in(text)
    assert problem["path"] == "exp/torch_profile.json"


@pytest.mark.parametrize("put", [fifo, broken_link, looping_link])
def test_what_has_no_name_of_ours_is_nobodys_business(logdir, report, put):
    put(logdir / "exp" / "config1.json")
    put(logdir / "exp" / "notes.txt")
    assert report(logdir)[1] == 0


def test_a_pickle_of_something_else_is_nobodys_business(logdir, report):
    (logdir / "exp" / "model.pickle").write_bytes(pickle.dumps({"weights": [1.0]}))
    assert report(logdir)[1] == 0


def test_junk_alone_is_named_and_far_from_other_files_is_nobodys_business(
    logdir, report
):
    (logdir / "data").mkdir()
    (logdir / "data" / "corpus.pkl").write_bytes(b"junk")
    assert report(logdir)[1] == 0
    text, code = report(logdir / "data")
    assert code == 2
    assert "corpus.pkl" in text


def test_a_snapshot_cut_in_place_is_a_problem_of_its_run(logdir, report):
    bad = put_snapshot(logdir, "bad")
    page = Page(logdir)
    page.get("/runs")
    files_of = lambda: page.of_run("/snapshot_files", "exp")["files"]  # noqa: E731
    answered(files_of, lambda found: all(one["state"] == "ready" for one in found))
    bad.write_bytes(bad.read_bytes()[:500])
    answered(files_of, lambda found: any(one["state"] == "failed" for one in found))
    (problem,) = page.of_run("/overview", "exp")["problems"]
    assert problem["path"] == "exp/bad_snapshot.pickle"
    text, code = report(logdir, "--json")
    assert code == 4
    assert [one["path"] for one in problems_in(text)] == ["exp/bad_snapshot.pickle"]


def negative(snapshot: dict) -> None:
    snapshot["segments"][0]["blocks"][0]["size"] *= -1


def negative_event(snapshot: dict) -> None:
    snapshot["device_traces"][0][3]["size"] = -4096


def twice(snapshot: dict) -> None:
    snapshot["segments"] *= 2


def overlapping(snapshot: dict) -> None:
    blocks = snapshot["segments"][0]["blocks"]
    blocks[1]["address"] = blocks[0]["address"]


def of_texts(snapshot: dict) -> None:
    for one in snapshot["segments"]:
        one["total_size"] = str(one["total_size"])


def no_segments(snapshot: dict) -> None:
    snapshot["segments"] = {"all": snapshot["segments"]}


REFUSED = (negative, twice, overlapping, of_texts, no_segments)


@pytest.mark.parametrize("change", REFUSED)
def test_a_snapshot_that_cannot_be_is_refused_and_hides_nothing(logdir, report, change):
    snapshot = long_history(80)
    change(snapshot)
    bad = logdir / "exp" / "bad_snapshot.pickle"
    bad.write_bytes(pickle.dumps(snapshot))
    for form in FORMS:
        text, code = report(logdir, *form)
        assert code == 4
        assert "bad_snapshot.pickle" in text
        assert report(bad, *form)[1] == 2
    text, _ = report(logdir, "--json")
    snapshots = [one for run in json.loads(text)["runs"] for one in run["snapshots"]]
    assert sorted(len(one["devices"]) for one in snapshots) == [0, 1]
    (problem,) = problems_in(text)
    assert problem["severity"] == "error"
    assert problem["path"] == "exp/bad_snapshot.pickle"


def not_numbers(snapshot: dict) -> None:
    for entry in snapshot["device_traces"][0][::9]:
        entry["size"] = float("nan")


def without_end(snapshot: dict) -> None:
    del snapshot["device_traces"][0][-61:]


def no_end_at_all(snapshot: dict) -> None:
    snapshot["segments"] = []


def settings_listed(snapshot: dict) -> None:
    snapshot["allocator_settings"] = ["expandable_segments:True"]


def settings_of_texts(snapshot: dict) -> None:
    divisions = {"1": "four"}
    snapshot["allocator_settings"] = {
        "expandable_segments": "True",
        "max_split_size": 2.5,
        "roundup_power2_divisions": divisions,
    }


ANNOTATION = {"stage": "START", "name": "step 1", "device": 0, "time_us": 17}


def annotated(**wrong: object) -> Callable[[dict], None]:
    def change(snapshot: dict) -> None:
        snapshot["external_annotations"] = [ANNOTATION, {**ANNOTATION, **wrong}]

    return change


def annotations_of_texts(snapshot: dict) -> None:
    snapshot["external_annotations"] = "step 1"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (no_end_at_all, "never freed and are missing at the end"),
        (settings_listed, "`allocator_settings`, which is no mapping"),
        (settings_of_texts, "`allocator_settings.max_split_size`, which has another"),
        (settings_of_texts, "`allocator_settings.roundup_power2_divisions`, which"),
        (settings_of_texts, "`allocator_settings.expandable_segments`, which has"),
        (annotations_of_texts, "`external_annotations`, which is no list"),
        (annotated(time_us="now"), "annotations whose time is no whole number (1)"),
        (annotated(device=[0]), "annotations whose device is no whole number (1)"),
        (annotated(name=3), "annotations whose name is no text (1)"),
        (annotated(stage="BEGIN"), "annotations that neither begin nor end (1)"),
        (annotated(stage=1.5), "annotations that neither begin nor end (1)"),
        (not_numbers, "Left out: events"),
        (negative_event, "sizes that no memory has"),
        (without_end, "contradicts itself"),
    ],
)
def test_what_of_a_snapshot_is_not_believed_is_named(logdir, report, change, what):
    snapshot = long_history(200)
    change(snapshot)
    path = logdir / "exp" / "odd_snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot))
    for form in FORMS:
        text, code = report(logdir, *form)
        assert code == 4
        # Without the lines of a terminal, and what Markdown has before its own signs.
        assert what in " ".join(text.replace("\\", "").split())
    (problem,) = problems_in(report(path, "--json")[0])
    assert problem["severity"] == "warning"
    page = Page(logdir)
    page.get("/runs")
    answered(
        lambda: page.of_run("/snapshot_files", "exp")["files"],
        lambda found: all(one["state"] == "ready" for one in found),
    )
    (shown,) = page.of_run("/overview", "exp")["problems"]
    assert shown["what"] == problem["what"]


def fail(*_: object) -> Any:
    raise IndexError("index -1 is out of bounds for axis 0 with size 0")


def failing_for(name: str, made: Any) -> Any:
    """`made`, but for the history or trace of one file."""

    def make(of: Any, *more: Any) -> Any:
        path = str(getattr(more[0] if more else of, "path_text", ""))
        return fail() if name in path else made(of, *more)

    return make


def test_figures_that_fail_cost_the_row_of_their_file_alone(
    logdir, report, monkeypatch
):
    put_snapshot(logdir, "bad")
    whole = figures.figures_of
    calls: list[object] = []

    def once(history: Any) -> Any:
        calls.append(history)
        return fail() if len(calls) == 1 else whole(history)

    monkeypatch.setattr("memboard.tb_plugin.cli.report.reading.figures_of", once)
    text, code = report(logdir, "--json")
    assert code == 4
    snapshots = [one for run in json.loads(text)["runs"] for one in run["snapshots"]]
    assert sorted(len(one["devices"]) for one in snapshots) == [0, 1]
    (problem,) = problems_in(text)
    assert "IndexError" in problem["what"]
    assert [one["problem"] for one in snapshots if not one["devices"]] == [problem]


def test_a_trace_whose_figures_fail_costs_its_row_alone(logdir, report, monkeypatch):
    other = logdir / "exp" / "bad.pt.trace.json"
    other.write_bytes((logdir / "exp" / "good.pt.trace.json").read_bytes())
    whole = report_traces._figures
    monkeypatch.setattr(report_traces, "_figures", failing_for("bad", whole))
    text, code = report(logdir, "--json")
    assert code == 4
    told = [one for run in json.loads(text)["runs"] for one in run["traces"]]
    assert {one["name"]: one["problem"] is None for one in told} == {
        "good.pt.trace.json": True,
        "bad.pt.trace.json": False,
    }
    (problem,) = problems_in(text)
    assert problem["path"] == "exp/bad.pt.trace.json"


def test_a_run_that_fails_hides_no_other(logdir, report, monkeypatch):
    monkeypatch.setattr("memboard.tb_plugin.cli.report.reading.overview_of", fail)
    text, code = report(logdir, "--json")
    assert code == 2
    assert len(problems_in(text)) == 2
    monkeypatch.undo()

    def failing(run: Any, rank: Any, note: Any) -> Any:
        return fail() if run.made_of == "traces" else iter(())

    monkeypatch.setattr("memboard.tb_plugin.cli.report.reading.trace_rows", failing)
    text, code = report(logdir, "--json")
    assert code == 4
    assert [run["run"]["made_of"] for run in json.loads(text)["runs"]] == ["snapshots"]
    (problem,) = problems_in(text)
    assert "IndexError" in problem["what"]


def test_on_the_page_a_file_that_fails_is_one_row(logdir, monkeypatch):
    put_snapshot(logdir, "bad")
    whole = file_peaks._peak

    def peak(listed: Any, history: Any) -> Any:
        return fail() if "bad" in listed.path_text else whole(listed, history)

    monkeypatch.setattr(file_peaks, "_peak", peak)
    page = Page(logdir)
    page.get("/runs")
    rows = answered(
        lambda: page.of_run("/snapshot_files", "exp")["files"],
        lambda found: all(one["state"] in ("ready", "failed") for one in found),
    )
    states = {one["reference"]["path"]: one["state"] for one in rows}
    assert states == {
        "exp/good_snapshot.pickle": "ready",
        "exp/bad_snapshot.pickle": "failed",
    }
    (problem,) = page.of_run("/overview", "exp")["problems"]
    assert problem["path"] == "exp/bad_snapshot.pickle"


def test_every_file_of_an_unclear_name_is_looked_into(logdir, report, monkeypatch):
    """A command waits, however many there are and however slow the disk is."""
    monkeypatch.setattr(sniffing, "MAX_LOOKS", 3)
    monkeypatch.setattr(sniffing, "LOOK_SECONDS", 0.0)
    whole = (logdir / "exp" / "good_snapshot.pickle").read_bytes()
    for number in range(9):
        (logdir / "exp" / f"odd{number}.pickle").write_bytes(whole)
    runs = json.loads(report(logdir, "--json")[0])["runs"]
    assert sum(len(run["snapshots"]) for run in runs) == 10
