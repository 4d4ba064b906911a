"""What collected calls have found: rows and captures made on the writer's thread."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.writing.queues.calls import _MANY, _MANY_BYTES, CallQueue
from tests.collector.functions.models import Trainer, mlp, record
from tests.collector.recordings import read_only_file

ROOT = Path(__file__).parents[3]
ALWAYS = {"warmup": 0, "active": 0}


def note(results, number):
    results.append((number, threading.current_thread().name))


def queue():
    written: list[tuple[int, str]] = []
    return CallQueue(written, WarnOnce()), written


def test_training_hands_over_and_the_writer_writes(tmp_path):
    with record(tmp_path, model=mlp()) as rec:
        written: list[tuple[int, str]] = []
        for number in range(3):
            rec._session.engine.put_later(
                100, lambda _, number: note(written, number), number
            )
        assert written == []
        assert rec.flush(60)
    assert written == [(number, "memboard-writer") for number in range(3)]


@pytest.mark.parametrize(
    ("size_bytes", "num_waiting"), [(0, _MANY), (_MANY_BYTES // 4, 4)]
)
def test_where_the_writer_is_late_training_writes_in_order(size_bytes, num_waiting):
    calls, written = queue()
    for number in range(num_waiting):
        calls.put(size_bytes, note, number)
    assert written == []
    calls.put(size_bytes or 1, note, num_waiting)
    assert [number for number, _ in written] == list(range(num_waiting + 1))
    calls.put(size_bytes, note, -1)
    assert len(written) == num_waiting + 1, "as much fits as before"
    calls.write()
    assert written[-1][0] == -1


def test_training_does_not_wait_for_a_writer_at_work():
    calls, written = queue()
    begun, release = threading.Event(), threading.Event()

    def slow(_):
        begun.set()
        release.wait(60)

    calls.put(0, slow)
    writer = threading.Thread(target=calls.write)
    writer.start()
    assert begun.wait(60)
    for number in range(2 * _MANY):
        calls.put(0, note, number)
    assert written == []
    release.set()
    writer.join(60)
    calls.write()
    assert [number for number, _ in written] == list(range(2 * _MANY))


def test_what_fails_costs_itself_alone(caplog):
    calls, written = queue()

    def fail(_):
        raise ValueError("odd")

    calls.put(0, fail)
    calls.put(0, note, 1)
    calls.write()
    assert [number for number, _ in written] == [1]
    assert "ValueError: odd" in caplog.text


def test_a_step_that_turns_out_to_be_none_leaves_no_row(tmp_path):
    trainer = Trainer()
    with record(tmp_path, model=trainer.model, schedule=ALWAYS) as rec:
        trainer.training_step()
        rec.step()
        trainer.training_step()
        assert rec.flush(60)  # its start waits for its end, also now
        with rec.phase("val"):
            pass
    found = read_only_file(tmp_path)
    assert found.snaps("step") == ["step.1.start", "step.1.end"]
    assert [c.iteration for c in found.captures_of("hooks")] == [1]


def test_rows_and_captures_that_find_no_room_are_counted(tmp_path, monkeypatch):
    """Of each table what was recorded and what was dropped are all there was."""
    monkeypatch.setattr("memboard.collector.engine.QUEUE_ROWS", 64)
    monkeypatch.setattr("memboard.collector.writing.queues.calls._MANY", 30)
    monkeypatch.setattr("memboard.collector.writing.queues.captures._MAX_WAITING", 20)
    begun, release = threading.Event(), threading.Event()
    trainer, num_steps = Trainer(), 100
    with record(tmp_path, model=trainer.model, schedule=ALWAYS) as rec:
        assert rec.flush(60)

        def hang():
            begun.set()
            release.wait(60)

        rec._session.engine.watchers.append(hang)
        threading.Thread(target=rec.flush, args=(60,), daemon=True).start()
        assert begun.wait(60)
        for _ in range(num_steps):
            trainer.training_step().backward()
            rec.step()
        rec._session.engine.watchers.remove(hang)
        release.set()
    found = read_only_file(tmp_path)
    dropped: dict[str, int] = {}
    for one in found.notes:
        if one.kind == "dropped":
            dropped[one.data["table"]] = one.data["num_rows"]
    for table, per_step in (
        ("step", 1),
        ("function/step", 2),
        ("function/training_step", 2),
        ("activations", 1),
    ):
        num_rows = len(found.column("step", table))
        assert dropped[table] > 0
        assert num_rows + dropped[table] == per_step * num_steps, table
    assert len(found.captures) + dropped["captures"] == 4 * num_steps
    assert found.close is not None
    assert found.close.num_dropped == sum(dropped.values())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_writes_nothing_of_it(tmp_path):
    trainer = Trainer()
    with record(tmp_path, model=trainer.model, schedule=ALWAYS) as rec:
        trainer.training_step()
        rec.step()
        engine = rec._session.engine
        child = os.fork()
        if child == 0:
            signal.alarm(250)
            wrong: list[tuple[int, str]] = []
            engine.put_later(0, lambda _: note(wrong, 1))
            engine.after_fork()
            engine._calls.write()
            os._exit(len(wrong))
        assert os.waitpid(child, 0)[1] == 0
    found = read_only_file(tmp_path)
    assert found.snaps("step") == ["step.1.start", "step.1.end"]
    assert len(found.captures_of("hooks")) == 1


KILLED = """
import os, signal, sys
from tests.collector.functions.models import Trainer, record

trainer = Trainer()
rec = record(
    sys.argv[1],
    model=trainer.model,
    schedule={"warmup": 0, "active": 0},
    oom={"on_sigterm": True},
)
for _ in range(3):
    trainer.training_step().backward()
    rec.step()
assert rec.flush(60)
trainer.training_step()
rec.step()
os.kill(os.getpid(), int(sys.argv[2]))
"""


@pytest.mark.parametrize(
    ("by", "num_steps"), [(signal.SIGKILL, 3), (signal.SIGTERM, 4)]
)
def test_what_was_flushed_outlives_a_kill_and_a_signal_loses_nothing(
    tmp_path, by, num_steps
):
    subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path, str(int(by))], cwd=ROOT, check=False
    )
    found = read_only_file(tmp_path)
    for table in ("function/step", "function/training_step"):
        assert len(found.column("step", table)) >= 2 * num_steps, table
    for function in ("step", "training_step"):
        for kind in ("hooks", "activations"):
            assert len(found.captures_of(kind, function)) >= num_steps
