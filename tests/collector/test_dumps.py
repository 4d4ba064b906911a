"""Files for other tools at the end of a recording: a process of its own writes them."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

import memboard as mb
from memboard.collector.afterwards import detached, dumps
from memboard.collector.format.memory import NPP_ATTRS, RSS_ATTRS
from memboard.collector.format.names import EXPORT_MARK
from memboard.tb_plugin.cli import main
from memboard.tb_plugin.cli.afterwards import dumps as dumps_process
from memboard.tb_plugin.formats.memprofiler.report import read_report
from tests import programs
from tests.collector.functions.models import Trainer
from tests.collector.recordings import ONLY_STEPS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.collector.afterwards.dumps import Pending

ROOT = Path(__file__).parents[2]

SNAPPED = {
    **ONLY_STEPS,
    "functions": {"enabled": True},
    "schedule": {"active": 0},
}


def record(run_dir: Path, *asked: str, rank: int = 5, **settings: object) -> None:
    """Steps with a function whose second call, and all after it, are snapped."""
    settings = {**SNAPPED, **settings}
    with mb.record(run_dir, rank=rank, dumps=asked, **settings) as rec:
        for _ in range(3):
            with rec.span("work", memory=True):
                pass
            rec.step()


def notes(run_dir: Path) -> list[Pending]:
    return [pending for _, pending in dumps.notes_of(run_dir)]


HOOKED = """
memprofiler_cfg:
  enabled: true
  collect_funcs: {default: [], cpu: [training_step]}
  schedule: {warmup_iters: 2, max_iter: 3}
"""


def written(run_dir: Path, num_starts: int = 1) -> list[Pending]:
    """What was noted, once nothing waits any more."""

    def is_over() -> bool:
        found = notes(run_dir)
        over = all(one.status in ("written", "done", "failed") for one in found)
        return len(found) == num_starts and over

    wait_until(is_over)
    return notes(run_dir)


def names_in(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir() if p.is_file()} - {EXPORT_MARK}


def test_what_was_asked_for_is_written_once_the_recording_has_ended(tmp_path, caplog):
    record(tmp_path / "exp", "yaml")
    (pending,) = written(tmp_path / "exp")
    assert pending.problem == ""
    out = tmp_path / "exp" / "memprofiler"
    assert names_in(out) == {"rank_5_memory_stats.yaml"}
    snaps = yaml.safe_load((out / "rank_5_memory_stats.yaml").read_text())
    assert {"5.work.2.start", "5.work.2.end"} <= set(snaps)
    assert snaps["5.work.2.end"]["rss"] > 0
    assert caplog.records == []


def test_memprofilers_file_has_the_keys_of_hooks_at_both_ends(tmp_path):
    """By its own YAML, of a function in `cpu` alone: stats[key]["npp_diff"] works."""
    config = tmp_path / "memprofiler.yaml"
    config.write_text(HOOKED)
    trainer = Trainer()
    with mb.record(
        tmp_path / "exp", config=config, rank=0, model=trainer.model, scalars=False
    ):
        for _ in range(4):
            trainer.training_step().backward()
    (pending,) = written(tmp_path / "exp")
    assert pending.problem == ""
    path = tmp_path / "exp" / "memprofiler" / "rank_0_memory_stats.yaml"
    stats = yaml.safe_load(path.read_text())
    assert list(stats) == ["0.training_step.3.start", "0.training_step.3.end"]
    start, end = stats.values()
    assert list(start) == list(end)
    assert {*RSS_ATTRS, *NPP_ATTRS, "rss", "vms"} == set(start)
    assert {start[name] for name in (*RSS_ATTRS, *NPP_ATTRS)} == {0}
    assert [end[name] for name in NPP_ATTRS] == [0, 4608, 4608]
    assert end["rss_pre_forward"] > 0


def test_tables_of_modules_are_dumped_under_memprofilers_names(tmp_path):
    trainer = Trainer()
    settings = {**ONLY_STEPS, "functions": {"modules": "training_step"}}
    with mb.record(
        tmp_path / "exp",
        rank=1,
        model=trainer.model,
        modules={"enabled": True, "table_depth": 1, "table_units": "KiB"},
        schedule={"active": 2},
        dumps="modules",
        **settings,
    ):
        for _ in range(4):
            trainer.training_step()
    (pending,) = written(tmp_path / "exp")
    assert pending.problem == ""
    out = tmp_path / "exp" / "memprofiler"
    logs = [f"fsdp_mem_rank_1_training_step_{number}.log" for number in (2, 3)]
    assert names_in(out) == {"rank_1_modules.csv", *logs}
    report = read_report((out / logs[0]).read_bytes())
    assert report.states.tree.fqn == ("Sequential",)
    assert "KiB" in (out / logs[0]).read_text()


def test_a_second_start_keeps_the_files_of_the_first(tmp_path):
    for _ in range(2):
        record(tmp_path / "exp", "yaml")
    written(tmp_path / "exp", 2)
    out = tmp_path / "exp" / "memprofiler"
    assert names_in(out) == {"rank_5_memory_stats.yaml"}
    (beside,) = [path for path in out.iterdir() if path.is_dir()]
    assert names_in(beside) == {"rank_5_memory_stats.yaml"}


def test_what_was_dumped_is_mirrored_and_still_known_as_ours(tmp_path):
    there = tmp_path / "there"
    run_dir = tmp_path / "here" / "exp"
    record(run_dir, "yaml", remote=f"file://{there}/{{run_name}}")
    wait_until(lambda: notes(run_dir)[0].status == "done")
    copied = there / "exp" / "memprofiler"
    assert names_in(copied) == {"rank_5_memory_stats.yaml"}
    for name in ("rank_5_memory_stats.yaml", EXPORT_MARK):
        here = run_dir / "memprofiler" / name
        assert (copied / name).read_bytes() == here.read_bytes()


def test_another_directory_is_that_of_the_start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = {"dumps": "yaml", "dumps_dir": "mine"}
    with mb.record(tmp_path / "exp", rank=0, **SNAPPED, **asked) as rec:
        for _ in range(3):
            with rec.span("work", memory=True):
                pass
        (tmp_path / "away").mkdir()
        monkeypatch.chdir(tmp_path / "away")
    written(tmp_path / "exp")
    assert names_in(tmp_path / "mine") == {"rank_0_memory_stats.yaml"}


def test_an_error_in_training_is_still_training_s_and_dumped(tmp_path):
    def train() -> None:
        asked = "yaml"
        with mb.record(tmp_path / "exp", rank=0, **SNAPPED, dumps=asked) as rec:
            for number in range(5):
                with rec.span("work", memory=True):
                    assert 1 / (3 - number)

    with pytest.raises(ZeroDivisionError):
        train()
    written(tmp_path / "exp")
    path = tmp_path / "exp" / "memprofiler" / "rank_0_memory_stats.yaml"
    snaps = yaml.safe_load(path.read_text())
    assert {"0.work.2.start", "0.work.3.end", "0.work.4.start"} <= set(snaps)


def test_nothing_asked_for_starts_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(detached, "start", lambda *_: pytest.fail("started"))
    record(tmp_path / "exp")
    assert not (tmp_path / "exp" / "memprofiler").exists()
    assert notes(tmp_path / "exp") == []


def test_what_was_asked_for_and_never_collected_is_said_in_the_report(tmp_path, capsys):
    record(tmp_path / "exp", "modules")
    (pending,) = written(tmp_path / "exp")
    reason = "holds nothing of what was asked for (modules: switched off"
    assert reason in pending.problem
    assert main(["report", str(tmp_path)]) == 0
    assert reason in capsys.readouterr().err


def test_what_could_not_be_recorded_is_named_with_its_reason(tmp_path):
    record(tmp_path / "exp", "yaml", "history", history=True)
    (pending,) = written(tmp_path / "exp")
    assert names_in(tmp_path / "exp" / "memprofiler") == {"rank_5_memory_stats.yaml"}
    assert "the recording holds nothing for --history (history: " in pending.problem
    assert pending.status == "written"


def test_a_process_that_cannot_be_started_is_one_warning(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    record(tmp_path / "exp", "yaml")
    (said,) = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert "--yaml" in said
    assert str(tmp_path / "exp" / "memprofiler") in said


@pytest.fixture
def nothing_runs(monkeypatch) -> Iterator[None]:
    """As where the container ends with training."""
    with monkeypatch.context() as patched:
        patched.setattr(detached, "start", lambda *_: None)
        yield


@pytest.mark.usefixtures("nothing_runs")
def test_what_is_left_the_report_finishes(tmp_path, capsys):
    record(tmp_path / "exp", "yaml")
    (pending,) = notes(tmp_path / "exp")
    assert pending.status == "waiting"
    assert main(["report", str(tmp_path)]) == 0
    assert "rank_5_memory_stats.yaml" in capsys.readouterr().err
    assert names_in(tmp_path / "exp" / "memprofiler") == {"rank_5_memory_stats.yaml"}
    assert main(["report", str(tmp_path)]) == 0
    assert "rank_5" not in capsys.readouterr().err


def test_what_is_left_the_next_start_finishes(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(detached, "start", lambda *_: None)
        record(tmp_path / "exp", "yaml")
    assert [one.status for one in notes(tmp_path / "exp")] == ["waiting"]
    with mb.record(tmp_path / "exp", rank=5, **SNAPPED, dumps="yaml"):
        written(tmp_path / "exp")
        assert names_in(tmp_path / "exp" / "memprofiler") == {
            "rank_5_memory_stats.yaml"
        }


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize("where", ["_export", "_place", "_move"])
def test_a_process_that_is_killed_half_way_leaves_nothing_torn(tmp_path, where):
    """The kill comes before each of the steps; what follows it finishes them."""
    run_dir = tmp_path / "exp"
    record(run_dir, "yaml")
    script = f"""
        import os, signal, sys
        from pathlib import Path
        from memboard.tb_plugin.cli.afterwards import dumps as dumps_process
        def killed(*_):
            os.kill(os.getpid(), signal.SIGKILL)
        dumps_process.{where} = killed
        dumps_process.finish(Path(sys.argv[1]), 5)
    """
    done = programs.run(textwrap.dedent(script), run_dir, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [one.status for one in notes(run_dir)] == ["waiting"]
    dumps_process.finish(run_dir, 5)
    out = run_dir / "memprofiler"
    assert names_in(out) == {"rank_5_memory_stats.yaml"}
    assert [path for path in out.iterdir() if path.is_dir()] == []
    assert yaml.safe_load((out / "rank_5_memory_stats.yaml").read_text())


@pytest.mark.usefixtures("nothing_runs")
def test_a_directory_that_cannot_be_written_is_tried_again_and_then_given_up(tmp_path):
    (tmp_path / "file").write_text("")
    record(tmp_path / "exp", "yaml", dumps_dir=str(tmp_path / "file" / "out"))
    for status in ("waiting", "waiting", "failed"):
        dumps_process.finish(tmp_path / "exp", 5)
        (pending,) = notes(tmp_path / "exp")
        assert pending.status == status
        assert "Error" in pending.problem
    (tmp_path / "file").unlink()
    assert dumps_process.finish(tmp_path / "exp", 5) == []


SCRIPT = """
    import os, signal, sys
    import memboard as mb
    from pathlib import Path
    from tests.collector.test_dumps import record
    record(Path(sys.argv[1]), "yaml")
    print("closed", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_training_may_be_killed_after_its_end_and_nobody_waits_for_its_pipes(tmp_path):
    process = programs.Program(
        textwrap.dedent(SCRIPT),
        tmp_path / "exp",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        new_session=True,
    )
    # Reads to the end of both pipes: whoever had inherited them would hold this up.
    said, _ = process.communicate()
    assert said == "closed\n"
    assert process.returncode == -signal.SIGKILL
    written(tmp_path / "exp")
    assert names_in(tmp_path / "exp" / "memprofiler") == {"rank_5_memory_stats.yaml"}


def test_the_end_waits_for_no_process(tmp_path, monkeypatch):
    """The one that would write stands still until the recording has ended."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    slow = tmp_path / "slow"
    slow.write_text(f'#!/bin/sh\nread _ < {gate}\nexec {sys.executable} "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))
    record(tmp_path / "exp", "yaml")
    assert [one.status for one in notes(tmp_path / "exp")] == ["waiting"]
    gate.write_text("go\n")
    written(tmp_path / "exp")
    assert names_in(tmp_path / "exp" / "memprofiler")


def test_a_hostile_note_is_none(tmp_path):
    record(tmp_path / "exp", "yaml")
    (pending,) = written(tmp_path / "exp")
    folder = tmp_path / "exp" / "plugins" / "memboard"
    (note,) = folder.glob(f"rank*{dumps.SUFFIX}")
    plain = json.loads(note.read_text())
    for key, value in (("recorded", "../../x"), ("options", [3]), ("num_tries", "x")):
        note.write_text(json.dumps({**plain, "status": "waiting", key: value}))
        assert notes(tmp_path / "exp") == []
    note.write_text("[" * 100_000)
    assert notes(tmp_path / "exp") == []
    assert pending.files


def test_a_package_of_the_users_with_our_name_is_not_what_runs(tmp_path, monkeypatch):
    (tmp_path / "collector").mkdir()
    (tmp_path / "collector" / "__init__.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "exp", "yaml")
    written(tmp_path / "exp")
    assert names_in(tmp_path / "exp" / "memprofiler")
