"""`memboard export`: what the recording holds, under MemProfiler's names, read back."""

from __future__ import annotations

import csv
import os
import pickle
import pickletools
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from memboard.collector.config import RecordConfig, load
from memboard.collector.config.table import as_yaml
from memboard.collector.format.names import EXPORT_MARK
from memboard.tb_plugin.analysis.series.functions import calls_of, sides
from memboard.tb_plugin.cli import main
from memboard.tb_plugin.formats.memprofiler.imports import Imports, Window
from memboard.tb_plugin.formats.memprofiler.names import FunctionKey
from memboard.tb_plugin.formats.memprofiler.report import read_report
from tests.builders import RunBuilder, flip_bit
from tests.collector.cli.recorded import KIB, add_history, add_modules, add_snaps
from tests.memprofiler_files import dumps_in, write_stats

ALL = ("--yaml", "--modules", "--history", "--config")


def export(*arguments: object) -> int:
    return main(["export", *map(str, arguments)])


def names_in(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir() if p.is_file()} - {EXPORT_MARK}


def stats_in(folder: Path, kind: str = "memory") -> dict:
    """Rank 0's snaps, or its windows (`fsdp_memory`), as any safe loader has them."""
    return yaml.safe_load((folder / f"rank_0_{kind}_stats.yaml").read_text())


def opened(folder: Path) -> Imports:
    imports = Imports()
    imports.update(dumps_in(folder, folder.parent).found)
    return imports


@pytest.fixture
def run(tmp_path) -> RunBuilder:
    return RunBuilder(tmp_path / "exp")


def test_every_kind_has_its_exact_name(run, tmp_path, capsys):
    rank = run.rank(3, config={"scalars": True})
    add_snaps(rank, "training_step", [2, 3])
    add_modules(rank, 2, function="training_step")
    add_history(rank, 2, "start")
    add_history(rank, 2, "end")
    rank.close()
    assert export(tmp_path, *ALL) == 0
    out = tmp_path / "exp" / "memprofiler"
    expected = {
        "rank_3_memory_stats.yaml",
        "rank_3_fsdp_memory_stats.yaml",
        "rank_3_modules.csv",
        "fsdp_mem_rank_3_training_step_2.log",
        "cuda_alloc_rank_3.step.2.start.pickle",
        "cuda_alloc_rank_3.step.2.end.pickle",
        "rank_3_config.yaml",
    }
    assert names_in(out) == expected
    printed = capsys.readouterr().out.split()
    assert {Path(line).name for line in printed} == expected


@pytest.mark.parametrize("iterations", [[2], [3, 4], [1, 2]])
def test_snaps_keep_keys_order_and_exact_values(run, tmp_path, iterations):
    """Windows 1/2, 2/4 and 0/2 give iterations 2; 3 and 4; 1 and 2.

    And safe_load accepts the file, as it does not MemProfiler's (A5).
    """
    rank = run.rank(0)
    expected = add_snaps(rank, "training_step", iterations)
    rank.close()
    out = tmp_path / "out"
    assert export(tmp_path, "--yaml", "-o", out) == 0
    text = (out / "rank_0_memory_stats.yaml").read_text()
    found = yaml.safe_load(text)
    assert found == expected
    assert list(found) == [
        f"0.training_step.{i}.{c}" for i in iterations for c in ("start", "end")
    ]
    assert all(
        type(v) in (int, type(None))
        for s in found.values()
        for k, v in s.items()
        if k != "share"
    )
    # MemProfiler's own YAML fails with every safe loader, for this tag.
    assert "!!python" not in text


def test_pickles_import_nothing(run, tmp_path):
    rank = run.rank(0)
    add_snaps(rank, "step", [2])
    taken = add_history(rank, 2, "end")
    rank.close()
    out = tmp_path / "out"
    assert export(tmp_path, "--history", "-o", out) == 0
    for path in out.glob("*.pickle"):
        opcodes = {op.name for op, _, _ in pickletools.genops(path.read_bytes())}
        assert not opcodes & {"GLOBAL", "STACK_GLOBAL", "REDUCE", "INST", "OBJ"}
    found = pickle.loads((out / "cuda_alloc_rank_0.step.2.end.pickle").read_bytes())
    assert found == taken


def test_what_is_exported_is_imported_as_it_was(run, tmp_path):
    expected = {}
    for number in (0, 1):
        rank = run.rank(number)
        expected.update(add_snaps(rank, "training_step", [2, 3]))
        expected.update(add_snaps(rank, "training_step", [5], phase="val"))
        add_modules(rank, 2, function="training_step")
        add_modules(rank, 3, function="training_step", scale=3)
        rank.close()
    out = tmp_path / "out"
    assert export(tmp_path, "--yaml", "--modules", "-o", out) == 0
    imports = opened(out)
    assert imports.found.ranks == [0, 1]
    for number in (0, 1):
        tables = imports.snaps(number)
        assert set(tables) == {
            FunctionKey("training_step", "train"),
            FunctionKey("training_step", "val"),
        }
        for (function, phase), table in tables.items():
            calls = calls_of(table)
            name = function if phase == "train" else f"{phase}.{function}"
            for stat, theirs in (("rss_bytes", "rss"), ("hook.rss_diff", "rss_diff")):
                start, end, _ = sides(table, calls, stat)
                for side, column in (("start", start), ("end", end)):
                    for iteration, value in zip(calls.iteration, column, strict=True):
                        snap = expected[f"{number}.{name}.{iteration}.{side}"]
                        assert value == snap.get(theirs) or value != value
        for iteration, scale in ((2, 1), (3, 3)):
            report = imports.report(Window("training_step", "train", iteration), number)
            assert report is not None
            peak = report.states.at("window_peak", 0, None).total_bytes[0]
            assert peak == (4 + 6 * scale + 2) * KIB
    assert list(imports.problems) == []


def test_only_what_several_phases_have_in_common_is_told_apart_by_them(run, tmp_path):
    """MemProfiler's keys know no phases; under Lightning each has its own function."""
    rank = run.rank(0)
    expected = add_snaps(rank, "training_step", [2])
    alone = add_snaps(rank, "validation_step", [2], phase="val")
    expected |= {k.replace("val.", ""): values for k, values in alone.items()}
    expected |= add_snaps(rank, "step", [3]) | add_snaps(rank, "step", [3], phase="val")
    add_modules(rank, 2, function="validation_step", phase="val")
    add_modules(rank, 3, phase="val")
    add_history(rank, 2, "end", function="validation_step", phase="val")
    add_history(rank, 3, "end", phase="val")
    rank.close()
    out = tmp_path / "out"
    assert export(tmp_path, *ALL, "-o", out) == 0
    found = stats_in(out)
    assert found == expected
    assert {"0.validation_step.2.start", "0.step.3.end", "0.val.step.3.end"} <= set(
        found
    )
    windows = stats_in(out, "fsdp_memory")
    assert set(windows) == {"0.validation_step.2", "0.val.step.3"}
    assert {row["function"] for row in module_table(out)} == {
        "validation_step",
        "val.step",
    }
    assert {
        "cuda_alloc_rank_0.validation_step.2.end.pickle",
        "cuda_alloc_rank_0.val.step.3.end.pickle",
    } <= names_in(out)


def test_a_call_is_called_the_same_on_each_rank(run, tmp_path):
    for number in (0, 1):
        rank = run.rank(number)
        add_snaps(rank, "check", [2], phase="val")
        if number:
            add_snaps(rank, "check", [2])
        rank.close()
    assert export(tmp_path, "--yaml", "-o", tmp_path / "out") == 0
    found = stats_in(tmp_path / "out")
    assert set(found) == {"0.val.check.2.start", "0.val.check.2.end"}


def module_table(out: Path) -> list[dict[str, str]]:
    with (out / "rank_0_modules.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_exact_bytes_stand_in_the_yaml_and_in_the_table(run, tmp_path):
    rank = run.rank(0)
    add_modules(rank, 2)
    rank.close()
    assert export(tmp_path, "--yaml", "--modules", "-o", tmp_path / "out") == 0
    rows = module_table(tmp_path / "out")
    (size,) = (
        int(row["bytes"])
        for row in rows
        if (row["module"], row["state"], row["call"], row["category"])
        == ("FSDPNet.layer", "Before Pre-Forward", "1", "Activation")
    )
    assert size == 6 * KIB
    assert {row["depth"] for row in rows if row["module"] == "FSDPNet.layer"} == {"2"}
    found = stats_in(tmp_path / "out", "fsdp_memory")
    window = found["0.step.2"]
    assert window["peak"]["cuda:0"]["Total"] == 12 * KIB
    layer = window["modules"]["FSDPNet.layer"]
    assert layer["Before Pre-Forward"][0]["cuda:0"]["Activation"] == 6 * KIB
    assert layer["Peak Forward"][0]["cuda:0"]["All Gather"] == 2 * KIB


def test_tables_to_read_have_depth_and_units_as_set(run, tmp_path, capsys):
    """As the recording's settings say, or the command: they are MemProfiler's reports."""
    config = load(modules={"table_depth": 1, "table_units": "KiB"}).to_plain()
    rank = run.rank(0, config=config)
    add_modules(rank, 2, function="training_step")
    add_modules(rank, 2, function="validation_step", phase="val", backend="plain")
    rank.close()

    def report(name: str, *options: object) -> str:
        out = tmp_path / "out"
        assert (
            export(tmp_path / "exp", "--modules", "-o", out, "--force", *options) == 0
        )
        return (out / f"fsdp_mem_rank_0_{name}.log").read_text()

    text = report("training_step_2")
    assert text.startswith("Iteration 2 training_step Peak FSDP memory stats: \n---")
    assert "12.0 KiB" in text
    assert "Module:  FSDPNet\n" in text
    assert "FSDPNet.layer" not in text
    assert "Iteration 2 validation_step Peak memory" in report("validation_step_2")
    text = report("training_step_2", "--depth", 2, "--units", "B")
    assert "12288 B" in text
    assert "Module:  FSDPNet.layer\n" in text
    assert export(tmp_path / "exp", "--yaml", "--units", "B") == 2
    assert "--units are for the tables of --modules" in capsys.readouterr().err


def test_a_folder_with_both_opens_with_exact_bytes_of_every_depth(run, tmp_path):
    rank = run.rank(0)
    add_modules(rank, 2)
    rank.close()
    out = tmp_path / "out"
    assert export(tmp_path, "--yaml", "--modules", "--depth", 1, "-o", out) == 0
    report = opened(out).report(Window("step", "train", 2), 0)
    assert report is not None
    assert report.rounding_bytes == 0
    assert report.states.tree.fqn == ("FSDPNet", "FSDPNet.layer")


DYING = """
import sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.builders import RunBuilder
from tests.collector.cli.recorded import add_modules, add_snaps
rank = RunBuilder(Path({run!r})).rank(0)
add_snaps(rank, "training_step", [2, 3])
add_modules(rank, 2)
add_snaps(rank, "training_step", [4], contexts=(0,))
print("written", flush=True)
time.sleep(600)
"""


def test_a_job_that_was_killed_leaves_all_that_it_wrote(tmp_path):
    """A6: MemProfiler writes nothing before the end, and then it never comes."""
    root = str(Path(__file__).parents[3])
    program = DYING.format(root=root, run=str(tmp_path / "exp"))
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        os.kill(process.pid, signal.SIGKILL)
    assert export(tmp_path, "-o", tmp_path / "out") == 0
    found = stats_in(tmp_path / "out")
    assert list(found) == [
        "0.training_step.2.start",
        "0.training_step.2.end",
        "0.training_step.3.start",
        "0.training_step.3.end",
        "0.training_step.4.start",
    ]
    assert {row["iteration"] for row in module_table(tmp_path / "out")} == {"2"}


def test_attempts_go_into_directories_of_their_own(run, tmp_path):
    for attempt in (0, 1):
        rank = run.rank(0, attempt=attempt)
        add_snaps(rank, "step", [2 + attempt])
        rank.close()
    out = tmp_path / "out"
    assert export(tmp_path, "--yaml", "-o", out) == 0
    newest = stats_in(out)
    oldest = stats_in(out / "attempt_1")
    assert list(newest) == ["0.step.3.start", "0.step.3.end"]
    assert list(oldest) == ["0.step.2.start", "0.step.2.end"]
    assert export(tmp_path, "--yaml", "--attempt", 1, "-o", tmp_path / "one") == 0
    assert names_in(tmp_path / "one") == {"rank_0_memory_stats.yaml"}


def test_one_rank_is_chosen_by_its_number_or_its_file(run, tmp_path):
    for number in range(4):
        rank = run.rank(number)
        add_snaps(rank, "step", [2])
        rank.close()
    assert export(tmp_path, "--yaml", "--rank", 2, "-o", tmp_path / "out") == 0
    assert names_in(tmp_path / "out") == {"rank_2_memory_stats.yaml"}
    assert export(rank.path, "--yaml") == 0
    assert names_in(tmp_path / "exp" / "memprofiler") == {"rank_3_memory_stats.yaml"}


def test_nothing_is_overwritten_unless_forced(run, tmp_path, capsys):
    rank = run.rank(0, config={"rss": True})
    add_snaps(rank, "step", [2])
    rank.close()
    out = tmp_path / "out"
    out.mkdir()
    there = out / "rank_0_config.yaml"
    there.write_bytes(b"mine")
    assert export(tmp_path, "--yaml", "--config", "-o", out) == 2
    said = capsys.readouterr().err
    assert "rank_0_config.yaml" in said
    assert "--force" in said
    assert {p.name for p in out.iterdir()} == {there.name}
    assert export(tmp_path, "--yaml", "--config", "--keep", "-o", out) == 0
    assert there.read_bytes() == b"mine"
    (beside,) = [p for p in out.iterdir() if p.is_dir()]
    assert len(names_in(beside)) == 2
    assert export(tmp_path, "--yaml", "--config", "--force", "-o", out) == 0
    assert there.read_bytes() != b"mine"
    assert not [p for p in out.iterdir() if p.name.startswith(".")]
    capsys.readouterr()
    assert export(tmp_path, "--yaml", "-o", there / "out") == 2
    assert f"where: {there / 'out'}" in capsys.readouterr().err


def test_settings_come_back_as_they_were(run, tmp_path):
    config = RecordConfig(scalars=False, max_file_bytes=99).to_plain()
    rank = run.rank(0, config=config)
    rank.steps(range(3), rss_bytes=[1, 2, 3])
    rank.close()
    assert export(tmp_path, "--config", "-o", tmp_path / "out") == 0
    path = tmp_path / "out" / "rank_0_config.yaml"
    again = load(path)
    assert again.to_plain() == config
    assert as_yaml(config).strip() in path.read_text()


def test_functions_whose_names_hold_anything_stay_in_the_directory(run, tmp_path):
    rank = run.rank(0)
    long = "x" * 150
    functions = ("../../etc/passwd", "a/b", "", "ü\n", "a b", "a_b-2", long, long + "y")
    for function in functions:
        add_modules(rank, 2, function=function)
    out = tmp_path / "out"
    add_history(rank, 2, "end", function="../a/b")
    rank.close()
    assert export(tmp_path, "--modules", "--history", "-o", out) == 0
    logs = {name for name in names_in(out) if name.endswith(".log")}
    assert len(logs) == len(functions), "none takes another one's place"
    assert len(names_in(out)) == 2 + len(logs)
    for name in logs:
        assert not read_report((out / name).read_bytes()).left_out.num
    assert {row["function"] for row in module_table(out)} == set(functions)
    assert {p.name for p in tmp_path.iterdir()} == {"exp", "out"}


def test_captures_by_hand_of_one_name_are_all_written(run, tmp_path, capsys):
    """And what was asked for beside them and is not there is told."""
    rank = run.rank(0)
    for step in (4, 4, 9):
        add_history(rank, 0, "", function="", label="leak", step=step)
    rank.close()
    assert export(tmp_path, *ALL, "-o", tmp_path / "out") == 0
    assert names_in(tmp_path / "out") == {
        "cuda_alloc_rank_0.leak.4.pickle",
        "cuda_alloc_rank_0.leak-2.4.pickle",
        "cuda_alloc_rank_0.leak.9.pickle",
    }
    said = capsys.readouterr().err
    assert "nothing for --yaml" in said
    assert "nothing for --modules" in said
    assert "nothing for --history" not in said


def test_damage_costs_one_file_and_is_told(run, tmp_path, capsys):
    rank = run.rank(0)
    add_snaps(rank, "step", [2])
    add_modules(rank, 2)
    (start, end) = [(a, b) for kind, a, b in rank.offsets if kind == "capture"][-1]
    add_modules(rank, 3)
    rank.close()
    flip_bit(rank.path, (start + end) // 2)
    out = tmp_path / "out"
    assert export(tmp_path, "--yaml", "--modules", "-o", out) == 0
    said = capsys.readouterr().err
    assert "what to do" in said
    assert "rank_0_memory_stats.yaml" in names_in(out)


def test_errors_say_what_where_and_what_to_do(run, tmp_path, capsys):
    def failing(*arguments: object) -> str:
        assert export(*arguments) == 2
        return capsys.readouterr().err

    assert "no such directory" in failing(tmp_path / "nowhere")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "there is no recording" in failing(empty)
    strange = tmp_path / "file.txt"
    strange.write_text("x")
    assert "not a rank's file" in failing(strange)
    rank = run.rank(0)
    rank.source("modules", "off", "switched off")
    rank.steps(range(3), rss_bytes=[1, 2, 3])
    rank.close()
    said = failing(tmp_path, "--yaml", "--modules")
    assert "holds nothing of what was asked for" in said
    assert "modules: switched off" in said
    assert "record with" in said
    assert "has no rank 9" in failing(tmp_path, "--rank", 9)
    assert "no attempt 5" in failing(tmp_path, "--attempt", 5)
    assert "there is no run 'x'" in failing(tmp_path, "--run", "x")
    RunBuilder(tmp_path / "other").simple(1, 3)
    said = failing(tmp_path)
    assert "there are 2 runs" in said
    assert "exp, other" in said
    write_stats(tmp_path / "theirs", 0)
    assert "another tool's files" in failing(tmp_path, "--run", "theirs")
