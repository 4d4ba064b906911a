"""`memboard report`: what the page shows, for people and for programs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from memboard.collector.format.sizes import bytes_text
from memboard.tb_plugin.cli import main
from memboard.tb_plugin.cli.report.sections import rate_text
from tests.builders import GIB, RunBuilder, flip_bit
from tests.collector.cli.recorded import KIB, add_modules
from tests.errors_found import errors_in
from tests.memprofiler_files import write_stats
from tests.oom_reports import add_report
from tests.simulate import oom_case
from tests.tb_plugin.client import Page
from tests.tb_plugin.step_runs import Story, write


@pytest.fixture
def ask(capsys):
    """Runs the verb with --json and gives what it printed."""

    def asked(*arguments: object, code: int = 0) -> dict[str, Any]:
        assert main(["report", "--json", *map(str, arguments)]) == code
        return json.loads(capsys.readouterr().out)

    return asked


@pytest.fixture
def say(capsys):
    """Runs the verb and gives what it printed."""

    def said(*arguments: object, code: int = 0) -> str:
        assert main(["report", *map(str, arguments)]) == code
        return capsys.readouterr().out

    return said


@pytest.fixture
def run(tmp_path) -> RunBuilder:
    return RunBuilder(tmp_path / "exp")


def as_json(answer: Any) -> Any:
    """What a route answers, as the report has it."""
    if isinstance(answer, np.ndarray):
        answer = answer.tolist()
    if isinstance(answer, dict):
        return {k: as_json(v) for k, v in answer.items() if k != "$response"}
    if isinstance(answer, (list, tuple)):
        return [as_json(one) for one in answer]
    return None if answer != answer else answer


def test_the_overview_is_the_pages(run, tmp_path, ask):
    for rank in run.simple(2, 40, close=False):
        rank.source("workers", "absent", "no workers", "Start some.")
        rank.close()
    (found,) = ask(tmp_path)["runs"]
    page = Page(tmp_path).of_run("/overview", "exp")
    assert found["run"]["name"] == "exp"
    assert found["run"]["made_of"] == "recording"
    # Which tabs are empty is for the page alone.
    assert found["overview"] == {**as_json(page), "empty": []}
    strip = found["overview"]["strip"]
    assert strip["rank"] == [0, 1]
    assert strip["capacity_bytes"][1] == 80 * GIB
    assert strip["lost"] == [0, 0]
    (group,) = (g for g in found["overview"]["missing"] if "workers" in g["sources"])
    assert group["remedy"] == "Start some."


def test_the_text_says_what_a_window_is_less_than_measured(run, tmp_path, say):
    rank = run.rank(0)
    rank.steps(range(3), rss_bytes=[1, 2, 3])
    reasons = ["the call ended with RuntimeError"]
    add_modules(
        rank,
        2,
        estimate="eager estimate",
        incomplete=True,
        reasons=reasons,
        num_events_dropped=1,
    )
    rank.close()
    said = say(tmp_path, code=4)
    assert "  eager estimate: what ran may differ\n" in said
    assert "  incomplete: the call ended with RuntimeError\n" in said
    assert "  1 event dropped\n" in said


def test_a_window_that_an_error_cut_short_is_passed_over(run, tmp_path, ask, say):
    rank = run.rank(0)
    rank.steps(range(5), rss_bytes=[1] * 5)
    add_modules(rank, 2, scale=1)
    add_modules(rank, 3, scale=2)
    add_modules(rank, 4, function="forward", incomplete=True)
    add_modules(rank, 4, scale=9, incomplete=True)
    rank.close()
    (found,) = ask(tmp_path)["runs"]
    modules = found["modules"]
    assert modules["window"] == "step/train/3"
    assert found["passed_over"] == ["step/train/4", "forward/train/4"]
    assert modules["facts"]["window_peak_bytes"] == (4 + 12 + 2) * KIB
    assert len(modules["windows"]) == 4
    said = say(tmp_path)
    assert "modules: step/train/3 on rank 0" in said
    assert "the last complete one: step/train/4 came after it and ended early" in said


def test_where_no_window_is_complete_the_last_one_is_shown_as_it_is(run, tmp_path, ask):
    rank = run.rank(0)
    rank.steps(range(3), rss_bytes=[1, 2, 3])
    for iteration in (2, 3):
        add_modules(rank, iteration, incomplete=True)
    rank.close()
    (found,) = ask(tmp_path)["runs"]
    assert found["modules"]["window"] == "step/train/3"
    assert found["passed_over"] == []
    assert found["modules"]["facts"]["incomplete"] is True


def test_names_from_files_cannot_steer_a_terminal(run, tmp_path, say):
    rank = run.rank(0)
    rank.source("workers", "absent", "\x1b[2Jgone", "")
    rank.steps(range(3), rss_bytes=[1, 2, 3])
    add_modules(rank, 2, function="\x1b]0;x\x07")
    rank.close()
    assert "\x1b" not in say(tmp_path)


def test_damaged_files_are_listed_and_cost_nothing_else(run, tmp_path, ask, say):
    path = run.simple(2, 40)[1].path
    flip_bit(path, path.stat().st_size // 2)
    (found,) = ask(tmp_path, code=4)["runs"]
    (problem,) = found["problems"]
    assert problem["rank"] == 1
    assert problem["what"]
    assert problem["remedy"]
    assert found["overview"]["strip"]["peak_bytes"][0] is not None
    assert "what to do" in say(tmp_path, code=4)


def test_one_run_and_one_rank(tmp_path, ask):
    RunBuilder(tmp_path / "a").simple(3, 10)
    RunBuilder(tmp_path / "b").simple(1, 10)
    assert [r["run"]["name"] for r in ask(tmp_path)["runs"]] == ["a", "b"]
    assert [r["run"]["name"] for r in ask(tmp_path, "--run", "b")["runs"]] == ["b"]
    (found,) = ask(tmp_path, "--rank", 2)["runs"]
    assert found["run"]["name"] == "a"
    assert found["overview"]["rank"] == 2
    (read,) = {tuple(function["ranks"]) for function in found["functions"]}
    assert set(read) <= {2}, "no other rank's file was read"


def test_errors_say_what_where_and_what_to_do(tmp_path, capsys):
    def failing(*arguments: object) -> str:
        assert main(["report", *map(str, arguments)]) == 2
        said = capsys.readouterr().err
        assert "Traceback" not in said
        return said

    assert "no such directory" in failing(tmp_path / "nowhere")
    assert "there is no recording" in failing(tmp_path)
    RunBuilder(tmp_path / "a").simple(3, 10)
    assert "there is no run 'x'" in failing(tmp_path, "--run", "x")
    said = failing(tmp_path, "--rank", 7)
    assert "no rank 7" in said
    assert "0 to 2" in said
    with pytest.raises(SystemExit) as caught:
        main(["report", str(tmp_path), "--rank", "x"])
    assert caught.value.code == 2


def test_a_reader_that_has_enough_is_no_error(tmp_path):
    RunBuilder(tmp_path / "a").simple(64, 50)
    command = [
        sys.executable,
        "-m",
        "memboard.tb_plugin.cli",
        "report",
        "--json",
        str(tmp_path),
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        said = process.stderr.read()
    assert "Traceback" not in said
    assert "Exception ignored" not in said


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (10**6, "976.56 KiB"), (2 << 20, "2.00 MiB"), (10**12, "931.32 GiB"),
     (-1536, "-1.50 KiB"), (None, "-")],
)  # fmt: skip
def test_sizes_for_people(size, text):
    assert bytes_text(size) == text


def test_one_rank_alone_has_no_stragglers(tmp_path, ask):
    told = Story(
        8, 120, in_step=True, more=lambda r, s: {"dataloader": 38.0} if r == 5 else {}
    ).tell()
    write(tmp_path / "exp", told)
    (run,) = ask("--rank", 5, tmp_path)["runs"]
    assert run["steps"]["rank"] == 5
    assert run["stragglers"]["ranks"]["num_rows"] == 0
    keys = [one["key"] for one in run["findings"]["findings"]]
    assert "dataloader_bound" in keys
    assert "straggler" not in keys


def test_torchs_statistics_of_imported_calls_are_shown(tmp_path, say):
    write_stats(tmp_path / "theirs", 0)
    assert re.search("call +Allocated", say(tmp_path))


def test_snapshots_are_taken_by_name(tmp_path, say):
    case = oom_case("imbalance", 10_006)
    paths = case.write(tmp_path)
    (run,) = json.loads(say(*paths, "--json"))["runs"]
    (one,) = errors_in(run["findings"])
    assert one["key"] == "imbalance"
    assert one["rank"] == case.label.rank
    alone: dict[str, Any] = json.loads(say(paths[case.label.rank], "--json"))
    (one,) = errors_in(alone["runs"][0]["findings"])
    assert one["key"] != "imbalance"
    assert "# " in say(paths[case.label.rank], "--md")


def test_a_run_without_errors_says_so(tmp_path, say):
    rank = RunBuilder(tmp_path / "exp").rank(0)
    rank.steps(np.arange(3), allocated_peak_bytes=np.full(3, 1.0 * GIB))
    rank.close()
    assert "No out-of-memory error was recorded." in say(tmp_path, "--md")
    assert "Out of memory" not in say(tmp_path)


def test_names_from_files_are_no_markup(tmp_path, say):
    """A message or a function may hold anything: cells stay cells, fences stay shut."""
    rank = RunBuilder(tmp_path / "exp").rank(0)
    add_report(
        rank,
        exception={"type": "X", "message": "a | b ``` <script>\x1b[31m [x](y)"},
        spans=["evil | span\x1b[2J"],
    )
    rank.close()
    text = say(tmp_path, "--md")
    assert "\x1b" not in text
    assert "<script>" not in text.replace("\\<script>", "")
    assert "evil \\| span" in text


def test_text_and_markdown_exclude_each_other(tmp_path):
    with pytest.raises(SystemExit):
        main(["report", str(tmp_path), "--md", "--json"])


def test_how_ranks_ended_is_told_in_every_form(say, tmp_path):
    run = RunBuilder(tmp_path / "run")
    for number, (how, message) in enumerate(
        [("exception", "ValueError: \x1b[31mboom"), ("lost", ""), ("lost", "")]
    ):
        rank = run.rank(number, world_size=3)
        rank.steps(range(3), rss_bytes=[1 << 20] * 3)
        if how != "lost":
            rank.close(how, message, step=3, phase="val")
    text = say(tmp_path)
    said = "Rank 0 ended by an exception in step 3 (val): ValueError:  [31mboom."
    assert f"  {said}\n" in text
    assert text.count("without closing its recording:") == 2
    assert text.count("MEMBOARD_OOM_ON_SIGTERM=1") == 1
    (found,) = json.loads(say(tmp_path, "--json"))["runs"]
    ends = [
        one for one in found["findings"]["findings"] if one["key"].startswith("ended")
    ]
    assert [one["key"] for one in ends] == ["ended_exception", "ended_lost"]
    assert len(ends[1]["others"]) == 1
    assert "1 more rank stopped in the same way." in say(tmp_path, "--md")


@pytest.mark.parametrize(
    ("value", "text"),
    [(6.7931, "6.793"), (27823.4, "27,823"), (4.08e13, "40.8 T")],
)
def test_rates_are_short(value, text):
    assert rate_text(value) == text
