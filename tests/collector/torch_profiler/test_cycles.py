"""Every cycle that the schedule asks for has its trace, or is named with its cause."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter

import pytest

import memboard as mb
from memboard.collector.torch_profiler import exporting, saving
from memboard.tb_plugin.cli import main
from tests import programs
from tests.collector.recordings import rank_files, read, wait_until
from tests.collector.torch_profiler.training import (
    Training,
    load,
    missed,
    needs_python_calls,
    record,
    step_names,
    steps,
    traces,
)
from tests.tb_plugin.client import Page

PER_EPOCH = {"wait": 1, "warmup": 1, "active": 2, "repeat": 2, "per_epoch": True}
STACKS = {"with_stack": True, "record_shapes": True, "filename": "{batch}.json.gz"}
ALL_FILES = {
    **STACKS,
    "memory_filename": "{batch}.csv",
    "stacks_filename": "{batch}.txt",
}


def first_steps(num_epochs, length):
    return [length * epoch + at for epoch in range(num_epochs) for at in (2, 6)]


def train_epochs(run_dir, num_epochs, *, seconds=0.0, length=9, **settings):
    training = Training()
    with mb.record(
        run_dir, scalars=False, schedule=PER_EPOCH, torch_profiler=settings
    ) as recorder:
        for epoch in range(num_epochs):
            recorder.epoch(epoch)
            for _ in range(length):
                training.step()
                time.sleep(seconds)
                recorder.step(samples=8)


@needs_python_calls
def test_threads_of_the_recorder_are_not_in_a_trace(tmp_path):
    """torch's tracer is on every thread that runs when it begins."""
    training = Training()
    settings = {"with_stack": True, "filename": "{batch}.json.gz"}
    with mb.record(
        tmp_path / "run",
        flush_seconds=0.05,
        schedule={"wait": 1, "warmup": 1, "active": 8, "repeat": 2},
        torch_profiler=settings,
    ) as recorder:
        for _ in range(22):
            training.step()
            time.sleep(0.05)
            recorder.step()
    own = threading.get_native_id()
    paths = list(tmp_path.rglob("*.json.gz"))
    assert len(paths) == 2
    for path in paths:
        events = load(path)["traceEvents"]
        calls = [one for one in events if one.get("cat") == "python_function"]
        assert any(one["tid"] == own for one in calls)
        ours = [one for one in calls if "memboard/collector/" in one["name"]]
        # One that waits when the tracer begins leaves it when it goes on; before, the
        # writer alone made several times the calls of training's own thread.
        by_thread = Counter(one["tid"] for one in ours)
        assert by_thread.total() < 2 * by_thread[own], by_thread


@needs_python_calls
@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({"enabled": True}, 0.0),
        (STACKS, 0.0),
        (ALL_FILES, 0.0),
        (ALL_FILES, 0.05),
    ],
)
def test_all_cycles_of_all_epochs_are_there_and_read(
    tmp_path, caplog, settings, seconds
):
    train_epochs(tmp_path, 4, seconds=seconds, **settings)
    found = traces(tmp_path)
    assert [one.meta["first_step"] for one in found] == first_steps(4, 9)
    assert {one.meta["problem"] for one in found} == {""}
    (file,) = rank_files(tmp_path)
    for one in found:
        path = file.with_suffix("") / one.meta["path"]
        assert len(step_names(path)) == 2
        assert "by self CPU" in one.meta["summary"]
        # torch records all threads: of the one that reads earlier traces, and rests
        # meanwhile, what it was in when that began.
        frames = [str(event.get("name")) for event in load(path)["traceEvents"]]
        assert sum("torch_profiler/digest/" in name for name in frames) < 10
    assert missed(tmp_path) == []
    assert "not traced" not in caplog.text


@pytest.fixture
def slow_reading(monkeypatch):
    """Traces are read more slowly than they come; how many were held at most."""
    digest_of, held = exporting.digest_of, []

    def slow(trace, file, settings, *, rank, pause):
        for _ in range(20):
            pause(0.01)
            time.sleep(0.01)
        return digest_of(trace, file, settings, rank=rank, pause=pause)

    put_capture = exporting.capture_of

    def noticed(trace, *args, **kwargs):
        if trace.profile is not None:
            exporter = trace_owner()
            held.append(len(exporter._unsaved()) + len(exporter._unread()))
        return put_capture(trace, *args, **kwargs)

    owners = []
    before = exporting.Exporter.__init__

    def made(self, *args, **kwargs):
        before(self, *args, **kwargs)
        owners.append(self)

    def trace_owner():
        return owners[-1]

    monkeypatch.setattr(exporting, "digest_of", slow)
    monkeypatch.setattr(exporting, "capture_of", noticed)
    monkeypatch.setattr(exporting.Exporter, "__init__", made)
    return held


def test_small_traces_wait_for_their_reading_without_holding_steps_up(
    tmp_path, slow_reading, caplog
):
    train_epochs(tmp_path, 4, enabled=True)
    assert len(traces(tmp_path)) == 8
    assert all("by self CPU" in one.meta["summary"] for one in traces(tmp_path))
    assert max(slow_reading) > exporting.MAX_WAITING + 1
    assert "has waited" not in caplog.text


def test_a_step_waits_where_memory_has_no_room(
    tmp_path, slow_reading, monkeypatch, caplog
):
    monkeypatch.setattr(exporting, "MAX_UNREAD_BYTES", 0)
    monkeypatch.setattr(exporting, "TOLD_SECONDS", 0.0)
    train_epochs(tmp_path, 4, enabled=True)
    assert len(traces(tmp_path)) == 8
    assert all("by self CPU" in one.meta["summary"] for one in traces(tmp_path))
    assert max(slow_reading) <= exporting.MAX_WAITING + 1
    assert caplog.text.count("has waited") == 1
    assert "Nothing is left out" in caplog.text


# What is lost all the same.


@pytest.fixture
def report(capsys):
    """What `memboard report` says, as text and as JSON."""

    def said(path):
        main(["report", str(path)])
        text = " ".join(capsys.readouterr().out.split())
        main(["report", str(path), "--json"])
        (run,) = json.loads(capsys.readouterr().out)["runs"]
        return text, run

    return said


def lost_traces(logdir):
    page = Page(logdir)
    losses = page.of_run("/overview", "exp")["losses"]
    findings = page.of_run("/findings", "exp")["findings"]
    return losses, [one for one in findings if one["key"] == "traces_missing"]


def test_cycles_beyond_the_budget_are_named_everywhere(
    tmp_path, monkeypatch, caplog, report
):
    train_epochs(tmp_path / "first" / "exp", 1, enabled=True)
    size = traces(tmp_path / "first" / "exp")[0].meta["num_bytes"]
    monkeypatch.setattr(saving, "MAX_BYTES", int(2.5 * size))
    train_epochs(tmp_path / "logs" / "exp", 3, enabled=True)
    ((loss,), (finding,)) = lost_traces(tmp_path / "logs")
    assert (loss["num_traces"], loss["num_lost_traces"]) == (6, 4)
    lost = [(one["first_step"], one["last_step"]) for one in loss["lost_traces"]]
    assert lost == [(11, 12), (15, 16), (20, 21), (24, 25)]
    assert all("that traces may take" in one["why"] for one in loss["lost_traces"])
    assert finding["sentence"].startswith(
        "Rank 0 lacks 4 of 6 profiler traces: steps 11 to 12, steps 15 to 16,"
    )
    assert caplog.text.count("was not saved and nothing of it is left") == 4
    text, _ = report(tmp_path / "logs" / "exp")
    assert "Rank 0 lacks 4 of 6 profiler traces: steps 11 to 12" in text


@pytest.fixture
def hanging(monkeypatch):
    """The disk does not answer until this is set."""
    go, write = threading.Event(), saving.write_trace

    def waiting(*args, **kwargs):
        go.wait(300)
        return write(*args, **kwargs)

    monkeypatch.setattr(saving, "write_trace", waiting)
    monkeypatch.setattr(exporting, "STALLED_SECONDS", 0.3)
    yield go
    go.set()


def test_a_disk_that_hangs_holds_training_up_once_and_costs_named_cycles(
    tmp_path, hanging, caplog
):
    with record(tmp_path / "exp") as recorder:
        steps(recorder, 20)
        hanging.set()
        wait_until(lambda: len(recorder.saved_traces) == 3)
        steps(recorder, 4)
    assert len(traces(tmp_path / "exp")) == 4
    why = "not traced: the traces before it could not be saved, as nothing moves"
    assert missed(tmp_path / "exp") == [(4, 14, 15, why), (5, 18, 19, why)]
    ((loss,), _) = lost_traces(tmp_path)
    assert (loss["num_traces"], loss["num_lost_traces"]) == (6, 2)
    assert caplog.text.count("is not traced: the traces before it") == 2


def test_what_the_end_cannot_save_is_named(tmp_path, hanging, caplog):
    train_epochs(tmp_path / "exp", 1, enabled=True)
    ((loss,), (finding,)) = lost_traces(tmp_path)
    assert (loss["num_traces"], loss["num_lost_traces"]) == (2, 2)
    assert "the recording ended" in finding["sentence"]
    assert caplog.text.count("was not saved and nothing of it is left") == 2


def test_many_lost_cycles_have_some_lines_and_one_for_the_rest(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(saving, "MAX_BYTES", 0)
    with record(tmp_path / "exp", {"wait": 0, "warmup": 0, "active": 1}) as recorder:
        steps(recorder, 30)
    ((loss,), (finding,)) = lost_traces(tmp_path)
    assert loss["num_lost_traces"] == 30
    assert "and 22 further ones" in finding["sentence"]
    assert caplog.text.count("is not traced") == 20
    assert "10 further cycles have no trace: 21 to 30" in caplog.text


SCRIPT = """
import sys, time
from memboard.collector.torch_profiler import saving
saving.write_trace = lambda *_, **__: time.sleep(600)
from tests.collector.torch_profiler.training import record, steps
with record(sys.argv[1]) as recorder:
    steps(recorder, 9)
    while True:
        recorder.flush(1.0)
        time.sleep(0.1)
"""


def test_of_a_killed_process_the_recording_names_what_was_not_saved(
    tmp_path, report, monkeypatch
):
    program = programs.Program(SCRIPT, tmp_path / "exp")

    def announced():
        files = rank_files(tmp_path / "exp")
        found = [one for path in files for one in read(path, last=False).captures]
        return sum(one.context == "ended" for one in found) == 2

    try:
        wait_until(announced)
    finally:
        program.kill()
        program.communicate()
    assert lost_traces(tmp_path) == ([], []), "it may be saving them still"
    monkeypatch.setattr("memboard.tb_plugin.index.run.LIVE_SECONDS", -1.0)
    ((loss,), (finding,)) = lost_traces(tmp_path)
    assert loss["is_stopped"]
    assert (loss["num_traces"], loss["num_lost_traces"]) == (2, 2)
    broke_off = "(the recording breaks off before it was saved)"
    assert finding["sentence"] == (
        f"Rank 0 lacks 2 profiler traces: steps 2 to 3, steps 6 to 7 {broke_off}."
    )
    text, run = report(tmp_path / "exp")
    assert "Rank 0 lacks 2 profiler traces" in text
    assert run["overview"]["losses"][0]["num_lost_traces"] == 2
