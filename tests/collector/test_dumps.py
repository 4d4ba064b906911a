"""Files for other tools at the end of a recording."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

import collector
from collector import dumps
from collector.format.names import EXPORT_MARK
from tests.collector.recordings import ONLY_STEPS

if TYPE_CHECKING:
    from pathlib import Path


SNAPPED = {
    **ONLY_STEPS,
    "functions": {"enabled": True},
    "schedule": {"max_iter": 0},
}


def record(run_dir: Path, num_steps: int = 3, **asked: object) -> None:
    """Steps with a function whose second call, and all after it, are snapped."""
    with collector.record(run_dir, rank=5, **SNAPPED, dumps=asked) as rec:
        for _ in range(num_steps):
            with rec.span("work", memory=True):
                pass
            rec.step()


def names_in(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir() if p.is_file()} - {EXPORT_MARK}


def test_what_was_asked_for_is_there_when_the_recording_ends(tmp_path, caplog):
    record(tmp_path / "exp", yaml=True, pickle=True)
    out = tmp_path / "exp" / "memprofiler"
    assert names_in(out) == {"rank_5_memory_stats.yaml", "rank_5_memory_stats.pickle"}
    snaps = yaml.safe_load((out / "rank_5_memory_stats.yaml").read_text())
    assert {"5.work.2.start", "5.work.2.end"} <= set(snaps)
    assert snaps["5.work.2.end"]["rss"] > 0
    assert caplog.records == []


def test_a_second_start_keeps_the_files_of_the_first(tmp_path):
    for _ in range(2):
        record(tmp_path / "exp", yaml=True)
    out = tmp_path / "exp" / "memprofiler"
    assert names_in(out) == {"rank_5_memory_stats.yaml"}
    (beside,) = [path for path in out.iterdir() if path.is_dir()]
    assert names_in(beside) == {"rank_5_memory_stats.yaml"}


def test_what_was_dumped_is_mirrored_and_still_known_as_ours(tmp_path):
    there = tmp_path / "there"
    run_dir = tmp_path / "here" / "exp"
    asked = {"yaml": True}
    config = {**SNAPPED, "remote": f"file://{there}/{{run_name}}"}
    with collector.record(run_dir, rank=5, config=config, dumps=asked) as rec:
        for _ in range(3):
            with rec.span("work", memory=True):
                pass
            rec.step()
    copied = there / "exp" / "memprofiler"
    assert names_in(copied) == {"rank_5_memory_stats.yaml"}
    for name in ("rank_5_memory_stats.yaml", EXPORT_MARK):
        here = run_dir / "memprofiler" / name
        assert (copied / name).read_bytes() == here.read_bytes()


def test_another_directory_is_that_of_the_start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = {"yaml": True, "dir": "mine"}
    with collector.record(tmp_path / "exp", rank=0, **SNAPPED, dumps=asked) as rec:
        for _ in range(3):
            with rec.span("work", memory=True):
                pass
        (tmp_path / "away").mkdir()
        monkeypatch.chdir(tmp_path / "away")
    assert names_in(tmp_path / "mine") == {"rank_0_memory_stats.yaml"}


def test_an_error_in_training_is_still_training_s_and_dumped(tmp_path):
    def train() -> None:
        asked = {"yaml": True}
        with collector.record(tmp_path / "exp", rank=0, **SNAPPED, dumps=asked) as rec:
            for number in range(5):
                with rec.span("work", memory=True):
                    assert 1 / (3 - number)

    with pytest.raises(ZeroDivisionError):
        train()
    path = tmp_path / "exp" / "memprofiler" / "rank_0_memory_stats.yaml"
    snaps = yaml.safe_load(path.read_text())
    assert {"0.work.2.start", "0.work.3.end", "0.work.4.start"} <= set(snaps)


def test_nothing_asked_for_starts_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("started"))
    record(tmp_path / "exp")
    assert not (tmp_path / "exp" / "memprofiler").exists()


def one_warning(caplog) -> str:
    (record_,) = [r for r in caplog.records if r.levelno >= logging.WARNING]
    return record_.getMessage()


def test_what_was_asked_for_and_never_collected_is_one_warning(tmp_path, caplog):
    record(tmp_path / "exp", fsdp_report=True)
    said = one_warning(caplog)
    assert "holds nothing of what was asked for (modules: switched off" in said
    assert "memboard export" not in said  # it would say the same again


def test_what_could_not_be_recorded_is_named_with_its_reason(tmp_path, caplog):
    asked = {"yaml": True, "history": True}
    with collector.record(
        tmp_path / "exp", rank=5, **{**SNAPPED, "history": True}, dumps=asked
    ) as rec:
        for _ in range(3):
            with rec.span("work", memory=True):
                pass
            rec.step()
    assert names_in(tmp_path / "exp" / "memprofiler") == {"rank_5_memory_stats.yaml"}
    said = one_warning(caplog)
    assert "the recording holds nothing for --history (history: " in said
    assert f"All others are in {tmp_path / 'exp' / 'memprofiler'}." in said
    assert "could not be written" not in said


@pytest.mark.parametrize("python", ["/nowhere/python", "/bin/false"])
def test_a_process_that_cannot_run_is_one_warning(
    tmp_path, caplog, monkeypatch, python
):
    monkeypatch.setattr(sys, "executable", python)
    record(tmp_path / "exp", yaml=True)
    said = one_warning(caplog)
    assert "--yaml" in said
    assert str(tmp_path / "exp" / "memprofiler") in said


def test_a_process_that_hangs_is_given_up(tmp_path, caplog, monkeypatch):
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))
    monkeypatch.setattr(dumps, "DUMP_SECONDS", 0.2)
    record(tmp_path / "exp", yaml=True)
    assert "TimeoutExpired" in one_warning(caplog)


def test_a_directory_that_cannot_be_written_is_one_warning(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    record(tmp_path / "exp", yaml=True, dir=str(tmp_path / "file" / "out"))
    assert "cannot write" in one_warning(caplog)


def test_a_package_of_the_users_with_our_name_is_not_what_runs(tmp_path, monkeypatch):
    (tmp_path / "collector").mkdir()
    (tmp_path / "collector" / "__init__.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "exp", yaml=True)
    assert names_in(tmp_path / "exp" / "memprofiler")
