"""A window leaves nothing behind on the model, in torch, or alive."""

from __future__ import annotations

import copy
import gc
import io
import os
import threading
import weakref

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tests.collector.modules import models, reduction


class BoomError(Exception):
    """What the tests raise inside a window."""


class Keeping(nn.Module):
    """Remembers its activations weakly."""

    def __init__(self):
        super().__init__()
        self.layers = models.mlp()
        self.made = []

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            self.made.append(weakref.ref(x))
        return x


class Counting(TorchDispatchMode):
    """Counts operators."""

    def __init__(self):
        super().__init__()
        self.num = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        # An older torch detaches a result once more for each mode.
        self.num += func is not torch.ops.aten.detach.default
        return func(*args, **(kwargs or {}))


@pytest.mark.usefixtures("no_garbage")
def test_forwards_without_backward_leak_nothing(track):
    """In windows of their own, and all in one."""
    model = Keeping()
    tracking = track(model)

    def forward():
        model(torch.ones(8, 32))
        assert [ref() for ref in model.made] == [None] * len(model.made)

    for _ in range(12):
        tracking.step(forward)
    call = tracking.begin()
    session = weakref.ref(tracking.kind._session)
    for _ in range(12):
        forward()
    log = reduction.Log(tracking.end(call))
    log.check()
    assert "activation" not in log.balances[-1]["cpu"]
    assert len(model.made) == 2 * 48
    gc.collect()
    assert session() is None


def test_a_graph_that_outlives_the_window_can_be_used_and_is_freed(track):
    model = models.mlp()
    tracking = track(model)
    call = tracking.begin()
    loss = model(torch.ones(4, 32)).sum()
    capture = tracking.end(call)
    num_bounds = len(capture.tables["boundaries"]["event"])
    loss.backward()
    assert model[0].weight.grad is not None
    assert len(capture.tables["boundaries"]["event"]) == num_bounds


def test_a_tracked_model_can_be_copied_and_saved(track):
    model, optimizer = models.started(models.mlp, models.plain_step, torch.ones(4, 32))
    hooks = models.hooks_of(model)
    track(model, optimizer).step(models.plain_step, model, optimizer, torch.ones(4, 32))
    assert models.hooks_of(model) == hooks
    assert all(value is None for (_, name), value in hooks.items() if "grad" in name)
    copied = copy.deepcopy(model)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=False)
    for other in (copied, loaded):
        models.plain_step(other, torch.optim.SGD(other.parameters()), torch.ones(4, 32))


def test_a_model_can_be_copied_and_saved_inside_a_window(track):
    model = models.mlp()
    tracking = track(model)
    call = tracking.begin()
    copied = copy.deepcopy(model)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    copied(torch.ones(4, 32)).sum().backward()
    model(torch.ones(4, 32)).sum().backward()
    log = reduction.Log(tracking.end(call))
    log.check()
    assert {fqn for fqn, *_ in log.rows()} == set(log.modules["fqn"])
    assert b"collector" not in buffer.getvalue()  # it opens where we are not installed
    buffer.seek(0)
    torch.load(buffer, weights_only=False)(torch.ones(4, 32))
    copied(torch.ones(4, 32))
    copy.deepcopy(copied)


@pytest.mark.parametrize("where", ["forward", "backward", "optimizer"])
def test_an_exception_leaves_a_part_and_a_clean_next_window(track, where):
    x = torch.ones(4, 32)
    model, optimizer = models.started(models.mlp, models.plain_step, x)
    tracking = track(model, optimizer)
    whole = reduction.Log(
        tracking.step(models.plain_step, model, optimizer, x)
    ).peak_snapshot()

    def boom(*_):
        raise BoomError

    def failing():
        if where == "forward":
            model[2].register_forward_pre_hook(boom)
        elif where == "backward":
            model[2].register_full_backward_pre_hook(boom)
        else:
            optimizer.register_step_post_hook(boom)
        models.plain_step(model, optimizer, x)

    hooks = models.hooks_of(model)
    with pytest.raises(BoomError):
        tracking.step(failing)
    capture = tracking.sink.captures[-1]
    assert capture.meta["incomplete"]
    assert capture.meta["reasons"] == ["the call ended with BoomError"]
    log = reduction.Log(capture)
    log.check()
    assert ("Sequential.1", "after_post_forward") in {(f, s) for f, s, *_ in log.rows()}
    model[2]._forward_pre_hooks.clear()
    model[2]._backward_pre_hooks.clear()
    optimizer._optimizer_step_post_hooks.clear()
    optimizer.zero_grad()
    assert models.hooks_of(model) == hooks
    again = tracking.step(models.plain_step, model, optimizer, x)
    assert not again.meta["incomplete"]
    assert reduction.Log(again).peak_snapshot() == whole


def test_an_exception_that_the_user_catches_leaves_the_stack_in_order(track):
    x = torch.ones(4, 32)
    model = models.mlp()
    failing = [True]

    def boom(*_):
        if failing:
            failing.clear()
            raise BoomError

    def step():
        try:
            model(x)
        except BoomError:
            model(x).sum().backward()

    model[2].register_forward_pre_hook(boom)
    log = reduction.Log(track(model).step(step))
    log.check()
    rows = [(f, s, c) for f, s, c, _ in log.rows()]
    assert ("Sequential", "after_post_forward", 0) in rows
    assert ("Sequential", "after_post_forward", 1) in rows
    assert rows[-1] == ("Sequential", "after_post_backward", 1)


def test_our_own_failure_never_reaches_training(track, monkeypatch):
    x = torch.ones(4, 32)
    model, optimizer = models.started(models.mlp, models.plain_step, x)
    hooks = models.hooks_of(model)
    tracking = track(model, optimizer)
    call = tracking.begin()
    ledger = tracking.kind._session.ledger
    monkeypatch.setattr(type(ledger), "_add", _broken)
    models.plain_step(model, optimizer, x)
    with pytest.raises(ValueError, match="broken"):
        tracking.end(call)  # the recorder switches the kind off, with one warning
    capture = tracking.sink.captures[-1]
    assert capture.meta["incomplete"]
    assert capture.meta["reasons"] == ["tracking failed: ValueError: broken"]
    assert models.hooks_of(model) == hooks
    models.plain_step(model, optimizer, x)


@pytest.mark.parametrize(
    "name",
    [
        "before_forward",
        "after_forward",
        "output_graded",
        "inputs_graded",
        "begin_optimizer",
    ],
)
def test_nor_does_a_failing_hook(track, monkeypatch, name):
    x = torch.ones(4, 32)
    model, optimizer = models.started(models.mlp, models.plain_step, x)
    tracking = track(model, optimizer)
    call = tracking.begin()
    monkeypatch.setattr(type(tracking.kind._session.stack), name, _broken)
    models.plain_step(model, optimizer, x)
    with pytest.raises(ValueError, match="broken"):
        tracking.end(call)


def _broken(*_arguments, **_keywords):
    raise ValueError("broken")


def test_a_failing_start_takes_everything_off_again(track, monkeypatch):
    from memboard.collector.modules.parameters import ParameterWatch

    model = models.mlp()
    hooks = models.hooks_of(model)
    tracking = track(model)
    monkeypatch.setattr(ParameterWatch, "install", _broken)
    with pytest.raises(ValueError, match="broken"):
        tracking.begin()
    assert models.hooks_of(model) == hooks


def test_modes_may_be_entered_and_left_in_any_order(track):
    model = models.mlp()
    x = torch.ones(4, 32)
    tracking = track(model)
    outer, inner = Counting(), Counting()
    outer.__enter__()
    call = tracking.begin()
    outer.num = 0
    inner.__enter__()
    model(x)
    capture = tracking.end(call)
    assert torch._C._len_torch_dispatch_stack() == 2
    seen = inner.num
    assert seen == outer.num > 0
    model(x)
    assert inner.num == outer.num == 2 * seen
    inner.__exit__(None, None, None)
    outer.__exit__(None, None, None)
    assert not torch.utils._python_dispatch._is_in_torch_dispatch_mode
    assert len(capture.tables["events"]["time_us"]) > 5


def test_a_window_that_ends_on_another_thread_records_and_goes_idle(track):
    model = models.mlp()
    tracking = track(model)
    call = tracking.begin()
    model(torch.ones(4, 32)).sum().backward()
    thread = threading.Thread(target=tracking.end, args=(call,))
    thread.start()
    thread.join()
    (capture,) = tracking.sink.captures
    reduction.Log(capture).check()
    model(torch.ones(4, 32))
    # It can only be taken off where it was entered.
    from memboard.collector.modules.dispatch import remove

    mode = torch._C._get_dispatch_stack_at(0)
    assert mode.ledger is None
    assert remove(mode)


def test_other_threads_forwards_are_not_the_steps(track):
    model = models.mlp()
    tracking = track(model)
    call = tracking.begin()
    thread = threading.Thread(target=model, args=(torch.ones(4, 32),))
    thread.start()
    thread.join()
    capture = tracking.end(call)
    assert len(capture.tables["boundaries"]["event"]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_notes_nothing(track):
    model = models.mlp()
    tracking = track(model)
    call = tracking.begin()
    log = tracking.kind._session.log
    num = log.num_events
    pid = os.fork()
    if pid == 0:
        torch.ones(3) + 1
        model(torch.ones(1, 32))
        os._exit(0 if log.num_events == num else 1)
    assert os.waitpid(pid, 0)[1] == 0
    model(torch.ones(1, 32))
    assert len(tracking.end(call).tables["events"]["time_us"]) > num


def test_a_resize_that_somebody_else_wraps_meanwhile_stays_theirs(track):
    held = torch.UntypedStorage.resize_
    model = models.mlp()
    tracking = track(model)
    call = tracking.begin()
    ours = torch.UntypedStorage.resize_
    assert ours is not held

    def theirs(storage, size):
        return ours(storage, size)

    torch.UntypedStorage.resize_ = theirs
    tracking.end(call)
    assert torch.UntypedStorage.resize_ is theirs
    torch.ones(3).untyped_storage().resize_(0)
    call = tracking.begin()
    x = torch.ones(100)
    x.untyped_storage().resize_(0)
    capture = tracking.end(call)
    assert capture.tables["events"]["delta_bytes"].tolist()[-2:] == [400, -400]
    torch.UntypedStorage.resize_ = ours
    call = tracking.begin()
    tracking.end(call)
    assert torch.UntypedStorage.resize_ is held


def test_torch_func_goes_on_where_no_hook_can_be_set(track):
    model = nn.Linear(4, 1)
    parameters = dict(model.named_parameters())

    def loss(parameters, x):
        return torch.func.functional_call(model, parameters, (x,)).sum()

    expected = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(
        parameters, torch.ones(3, 4)
    )
    call = (tracking := track(model)).begin()
    found = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(
        parameters, torch.ones(3, 4)
    )
    reduction.Log(tracking.end(call)).check()
    assert torch.equal(found["weight"], expected["weight"])


def test_higher_order_operators_run(track):
    def fork(x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    expected = fork(torch.ones(3))
    model = nn.Linear(1, 1)
    call = (tracking := track(model)).begin()
    found = fork(torch.ones(3))
    tracking.end(call)
    assert torch.equal(found, expected)
