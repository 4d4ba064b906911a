"""Programs do as they like while they are recorded; nothing of a recording is left after."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import threading
import weakref

import pytest
import torch
from torch import nn

import memboard as mb
from memboard.collector.hooks import torch_calls
from memboard.collector.steps.spans.span import MAX_DEPTH, by_thread, under_way
from tests.collector.recordings import read_only_file, wait_until
from tests.collector.steps.test_span_log import ALWAYS, named, record


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_model_is_copied_sent_and_scripted_as_if_it_were_not_recorded(tmp_path):
    model = nn.Sequential(nn.Linear(4, 2), nn.ReLU())
    x = torch.ones(3, 4)
    with record(tmp_path / "run", model=model, schedule=ALWAYS) as rec:
        twin = copy.deepcopy(model)
        sent = pickle.loads(pickle.dumps(model))
        expected = model(x)
        for other in (twin, sent, torch.jit.script(model)):
            assert torch.equal(other(x), expected)
        model(x)
        rec.step()
        assert len(model._forward_hooks) == len(model._forward_pre_hooks) == 1
    assert len(named(read_only_file(tmp_path / "run"), "forward")) == 2
    assert not model._forward_hooks
    assert not model._forward_pre_hooks
    assert torch.equal(torch.jit.script(twin)(x), expected)


def test_functions_of_torch_are_pickled_while_they_are_wrapped(tmp_path):
    functions = (torch.save, torch.autograd.backward, torch.optim.Optimizer.zero_grad)
    with record(tmp_path / "run"):
        wrapped = (torch.save, torch.autograd.backward)
        assert wrapped != functions[:2]
        pickled = pickle.dumps((*wrapped, torch.optim.Optimizer.zero_grad))
    assert pickle.loads(pickled) == functions


def test_nothing_holds_a_recorder_that_has_closed(tmp_path):
    def train():
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters())
        rec = record(tmp_path / "run", model=model)
        with pytest.raises(ZeroDivisionError):
            optimizer.step(lambda: 1 / 0)
        rec.span("never stopped").start()
        rec.step()
        rec.close()
        return weakref.ref(model), weakref.ref(rec)

    before = set(threading.enumerate())
    held = train()
    for thread in set(threading.enumerate()) - before:
        thread.join(60)  # closing does not wait for one that has nothing to write
    gc.collect()
    assert [reference() for reference in held] == [None, None]
    assert under_way() == ()


def test_spans_that_are_never_stopped_are_bounded(tmp_path):
    with record(tmp_path / "run") as rec:
        first = rec.span("first").start()
        for _ in range(3 * MAX_DEPTH):
            rec.span("lost").start()
        assert len(under_way()) == MAX_DEPTH
        first.stop()


class Odd:
    def __str__(self):
        raise ValueError("no text")


def test_odd_values_cost_nothing_but_themselves(tmp_path, caplog):
    with record(tmp_path / "run", schedule=ALWAYS) as rec:
        rec.step()
        rec.log({"huge": 10**400})
        with rec.span("list", args=[1]), rec.span(Odd()), mb.span("after"):
            rec.instant("digits", n=10**5000)
            rec.instant("key", n={Odd(): 1})
        rec.step()
    found = read_only_file(tmp_path / "run")
    assert [len(named(found, name)) for name in ("list", "<Odd>", "after")] == [1] * 3
    assert "spans could not be written" not in caplog.text


def test_a_recording_that_cannot_begin_leaves_nothing(tmp_path, monkeypatch):
    def fail():
        raise RuntimeError("not here")

    before, listeners = set(threading.enumerate()), dict(torch_calls._listeners)
    monkeypatch.setattr(torch_calls, "install", fail)
    rec = mb.record(tmp_path / "run")
    assert rec.path is None
    wait_until(lambda: before >= set(threading.enumerate()))
    assert torch_calls._listeners == listeners
    assert mb.active() is None


def test_the_file_is_ended_whatever_fails_at_the_close(tmp_path, monkeypatch):
    rec = record(tmp_path / "run")

    def fail():
        raise RuntimeError("odd model")

    monkeypatch.setattr(rec._session.timing.automatic, "_leave_eval", fail)
    rec.close()
    monkeypatch.undo()
    torch_calls.leave(rec._session.timing.automatic)
    assert mb.active() is None
    assert read_only_file(tmp_path / "run").close.how == "closed"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_may_close_though_another_thread_held_the_lock(tmp_path):
    before = dict(by_thread)  # other tests may have left theirs
    rec = record(tmp_path / "run")
    held, leave = threading.Event(), threading.Event()

    def hold():
        with rec._session.lock:
            held.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        rec.close()
        os._exit(0)
    status = 1
    for _ in range(30_000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        leave.wait(0.01)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
    leave.set()
    thread.join()
    rec.close()
    assert done
    assert status == 0
    assert by_thread == before
