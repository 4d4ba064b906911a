"""Recordings begin and end: one, several beside one another, and none at all."""

from __future__ import annotations

import copy
import inspect
import logging
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import memboard as mb
from memboard.collector.recorder import Recorder, inert_recorder
from tests.collector.recordings import (
    rank_files,
    read,
    read_only_file,
    record,
)

ROOT = Path(__file__).parents[2]


def run_fresh(code, *arguments):
    """What code prints in an interpreter that has imported nothing."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        check=True,
        timeout=300,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


# The end.


@pytest.mark.parametrize(
    ("error", "how", "message"),
    [
        (SystemExit(0), "closed", ""),
        (SystemExit(), "closed", ""),
        (SystemExit(3), "exception", "SystemExit: 3"),
        (KeyboardInterrupt(), "exception", "KeyboardInterrupt"),
        (ValueError("first\nsecond line"), "exception", "ValueError: first"),
    ],
)
def test_leaving_by_an_exception_is_the_users_and_ends_the_file(
    tmp_path, error, how, message
):
    with pytest.raises(type(error)), record(tmp_path / "run"):
        raise error
    close = read_only_file(tmp_path / "run").close
    assert (close.how, close.message) == (how, message)


def test_after_close_every_call_returns_at_once(tmp_path):
    rec = record(tmp_path / "run")
    rec.step()
    rec.close()
    size = rec.path.stat().st_size
    rec.close()
    rec.step(5, tokens=1)
    rec.epoch(1)
    rec.mark("late")
    rec.attach(model=object())
    with rec.phase("val"), rec.span("late"):
        pass
    assert list(rec.loader([1, 2])) == [1, 2]
    assert rec.flush(60) is False
    assert rec.path.stat().st_size == size
    assert mb.active() is None


def test_flush_puts_everything_on_disk_now(tmp_path):
    with record(tmp_path / "run", flush_seconds=3600) as rec:
        for done in range(3):
            rec.step()
            assert rec.flush(60)
            assert read(rec.path).steps() == list(range(done + 1))


def test_changing_the_working_directory_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with record("runs/a", flush_seconds=3600) as rec:
        monkeypatch.chdir(tmp_path / "elsewhere")
        rec.step()
    assert read_only_file(tmp_path / "runs" / "a").steps() == [0]


# Several recorders.


def test_two_recorders_in_one_process_have_their_own_files(tmp_path):
    with record(tmp_path / "run") as first:
        assert mb.active() is first
        with record(tmp_path / "run") as second:
            assert mb.active() is second
            first.step()
            second.step(10)
        assert mb.active() is first
        first.step()
    files = [read(path) for path in rank_files(tmp_path / "run")]
    assert sorted(found.steps() for found in files) == [[0, 1], [10]]
    assert len({found.header.attempt for found in files}) == 2


def test_in_a_notebook_recording_anew_closes_the_forerunner(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    with record(tmp_path / "other") as other:
        first = record(tmp_path / "run")
        first.step()
        with record(tmp_path / "run") as second:
            first.step()  # closed: returns at once
            second.step()
            other.step()
    files = [read(path) for path in rank_files(tmp_path / "run")]
    assert [found.steps() for found in files] == [[0], [0]]
    assert all(found.close.how == "closed" for found in files)
    assert read_only_file(tmp_path / "other").steps() == [0]


def test_what_holds_a_recorder_can_be_copied_and_sent_elsewhere(tmp_path):
    class Trainer:
        pass

    with record(tmp_path / "run") as rec:
        parts = {
            "rec": rec,
            "loader": rec.loader([1, 2]),
            "span": rec.span("s"),
            "phase": rec.phase("val"),
        }
        rec.phase("train")
        trainer = Trainer()
        vars(trainer).update(parts)
        assert copy.deepcopy(trainer).rec is rec
        assert copy.copy(rec) is rec
        sent = pickle.loads(pickle.dumps(parts))
        assert sent["rec"].path is None
        sent["rec"].step()
        with sent["span"], sent["phase"]:
            assert list(sent["loader"]) == [1, 2]
        rec.step()
    found = read_only_file(tmp_path / "run")
    assert found.steps() == [0]
    assert found.notes_of("span") == []


def test_a_restart_in_the_same_directory_is_a_new_attempt(tmp_path):
    for start in (0, 3):
        with record(tmp_path / "run") as rec:
            for step in range(start, start + 5):
                rec.step(step)
    first, second = (read(path) for path in rank_files(tmp_path / "run"))
    assert first.steps() == [0, 1, 2, 3, 4]
    assert second.steps() == [3, 4, 5, 6, 7]
    assert first.header.started.wall_ns < second.header.started.wall_ns


# Switched off.


@pytest.mark.parametrize("how", ["keyword", "environment"])
def test_switched_off_nothing_is_loaded_started_or_written(tmp_path, how):
    code = (
        "import os, sys, threading\n"
        "import memboard as mb\n"
        "keywords = {} if os.environ.get('MEMBOARD_ENABLED') else {'enabled': False}\n"
        "with mb.record(sys.argv[1], model=object(), **keywords) as rec:\n"
        "    rec.step(); rec.epoch(1); rec.mark('x'); rec.attach()\n"
        "    with rec.phase('val'), rec.span('s'): pass\n"
        "    assert list(rec.loader([1])) == [1]\n"
        "    f = lambda: 1\n"
        "    assert rec.span('s')(f) is f\n"
        "assert threading.active_count() == 1, threading.enumerate()\n"
        "heavy = {'torch', 'numpy', 'tensorboard', 'psutil', 'google.protobuf'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    prefix = "import os; os.environ['MEMBOARD_ENABLED'] = '0'\n"
    run_fresh((prefix if how == "environment" else "") + code, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_switched_off_everything_public_returns():
    rec = inert_recorder()
    given = {"span": ("s",), "loader": ([1],), "epoch": (1,), "log": ({"x": 1.0},)}
    for name, what in vars(Recorder).items():
        if name.startswith("_"):
            continue
        if isinstance(what, property):
            assert not getattr(rec, name) or name == "run_dir"
        else:
            takes = list(inspect.signature(what).parameters.values())[1:]
            needs = sum(one.kind is one.POSITIONAL_OR_KEYWORD for one in takes)
            arguments = given.get(name, ("x",) * min(needs, 1))
            getattr(rec, name)(*arguments)
    assert rec.loader(given) is given
    assert pickle.loads(pickle.dumps(rec)).path is None


# Bad input at the start.


@pytest.mark.parametrize(
    ("keywords", "word"),
    [
        ({"flush_secs": 1}, "flush_seconds"),
        ({"max_file_bytes": "many"}, "max_file_bytes"),
        ({"mesh": 5}, "mesh"),
        ({"config": "/no/such/file.yaml"}, "file.yaml"),
    ],
)
def test_a_wrong_setting_is_refused_at_once(tmp_path, keywords, word):
    with pytest.raises(mb.ConfigError, match=word):
        mb.record(tmp_path / "run", **keywords)
    assert mb.active() is None
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "logdir", ["s3://bucket/run", "", "  ", "a\0b", "\ud800", None, 5]
)
def test_a_logdir_that_cannot_be_one_is_refused(logdir):
    with pytest.raises(mb.ConfigError, match="logdir"):
        mb.record(logdir)


def test_a_working_directory_that_is_gone_is_told(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(mb.ConfigError, match="give an absolute path"):
        mb.record("runs/a")
    with record(tmp_path / "run") as rec:
        rec.step()
    assert read_only_file(tmp_path / "run").steps() == [0]


def test_recording_that_cannot_start_is_told_and_training_goes_on(
    tmp_path, monkeypatch, caplog
):
    from memboard.collector.writing.writer import Writer

    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Writer, "start", start)
    with caplog.at_level(logging.WARNING), record(tmp_path / "run") as rec:
        rec.step()
    assert "training goes on" in caplog.text
    assert "can't start new thread" in caplog.text
    assert not (tmp_path / "run").exists()


# The import.


def test_the_public_names_are_the_listed_ones_and_load_lazily():
    code = (
        "import sys, memboard as mb\n"
        "assert not {'memboard.collector.recorder', 'msgspec'} & set(sys.modules)\n"
        "for name in mb.__all__: getattr(mb, name)\n"
        "assert set(mb.__all__) <= set(dir(mb))\n"
        "heavy = {'torch', 'numpy', 'tensorboard', 'psutil', 'yaml'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "try: mb.nonsense\n"
        "except AttributeError as error: assert 'nonsense' in str(error)\n"
        "else: raise SystemExit('no AttributeError')\n"
    )
    assert run_fresh(code) == "[]\n"
