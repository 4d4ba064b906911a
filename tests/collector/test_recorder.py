"""The life of a recording: what is called, what lies on disk afterwards."""

from __future__ import annotations

import copy
import inspect
import logging
import math
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import collector
from collector.recorder import Recorder, inert_recorder
from tests import programs
from tests.collector.recordings import (
    ONLY_STEPS,
    rank_files,
    read,
    read_only_file,
    record,
    wait_until,
)

ROOT = Path(__file__).parents[2]


def fail(error, rec=None, after=0.0):
    """A training that takes a step, or some time, and fails."""
    if rec is not None:
        rec.step()
    time.sleep(after)
    raise error


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


# Steps and their numbers.


def test_each_step_is_one_row_with_its_time_and_memory(tmp_path):
    before = time.time_ns()
    with record(tmp_path / "run") as rec:
        for _ in range(5):
            time.sleep(0.01)
            rec.step()
    after = time.time_ns()
    found = read_only_file(tmp_path / "run")
    assert found.steps() == [0, 1, 2, 3, 4]
    times = found.column("time_ns")
    assert before <= times[0] <= times[-1] <= after
    assert times == sorted(times)
    seconds = found.column("step_time_seconds")
    assert seconds[0] is None  # nobody knows when the first step began
    assert all(0.009 < value <= (after - before) / 1e9 for value in seconds[1:])
    assert all(2**20 < value < 2**40 for value in found.column("rss_bytes"))
    assert found.close.how == "closed"
    assert found.damages == []


@pytest.mark.usefixtures("no_garbage")
def test_rows_seen_by_the_page_equal_the_process_itself(tmp_path):
    psutil = pytest.importorskip("psutil")
    with record(tmp_path / "run", flush_seconds=3600) as rec:
        rec.step()
        assert rec.flush(60)  # what the writer loads, it has loaded
        ballast = np.ones(2**24)  # 128 MiB, touched
        rec.step()
        high = psutil.Process().memory_info().rss
        del ballast
        rec.step()
        low = psutil.Process().memory_info().rss
    rows = read_only_file(tmp_path / "run").column("rss_bytes")[1:]
    assert abs(rows[0] - high) < 8 * 2**20
    assert abs(rows[1] - low) < 8 * 2**20
    assert rows[0] - rows[1] > 100 * 2**20


def test_own_numbers_lead_and_the_default_continues_from_them(tmp_path):
    with record(tmp_path / "run") as rec:
        rec.step(100)
        rec.step()
        rec.step(500)
        rec.step()
        rec.step(np.int64(700))
        rec.step(800.0)
        rec.step(np.float32(900))
    steps = read_only_file(tmp_path / "run").steps()
    assert steps == [100, 101, 500, 501, 700, 800, 900]


def test_a_step_that_goes_back_is_recorded_as_it_is_and_marked(tmp_path):
    with record(tmp_path / "run") as rec:
        for step in (10, 11, 11, 5, 6):
            rec.step(step)
        rec.step()
    found = read_only_file(tmp_path / "run")
    assert found.steps() == [10, 11, 11, 5, 6, 7]
    assert found.notes_of("mark") == [{"label": "step went back from 11 to 5"}]


def test_what_is_no_number_is_told_once_and_replaced_by_the_count(tmp_path, caplog):
    class Tensor:
        def __index__(self):
            raise AssertionError("reading a tensor would wait for the device")

    bad = [math.nan, math.inf, "7", Tensor(), 1.5, 2**70, [3], np.float64("nan")]
    with record(tmp_path / "run") as rec:
        for value in bad:
            rec.step(value, tokens=value, samples=value)
    found = read_only_file(tmp_path / "run")
    assert found.steps() == list(range(len(bad)))
    assert found.column("tokens") == [None] * len(bad)
    told = [r for r in caplog.records if "must be a whole number" in r.getMessage()]
    assert [r.getMessage().split()[1] for r in told] == ["step", "tokens", "samples"]


def test_a_count_that_would_go_down_is_told_and_left_out(tmp_path, caplog):
    with record(tmp_path / "run") as rec:
        rec.step(tokens=5)
        rec.step(tokens=-3)
        rec.step(-7)  # a step may be any number
    found = read_only_file(tmp_path / "run")
    assert found.column("tokens") == [5, 5, 5]
    assert found.steps() == [0, 1, -7]
    assert "tokens must be a whole number from 0 up, got -3" in caplog.text


def test_tokens_and_samples_are_totals_and_epochs_are_columns(tmp_path):
    with record(tmp_path / "run") as rec:
        rec.step()
        rec.epoch(3, 20)
        rec.step(tokens=100, samples=4)
        rec.step(tokens=50)
        rec.epoch(4)
        rec.step(samples=np.int32(6))
    found = read_only_file(tmp_path / "run")
    assert found.column("tokens") == [None, 100, 150, 150]
    assert found.column("samples") == [None, 4, 4, 10]
    assert found.column("epoch") == [None, 3, 3, 4]
    assert found.notes_of("epoch") == [
        {"epoch": 3, "length": 20},
        {"epoch": 4, "length": None},
    ]


def test_steps_from_several_threads_are_all_taken_one_by_one(tmp_path):
    def train():
        for _ in range(500):
            rec.step(tokens=1)

    with record(tmp_path / "run") as rec:
        threads = [threading.Thread(target=train) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = read_only_file(tmp_path / "run")
    assert found.steps() == list(range(2000))
    assert found.column("tokens") == list(range(1, 2001))


def test_a_step_within_a_step_does_not_lock_up(tmp_path):
    with record(tmp_path / "run") as rec:
        source = rec._session.engine._reads[0]

        def sample():
            rec._session.engine._reads[0] = source
            rec.step()  # as a signal handler or a finaliser might
            return source()

        rec._session.engine._reads[0] = sample
        rec.step()
        rec.step()
    assert sorted(read_only_file(tmp_path / "run").steps()) == [0, 1, 2]


# What the header and the notes say.


def test_the_header_says_who_and_how(tmp_path):
    class Mesh:
        mesh_dim_names = ("dp", "tp")

        def get_coordinate(self):
            return [1, 0]

    with record(
        tmp_path / "exp1", rank=3, local_rank=1, world_size=4, mesh=Mesh()
    ) as rec:
        rec.step()
        assert rec.rank == 3
        attempt = rec.attempt
    (path,) = rank_files(tmp_path / "exp1")
    assert path.name == f"rank00003-{attempt}.events"
    header = read(path).header
    assert (header.run_id, header.attempt) == ("exp1", attempt)
    assert (header.rank, header.local_rank, header.world_size) == (3, 1, 4)
    assert header.mesh == {"dp": 1, "tp": 0}
    assert header.config["flush_seconds"] == 0.1
    assert header.config["host"] is False
    assert header.memory_total_bytes > 2**28
    assert header.device_type in {"cpu", "cuda"}
    assert set(header.versions) >= {"python", "memboard"}
    assert abs(header.started.wall_ns - time.time_ns()) < 60e9


def test_sources_say_whether_they_record_and_why_not(tmp_path):
    with record(tmp_path / "run") as rec:
        rec.step()
        wait_until(lambda: rec.flush(60) and b"network" in rec.path.read_bytes())
    found = read_only_file(tmp_path / "run")
    assert found.source("rss")["status"] == "recorded"
    network = found.source("network")
    assert network["status"] == "off"
    assert network["reason"]
    assert {n["name"] for n in found.notes_of("source")} >= {"device", "cpu", "gpu"}


def test_timed_sources_record_at_their_own_pace(tmp_path):
    only = {name: off for name, off in ONLY_STEPS.items() if off is False}
    config = {**only, "host": 0.05, "process": 0.2, "flush_seconds": 0.1}
    before = time.monotonic()
    with collector.record(tmp_path / "run", config=config) as rec:
        rec.step(41)
        wait_until(
            lambda: rec.flush(60) and len(read(rec.path).column("step", "process")) >= 4
        )
    seconds = time.monotonic() - before
    found = read_only_file(tmp_path / "run")
    tables = {schema.table: schema for schema in found.schemas.values()}
    assert tables["memory"].interval_seconds == 0.05
    used = found.column("memory_used_bytes", table="memory")
    shares = found.column("process_cpu_pct", table="process")
    assert tables["swap"].interval_seconds == 0.5 if "swap" in tables else True
    assert 4 <= len(shares) <= seconds / 0.2 + 1
    assert len(shares) <= len(used) <= seconds / 0.05 + 1
    assert all(value > 2**20 for value in used)
    assert set(found.column("step", table="memory")) <= {0, 42}


def test_model_optimizer_and_mesh_may_come_later(tmp_path):
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 2)
    model.bias.requires_grad_(False)
    with record(tmp_path / "run") as rec:
        rec.attach(model=model, optimizer=torch.optim.SGD(model.parameters()))
        rec.attach(mesh={"dp": 2})
        rec.attach(mesh="nonsense")
        rec.attach(model=object())
        rec.attach(model=torch.nn.LazyLinear(2))
    found = read_only_file(tmp_path / "run")
    assert found.notes_of("model")[-1] == {"type": "LazyLinear"}
    assert found.notes_of("model")[0] == {
        "type": "Linear",
        "num_params": 8,
        "num_trainable_params": 6,
    }
    assert found.notes_of("optimizer") == [{"type": "SGD"}]
    assert found.notes_of("mesh") == [{"dp": 2}]


# The end.


def test_an_exception_in_the_block_is_the_users_and_ends_the_file(tmp_path):
    with pytest.raises(ZeroDivisionError), record(tmp_path / "run") as rec:
        fail(ZeroDivisionError("first line\nsecond line"), rec)
    close = read_only_file(tmp_path / "run").close
    assert (close.how, close.message) == ("exception", "ZeroDivisionError: first line")


@pytest.mark.parametrize(
    ("error", "how", "message"),
    [
        (SystemExit(0), "closed", ""),
        (SystemExit(), "closed", ""),
        (SystemExit(3), "exception", "SystemExit: 3"),
        (KeyboardInterrupt(), "exception", "KeyboardInterrupt"),
    ],
)
def test_leaving_by_exit_or_interrupt(tmp_path, error, how, message):
    with pytest.raises(type(error)), record(tmp_path / "run"):
        raise error
    close = read_only_file(tmp_path / "run").close
    assert (close.how, close.message) == (how, message)


def test_an_out_of_memory_error_leaves_what_is_known_of_the_failed_step(tmp_path):
    class OutOfMemoryError(RuntimeError):
        """Named as torch names its own."""

    with pytest.raises(OutOfMemoryError), record(tmp_path / "run") as rec:
        fail(OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), rec)
    found = read_only_file(tmp_path / "run")
    (note,) = found.notes_of("oom")
    assert note["message"].startswith("CUDA out of memory")
    assert note["values"]["rss_bytes"] > 2**20
    assert found.steps() == [0]  # the failed step is no row


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
    assert collector.active() is None


def test_flush_puts_everything_on_disk_now(tmp_path):
    with record(tmp_path / "run", flush_seconds=3600) as rec:
        for done in range(3):
            rec.step()
            assert rec.flush(60)
            assert read(rec.path).steps() == list(range(done + 1))


def test_a_recorder_that_is_never_closed_is_closed_at_exit(tmp_path):
    programs.run(
        "import sys, collector\n"
        "rec = collector.record(sys.argv[1], flush_seconds=3600)\n"
        "for _ in range(7): rec.step()\n",
        tmp_path / "run",
    )
    found = read_only_file(tmp_path / "run")
    assert found.steps() == list(range(7))
    assert found.close.how == "closed"


def test_a_program_that_dies_of_an_exception_says_so_at_exit(tmp_path):
    result = programs.run(
        "import sys, collector\n"
        "rec = collector.record(sys.argv[1], flush_seconds=3600)\n"
        "rec.step()\n"
        "raise RuntimeError('loss is NaN')\n",
        tmp_path / "run",
        check=False,
    )
    assert result.returncode == 1
    found = read_only_file(tmp_path / "run")
    assert found.steps() == [0]
    assert (found.close.how, found.close.message) == (
        "exception",
        "RuntimeError: loss is NaN",
    )


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
        assert collector.active() is first
        with record(tmp_path / "run") as second:
            assert collector.active() is second
            first.step()
            second.step(10)
        assert collector.active() is first
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
        "import collector\n"
        "keywords = {} if os.environ.get('MEMBOARD_ENABLED') else {'enabled': False}\n"
        "with collector.record(sys.argv[1], model=object(), **keywords) as rec:\n"
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
    with pytest.raises(collector.ConfigError, match=word):
        collector.record(tmp_path / "run", **keywords)
    assert collector.active() is None
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "logdir", ["s3://bucket/run", "", "  ", "a\0b", "\ud800", None, 5]
)
def test_a_logdir_that_cannot_be_one_is_refused(logdir):
    with pytest.raises(collector.ConfigError, match="logdir"):
        collector.record(logdir)


def test_a_working_directory_that_is_gone_is_told(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(collector.ConfigError, match="give an absolute path"):
        collector.record("runs/a")
    with record(tmp_path / "run") as rec:
        rec.step()
    assert read_only_file(tmp_path / "run").steps() == [0]


def test_recording_that_cannot_start_is_told_and_training_goes_on(
    tmp_path, monkeypatch, caplog
):
    from collector.writing.writer import Writer

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
        "import sys, collector\n"
        "assert not {'collector.recorder', 'msgspec'} & set(sys.modules)\n"
        "for name in collector.__all__: getattr(collector, name)\n"
        "assert set(collector.__all__) <= set(dir(collector))\n"
        "heavy = {'torch', 'numpy', 'tensorboard', 'psutil', 'yaml'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "try: collector.nonsense\n"
        "except AttributeError as error: assert 'nonsense' in str(error)\n"
        "else: raise SystemExit('no AttributeError')\n"
    )
    assert run_fresh(code) == "[]\n"
