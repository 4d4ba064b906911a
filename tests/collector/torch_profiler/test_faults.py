"""Faults around torch's profiler are told once; training and recording go on."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import torch

import memboard as mb
from memboard.collector.core import guard
from memboard.collector.torch_profiler import other_profilers, saving
from memboard.collector.torch_profiler.digest import reading
from memboard.collector.torch_profiler.session import Session
from tests.collector.torch_profiler.training import (
    Training,
    artifacts,
    missed,
    record,
    recording,
    step_names,
    steps,
    traces,
    train,
)

ROOT = Path(__file__).parents[3]
METHODS = ("_prepare_trace", "__exit__")


def own():
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])


def num_profiled(profile):
    return len(profile.events())


@pytest.fixture(autouse=True)
def _torch_is_left_alone():
    owner = torch.autograd.profiler.profile
    before = [owner.__dict__[name] for name in METHODS]
    yield
    assert [owner.__dict__[name] for name in METHODS] == before
    assert not torch.autograd._profiler_enabled()
    anybody = Training()
    assert other_profilers.turn.take(anybody)
    other_profilers.turn.give_back(anybody)


# The program's own profiler.


def test_a_cycle_under_the_programs_profiler_is_left_out(tmp_path, caplog):
    profile = own()
    with record(tmp_path) as recorder:
        steps(recorder, 9, {0: profile.start, 4: profile.stop})
    assert num_profiled(profile) > 100
    (capture,) = traces(tmp_path)
    assert capture.meta["first_step"] == 6
    assert caplog.text.count("cycle 1 is not traced: the program's own") == 1
    busy = "the program's own torch profiler is under way, and torch has only one"
    assert missed(tmp_path) == [(1, 2, 3, f"not traced: {busy}")]
    assert recording(tmp_path).source("torch_profiler")["status"] == "recorded"


def test_the_programs_profiler_takes_over_and_loses_nothing(tmp_path, caplog):
    profile = own()

    def profiled():
        with profile:
            Training().step()

    with record(tmp_path, schedule={"active": 4}) as recorder:
        steps(recorder, 7, {4: profiled})
    assert num_profiled(profile) > 100
    (capture,) = traces(tmp_path)
    assert capture.meta["problem"] == "the program's own torch profiler took over"
    assert (capture.meta["first_step"], capture.meta["num_steps"]) == (2, 2)
    (path,) = artifacts(tmp_path).values()
    assert step_names(path)[:2] == ["ProfilerStep#2", "ProfilerStep#3"]
    assert caplog.text.count("this trace ends here") == 1


def test_a_profiler_that_was_made_ready_before_is_known(tmp_path, caplog):
    profile = own()
    profile.prepare_trace()
    with record(tmp_path) as recorder:
        steps(recorder, 9, {3: profile.start_trace, 4: profile.stop_trace})
    assert num_profiled(profile) > 100
    (capture,) = traces(tmp_path)
    assert capture.meta["first_step"] == 6
    assert "cycle 1 is not traced" in caplog.text


def test_a_profiler_on_another_thread_is_waited_for(tmp_path, caplog):
    """torch cannot be stopped from there: ours is lost, and nobody is hurt."""
    ready, go = threading.Event(), threading.Event()

    def profiled():
        profile = own()
        try:
            profile.start()
        except RuntimeError as error:  # torch 2.6 lets none begin beside another
            if "Can't disable Kineto profiler" not in str(error):
                raise
            return
        finally:
            ready.set()
        go.wait(60)
        profile.stop()

    thread = threading.Thread(target=profiled)

    def begin():
        thread.start()
        ready.wait(60)

    def end():
        go.set()
        thread.join()

    with record(tmp_path) as recorder:
        steps(recorder, 9, {3: begin, 4: end})
    (capture,) = traces(tmp_path)
    assert capture.meta["first_step"] == 6
    assert "this trace ends here" in caplog.text


def test_a_profiler_that_did_not_start_is_not_waited_for(tmp_path, monkeypatch):
    def failing(*_arguments, **_keywords):
        raise RuntimeError("planted")

    def start():
        with monkeypatch.context() as patch:
            patch.setattr(torch.autograd.profiler, "_prepare_profiler", failing)
            with pytest.raises(RuntimeError, match="planted"):
                own().start()

    with record(tmp_path) as recorder:
        steps(recorder, 9, {3: start})
    assert [c.meta["first_step"] for c in traces(tmp_path)][-1] == 6


# Two recorders, threads, forks.


def test_of_two_recorders_the_second_has_none_and_says_why(tmp_path):
    with record(tmp_path / "a"):
        with record(tmp_path / "b"):
            pass
        note = recording(tmp_path / "b").source("torch_profiler")
        assert note["status"] == "absent"
        assert "another recording of this process" in note["reason"]
        assert note["remedy"]
    with record(tmp_path / "c"):
        pass
    assert recording(tmp_path / "c").source("torch_profiler")["status"] == "recorded"


def test_steps_that_end_on_another_thread_wait_for_the_first(tmp_path, caplog):
    training = Training()
    with record(tmp_path) as recorder:
        for number in range(8):
            training.step()
            if number == 3:
                thread = threading.Thread(target=recorder.step)
                thread.start()
                thread.join()
            else:
                recorder.step()
    assert "Call rec.step() on one thread" in caplog.text


def test_a_profiler_that_was_lost_holds_no_later_recording_up(tmp_path):
    lost = own()
    lost.start()
    again = own()
    again.start()
    again.stop()  # torch has one: this has ended the first, which does not know
    with record(tmp_path) as recorder:
        steps(recorder, 5)
    assert len(traces(tmp_path)) == 1
    del lost


def test_a_profiler_that_is_lost_meanwhile_holds_no_later_cycle_up(tmp_path):
    lost, again = own(), own()
    with record(tmp_path) as recorder:
        steps(recorder, 9, {0: lost.start, 1: again.start, 2: again.stop})
    assert [c.meta["first_step"] for c in traces(tmp_path)] == [6]
    del lost


def child_records(recorder, run_dir):
    """The parent's recorder is dead here, and the child may have one of its own."""
    recorder.step()
    recorder.close()
    with record(run_dir):
        pass
    note = recording(run_dir).source("torch_profiler")
    return recorder.saved_traces == () and note["status"] == "recorded"


def test_a_forked_child_leaves_the_trace_to_its_parent(tmp_path):
    def fork():
        child = os.fork()
        if child == 0:
            os._exit(0 if child_records(recorder, tmp_path / "child") else 1)
        assert os.waitpid(child, 0)[1] == 0

    with record(tmp_path / "parent") as recorder:
        steps(recorder, 5, {3: fork})
    assert list(artifacts(tmp_path / "parent")) == ["rank0.4.pt.trace.json"]


# torch raises.


@pytest.fixture(params=["prepare", "start", "stop"])
def fails(request, monkeypatch):
    """Has one of the profiler's calls fail so many times, after it has done its work."""
    before = getattr(Session, request.param)

    def fail(times):
        left = [RuntimeError("planted")] * times

        def failing(self):
            before(self)
            if left:
                raise left.pop()

        monkeypatch.setattr(Session, request.param, failing)

    return fail


def test_a_profiler_that_fails_is_switched_off_and_the_rest_goes_on(
    tmp_path, fails, caplog
):
    fails(100)
    train(tmp_path, 9)
    note = recording(tmp_path).source("torch_profiler")
    assert note["status"] == "failed"
    assert "planted" in note["reason"]
    assert "torch_profiler=False" in note["remedy"]
    assert recording(tmp_path).steps() == list(range(9))
    assert caplog.text.count("Traceback") == 1
    assert traces(tmp_path) == []
    later = "not traced: torch's profiler has failed, and is tried again later"
    assert missed(tmp_path) == [
        (1, 2, 3, "not traced: RuntimeError: planted"),
        (2, 6, 7, later),
    ]


def test_a_profiler_that_failed_once_traces_a_later_cycle(
    tmp_path, monkeypatch, fails, caplog
):
    fails(1)
    monkeypatch.setattr(guard, "FIRST_SECONDS", 0.0)
    train(tmp_path, 9)
    (trace,) = traces(tmp_path)
    assert trace.meta["problem"] == ""
    notes = recording(tmp_path).notes_of("source")
    said = [note["status"] for note in notes if note["name"] == "torch_profiler"]
    assert said == ["recorded", "failed", "recorded"]
    assert caplog.text.count("is off for now") == 1


def test_an_export_that_fails_loses_one_trace_alone(tmp_path, monkeypatch, caplog):
    before, calls = saving.write_trace, []

    def failing(*args, **kwargs):
        calls.append(args)
        if len(calls) == 1:
            raise RuntimeError("planted")
        return before(*args, **kwargs)

    monkeypatch.setattr(saving, "write_trace", failing)
    train(tmp_path, 9)
    first, second = traces(tmp_path)
    assert first.meta["problem"] == "not saved: RuntimeError: planted"
    assert first.meta["path"] == ""
    assert second.meta["problem"] == ""
    assert caplog.text.count("was not saved and nothing of it is left") == 1


def test_a_trace_whose_reading_fails_is_there_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_MODULE", "no_such_module")
    train(tmp_path, 4, with_stack=True, record_shapes=True)
    (capture,) = traces(tmp_path)
    said = (
        "no operators: ReadingError: the process that reads it ended with exit status 1"
    )
    assert capture.meta["problem"].startswith(said)
    assert "No module named no_such_module" in capture.meta["problem"]
    assert list(capture.tables) == ["memory_timeline"]


def test_a_torch_that_cannot_tell_categories_says_so(tmp_path, monkeypatch):
    import torch.profiler._memory_profiler as analysis

    monkeypatch.delattr(analysis, "MemoryProfile")
    train(tmp_path, 4, with_stack=True, record_shapes=True, memory_filename="m.csv")
    (capture,) = traces(tmp_path)
    assert "memory_timeline" not in capture.tables
    assert "no memory timeline: torch's analysis" in capture.meta["problem"]
    note = recording(tmp_path).source("torch_profiler.memory_timeline")
    assert note["status"] == "absent"
    assert "m.csv" not in artifacts(tmp_path)


def test_without_torch_there_are_no_traces_and_the_recording_says_why(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(
        "memboard.collector.torch_profiler.find_spec", lambda _name: None
    )
    recorder = train(tmp_path, 3)
    note = recording(tmp_path).source("torch_profiler")
    assert (note["status"], note["reason"]) == ("absent", "torch is not installed")
    assert recorder.saved_traces == ()
    assert recording(tmp_path).steps() == [0, 1, 2]


def test_a_source_that_does_not_open_costs_nothing_else(tmp_path, monkeypatch, caplog):
    def failing(*_args):
        raise RuntimeError("planted")

    monkeypatch.setattr("memboard.collector.torch_profiler.session.wanted_of", failing)
    train(tmp_path, 3)
    note = recording(tmp_path).source("torch_profiler")
    assert (note["status"], note["reason"]) == ("failed", "RuntimeError: planted")
    assert recording(tmp_path).steps() == [0, 1, 2]
    assert caplog.text.count("failed and is off") == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_an_activity_that_is_not_there_is_absent_and_the_others_are_recorded(tmp_path):
    train(tmp_path, 4, activities=["cuda", "cpu", "cpu"])
    (capture,) = traces(tmp_path)
    assert capture.meta["activities"] == ["cpu"]
    note = recording(tmp_path).source("torch_profiler.cuda")
    assert note["status"] == "absent"


def test_nothing_is_watched_where_it_is_off(tmp_path):
    owner = torch.autograd.profiler.profile
    before = [owner.__dict__[name] for name in METHODS]
    with mb.record(tmp_path, scalars=False):
        assert [owner.__dict__[name] for name in METHODS] == before
