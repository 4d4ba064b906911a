"""`memboard report`: what the page shows, for people and for programs."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from collector.format.sizes import bytes_text
from tb_plugin.cli import main
from tests.builders import GIB, RunBuilder, flip_bit, peak_of
from tests.collector.cli.recorded import KIB, add_history, add_modules, add_snaps
from tests.memprofiler_files import sizes_of, write_report, write_stats
from tests.tb_plugin.client import Page

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def ask(capsys):
    """Runs the verb with --json and gives what it printed."""

    def asked(*arguments: object, code: int = 0) -> dict[str, Any]:
        assert main(["report", "--json", *map(str, arguments)]) == code
        return json.loads(capsys.readouterr().out)

    return asked


@pytest.fixture
def run(tmp_path) -> RunBuilder:
    return RunBuilder(tmp_path / "exp")


def full(run: RunBuilder) -> None:
    """Two ranks with everything."""
    for number_ in range(2):
        rank = run.rank(number_, world_size=2)
        steps = np.arange(40)
        rank.steps(steps, allocated_peak_bytes=peak_of(number_, steps))
        add_snaps(rank, "training_step", [2, 3])
        add_modules(rank, 2)
        add_modules(rank, 3, scale=1 + number_)
        add_history(rank, 3, "end")
        rank.capture(
            "hooks",
            "training_step",
            iteration=3,
            tables={
                "modules": {"path": ("", "layer"), "type": ("Net", "Linear")},
                "values": {
                    "module": np.array([0, 1]),
                    "rss_diff": np.array([4096.0, np.nan]),
                },
            },
        )
        rank.capture(
            "activations",
            "training_step",
            iteration=3,
            meta={"bytes": 1536, "npp_compat_bytes": 4608},
            tables={
                "modules": {"path": ("", "0"), "type": ("Sequential", "Linear")},
                "saved": {
                    "module": np.array([1, -1]),
                    "dtype": ("float32", "float32"),
                    "num_tensors": np.array([2, 1]),
                    "bytes": np.array([1024, 512]),
                    "npp_compat_bytes": np.array([2560, 2048]),
                },
            },
        )
        rank.source("workers", "absent", "no workers", "Start some.")
        rank.close()


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
    full(run)
    (found,) = ask(tmp_path)["runs"]
    page = Page(tmp_path).of_run("/overview", "exp")
    assert found["run"]["name"] == "exp"
    assert found["run"]["made_of"] == "recording"
    assert found["overview"] == as_json(page)
    strip = found["overview"]["strip"]
    assert strip["rank"] == [0, 1]
    assert strip["capacity_bytes"][1] == 80 * GIB
    assert strip["lost"] == [0, 0]
    sources = {s["source"]: s for s in found["overview"]["recorded"]}
    assert sources["workers"]["remedy"] == "Start some."


def test_modules_are_those_of_the_highest_rank(run, tmp_path, ask):
    full(run)
    (found,) = ask(tmp_path)["runs"]
    modules = found["modules"]
    assert [w["iteration"] for w in modules["windows"]] == [2, 3]
    assert modules["rank"] == 1
    assert modules["state"] == "window_peak"
    assert modules["facts"]["window_peak_bytes"] == (4 + 12 + 2) * KIB
    tree = modules["tree"]
    assert [tree["names"][at] for at in tree["name"]] == ["FSDPNet", "layer"]
    assert tree["parent"] == [-1, 0]
    assert modules["held_bytes"] == [18 * KIB, 2 * KIB]
    assert modules["own_bytes"] == [16 * KIB, 2 * KIB]
    assert {one["name"]: one["bytes"][0] for one in modules["categories"]} == {
        "sharded_param": 4 * KIB,
        "activation": 12 * KIB,
        "all_gather": 2 * KIB,
    }
    assert modules["split"]["total_bytes"] == 18 * KIB
    assert modules["split"]["unattributed_bytes"] == 0
    assert ask(tmp_path, "--rank", 0)["runs"][0]["modules"]["rank"] == 0


def test_functions_have_calls_hooks_activations_and_captures(run, tmp_path, ask):
    full(run)
    (found,) = ask(tmp_path, "--rank", 1)["runs"]
    functions = {f["function"]: f for f in found["functions"]}
    training = functions["training_step"]
    assert training["ranks"] == [1]  # no other rank's file was read
    assert training["rank"] == 1
    assert training["calls"]["iteration"] == [2, 3]
    stats = {one["name"]: one for one in training["stats"]}
    start = 10**9 + 1000 + 30
    rss = stats["rss_bytes"]
    assert [rss[of][1] for of in ("start", "end", "difference")] == [
        start,
        start + 1,
        1,
    ]
    assert stats["allocated_bytes.all.current"]["difference"][1] == 1
    assert stats["num_ooms"]["difference"][1] == 1
    assert stats["hook.rss_diff"]["end"][1] == 393_216
    hooks = training["hooks"]
    assert hooks["modules"]["types"] == ["Net", "Linear"]
    assert [one["values"] for one in hooks["attributes"]] == [[4096, None]]
    saved = training["activations"]
    assert saved["total_bytes"] == 1536
    assert saved["total_npp_compat_bytes"] == 4608
    assert saved["module"] == [1, -1]
    assert functions["step"]["module_window"] == "step/train/3"
    (history,) = functions["step"]["histories"]
    assert (history["function"], history["context"]) == ("step", "end")


def test_imported_runs_are_reported_too(tmp_path, ask, capsys):
    write_stats(tmp_path / "theirs", 0)
    write_report(tmp_path / "theirs", 0, 2)
    (found,) = ask(tmp_path)["runs"]
    assert found["run"]["imported"]
    assert found["modules"]["facts"]["source"] == "imported"
    assert found["modules"]["total_bytes"] == [
        sizes_of(0, 2, place)["Total"] for place in (1, 2)
    ]
    (training,) = found["functions"]
    assert training["calls"]["iteration"] == [2, 3]
    assert main(["report", str(tmp_path)]) == 0
    assert "imported from MemProfiler's files" in capsys.readouterr().out


def test_the_text_says_the_most_important_numbers(run, tmp_path, capsys):
    full(run)
    assert main(["report", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "peak allocated" in said
    assert "rank 1" in said
    assert "FSDPNet.layer" in said
    assert "training_step (train): 2 calls on rank 0" in said
    assert "captures of the allocator: 1 on rank " in said
    assert "not recorded: workers (absent): no workers" in said


def test_the_text_shows_torchs_statistics_of_imported_calls(tmp_path, capsys):
    write_stats(tmp_path / "theirs", 0)
    assert main(["report", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "call  allocated_bytes.all.current" in said


def test_the_text_says_what_a_window_is_less_than_measured(run, tmp_path, capsys):
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
    assert main(["report", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "  eager estimate: what ran may differ\n" in said
    assert "  incomplete: the call ended with RuntimeError\n" in said
    assert "  1 event dropped\n" in said


def test_a_window_that_an_error_cut_short_is_passed_over(run, tmp_path, ask, capsys):
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
    assert main(["report", str(tmp_path)]) == 0
    said = capsys.readouterr().out
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


def test_names_from_files_cannot_steer_a_terminal(run, tmp_path, capsys):
    rank = run.rank(0)
    rank.source("workers", "absent", "\x1b[2Jgone", "")
    rank.steps(range(3), rss_bytes=[1, 2, 3])
    add_modules(rank, 2, function="\x1b]0;x\x07")
    rank.close()
    assert main(["report", str(tmp_path)]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_damaged_files_are_listed_and_cost_nothing_else(run, tmp_path, ask, capsys):
    full(run)
    (path,) = run.files.glob("rank00001*")
    flip_bit(path, path.stat().st_size // 2)
    (found,) = ask(tmp_path)["runs"]
    # The bytes that are lost, and the capture that lay there.
    problem, of_capture = found["problems"]
    assert problem["where"] == of_capture["where"]
    assert problem["rank"] == 1
    assert problem["what"]
    assert problem["remedy"]
    assert found["overview"]["strip"]["peak_bytes"][0] is not None
    assert main(["report", str(tmp_path)]) == 0
    assert "what to do" in capsys.readouterr().out


def test_one_run_and_one_rank(tmp_path, ask):
    RunBuilder(tmp_path / "a").simple(3, 10)
    RunBuilder(tmp_path / "b").simple(1, 10)
    assert [r["run"]["name"] for r in ask(tmp_path)["runs"]] == ["a", "b"]
    assert [r["run"]["name"] for r in ask(tmp_path, "--run", "b")["runs"]] == ["b"]
    (found,) = ask(tmp_path, "--rank", 2)["runs"]
    assert found["run"]["name"] == "a"
    assert found["overview"]["strip"]["rank"] == [2]


def test_errors_say_what_where_and_what_to_do(tmp_path: Path, capsys):
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
    command = [sys.executable, "-m", "tb_plugin.cli", "report", "--json", str(tmp_path)]
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


def test_a_recording_without_windows_says_why(run, tmp_path, ask):
    rank = run.rank(0)
    rank.source("modules", "off", "switched off", "Set modules: true.")
    rank.steps(range(3), rss_bytes=[1, 2, 3])
    rank.close()
    (found,) = ask(tmp_path)["runs"]
    assert found["modules"] is None
    assert [one["function"] for one in found["functions"]] == [None]


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (10**6, "976.56 KiB"), (2 << 20, "2.00 MiB"), (10**12, "931.32 GiB"),
     (-1536, "-1.50 KiB"), (None, "-")],
)  # fmt: skip
def test_sizes_for_people(size, text):
    assert bytes_text(size) == text
