"""Saved tensors: nothing kept alive, and good manners on torch's stack."""

from __future__ import annotations

import asyncio
import threading
import weakref

import pytest
import torch
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks

from memboard.collector.config.values import unchanged
from memboard.collector.core.source import Unavailable
from memboard.collector.functions import saved_tensors
from memboard.collector.hooks import saved_tensors as saved_hooks
from tests.collector.functions.models import batch, fingerprint, mlp
from tests.collector.functions.sinks import Counting, call

c = torch._C._autograd
PLAIN = (c._saved_tensors_hooks_disable, c._saved_tensors_hooks_enable)


@pytest.fixture(autouse=True)
def nothing_stays_on_torch(countable_activations):
    yield
    assert saved_hooks.top() is None
    assert (c._saved_tensors_hooks_disable, c._saved_tensors_hooks_enable) == PLAIN
    assert saved_hooks.places() == []


# Training is as it would have been.


def test_gradients_are_the_same_and_the_model_is_untouched():
    x = batch()
    expected = mlp()
    expected(x).exp().sum().backward()
    model = mlp()
    before = fingerprint(model)
    Counting(model)(lambda: model(x).exp().sum().backward())
    assert fingerprint(model) == before
    for mine, theirs in zip(model.parameters(), expected.parameters(), strict=True):
        assert torch.equal(mine.grad, theirs.grad)


def test_second_derivatives_work():
    def work():
        x = torch.tensor([2.0], requires_grad=True)
        (first,) = torch.autograd.grad((x**3).exp().log().sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        assert second.item() == pytest.approx(12.0)

    Counting()(work)


def test_a_backward_after_the_call_works():
    model = mlp()
    kept = []
    counting = Counting(model)
    counting(lambda: kept.append(model(batch()).sum()))
    kept[0].backward()
    assert model[0].weight.grad is not None


@pytest.mark.usefixtures("no_garbage")
def test_no_graph_is_kept_alive():
    """Also without a collection of cycles, and without a backward."""
    model = mlp()

    def work():
        alive = []
        for _ in range(12):
            output = model(batch()).exp()  # saved as its own node's output
            alive.append(weakref.ref(output.untyped_storage()))
        del output
        assert not any(reference() is not None for reference in alive)

    Counting(model)(work)


def test_what_is_kept_is_no_operator_in_the_trainings_own_profile():
    def names():
        model, x = mlp(), batch()
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU]
        ) as p:
            model(x).exp().sum().backward()
        return [event.name for event in p.events()]

    kept = []
    expected = names()
    Counting()(lambda: kept.append(names()))
    assert kept == [expected]


# Good manners.


def test_the_trainings_own_hooks_inside_are_left_to_it():
    model = mlp()

    def work():
        with save_on_cpu():
            model(batch()).sum().backward()
        model(batch()).sum().backward()

    assert Counting(model)(work).meta["bytes"] == 1536


def test_hooks_around_the_call_are_the_trainings_and_stay_the_topmost():
    packed = []
    counting = Counting(mlp())
    with saved_tensors_hooks(lambda x: packed.append(1) or x.detach(), lambda x: x):
        with pytest.raises(Unavailable, match="hooks of its own around"):
            counting.kind.begin(call())
        torch.ones(1, requires_grad=True).exp()
    assert packed == [1]
    counting.kind.release()


def test_forbidden_hooks_are_said():
    counting = Counting()
    with (
        torch.autograd.graph.disable_saved_tensors_hooks("not here"),
        pytest.raises(Unavailable, match="forbidden here: not here"),
    ):
        counting.kind.begin(call())
    counting.kind.release()


def test_ours_come_off_from_below_the_trainings():
    """The call ends inside the training's block, as a step may."""
    packed = []
    theirs = saved_tensors_hooks(lambda x: packed.append(1) or x.detach(), lambda x: x)
    Counting()(theirs.__enter__)
    torch.ones(1, requires_grad=True).exp()
    assert packed == [1]
    theirs.__exit__()


def test_transforms_of_torch_func_run_as_without_us():
    def loss(x):
        return (x**2).sum()

    def work():
        x = torch.ones(3, requires_grad=True)
        (x * x).sum()
        assert torch.func.grad(loss)(torch.ones(3)).tolist() == [2, 2, 2]
        assert torch.func.hessian(loss)(torch.ones(2)).tolist() == [[2, 0], [0, 2]]
        (x * x * x).sum()  # counted again

    capture = Counting()(work)
    # x, and x * x: the one inside the transform is not seen.
    assert capture.meta["bytes"] == 24
    with pytest.raises(ValueError, match="mine"):
        Counting()(lambda: torch.func.grad(lambda x: _fail())(torch.ones(3)))


def _fail():
    raise ValueError("mine")


def test_nested_calls_count_what_is_theirs():
    counting = Counting()
    x = torch.randn(10, requires_grad=True)
    y = torch.randn(20, requires_grad=True)
    with counting.call("outer"):
        (x * x).sum()
        with counting.call("inner"):
            (y * y).sum()
            (x * x).sum()
    counting.kind.release()
    assert counting.saved == [("inner", 120), ("outer", 120)]
    assert sum(counting.sink.captures[0].tables["saved"]["bytes"]) == 120
    # The Timeline's row is the outermost call's.
    assert [(t, int(r["saved_bytes"])) for t, _, r in counting.sink.rows] == [
        ("activations", 120)
    ]


def test_two_threads_count_each_their_own():
    counting = Counting()
    sizes = {"a": 10, "b": 1000}
    barrier = threading.Barrier(2)

    def work(name):
        with counting.call(name):
            barrier.wait(60)
            x = torch.randn(sizes[name], requires_grad=True)
            (x * x).sum()
            barrier.wait(60)

    threads = [threading.Thread(target=work, args=(name,)) for name in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counting.kind.release()
    assert sorted(counting.saved) == [("a", 40), ("b", 4000)]


def test_tasks_that_overlap_end_in_any_order():
    counting = Counting()

    async def work(name, first, second):
        with counting.call(name):
            await asyncio.sleep(first)
            x = torch.randn(10, requires_grad=True)
            (x * x).sum()
            await asyncio.sleep(second)

    async def main():
        await asyncio.gather(work("a", 0, 0.02), work("b", 0.01, 0.03))

    asyncio.run(main())
    counting.kind.release()
    # What happens counts for all under way.
    assert counting.saved == [("a", 80), ("b", 80)]


def test_between_two_whole_steps_they_stay_and_count_nothing():
    counting = Counting()
    x = torch.randn(10, requires_grad=True)
    with counting.call("step", 2):
        (x * x).sum()
    ours = saved_hooks.top()
    assert ours is not None
    torch.ones(5, requires_grad=True).exp().sum().backward()
    with counting.call("step", 3):
        assert saved_hooks.top() == ours
        (x * x).sum()
    counting.kind.release()
    assert saved_hooks.top() is None
    assert counting.saved == [("step", 40), ("step", 40)]
    assert [c.meta["npp_compat_bytes"] for c in counting.sink.captures] == [80, 80]


def test_what_the_training_puts_above_them_between_two_steps_is_the_trainings():
    counting = Counting()
    with counting.call("step", 2):
        pass
    with (
        saved_tensors_hooks(lambda x: x.detach(), lambda x: x),
        pytest.raises(Unavailable, match="hooks of its own around"),
    ):
        counting.kind.begin(call("step", 3))
    assert saved_hooks.top() is None
    counting.kind.release()


def test_a_call_that_ends_on_another_thread_is_counted_and_leaves_later():
    counting = Counting()
    this = call()
    counting.kind.begin(this)
    x = torch.randn(10, requires_grad=True)
    (x * x).sum()
    thread = threading.Thread(target=counting.kind.end, args=(this, None))
    thread.start()
    thread.join()
    assert counting.saved == [("f", 40)]
    assert saved_hooks.top() is not None  # this thread's stack is its own
    (x * x).sum()
    counting(lambda: None)


def test_of_a_thread_that_has_ended_in_a_step_nothing_stays_on_torch():
    counting = Counting()

    def work():
        with counting.call("step"):  # after it the hooks stay: the next begins at once
            pass

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert saved_hooks.places()
    counting.kind.release()
    assert saved_hooks.places() == []
    assert (c._saved_tensors_hooks_disable, c._saved_tensors_hooks_enable) == PLAIN


# Functions of the user's own.


def test_own_functions_are_called_around_the_counting():
    calls = []

    def pack(tensor):
        calls.append("pack")
        return tensor.detach().numpy()

    def unpack(array):
        calls.append("unpack")
        return torch.from_numpy(array)

    x = torch.full((3,), 2.0, requires_grad=True)
    capture = Counting(functions=(pack, unpack))(lambda: (x * x).sum().backward())
    assert capture.meta["bytes"] == 12
    assert calls.count("pack") == calls.count("unpack") == 2
    assert x.grad.tolist() == [4, 4, 4]


@pytest.mark.usefixtures("no_garbage")
def test_functions_that_change_nothing_make_no_cycle():
    alive = []

    def work():
        y = torch.ones(3, requires_grad=True).exp()
        alive.append(weakref.ref(y.untyped_storage()))

    functions = ("memboard.collector.config.values.unchanged", unchanged)
    Counting(functions=functions)(work)
    assert alive[0]() is None


def test_a_pack_function_that_raises_is_off_and_training_goes_on(caplog):
    def pack(tensor):
        raise RuntimeError("broken")

    counting = Counting(functions=(pack, unchanged))
    x = torch.full((3,), 2.0, requires_grad=True)
    capture = counting(lambda: (x * x * x).sum().backward())
    assert x.grad.tolist() == [12, 12, 12]
    assert capture.meta["bytes"] == 24
    assert counting.sink.status("activations.functions") == "failed"
    assert caplog.text.count("failed and is off from now on") == 1


def test_counting_that_fails_is_told_at_the_end(monkeypatch):
    counting = Counting()
    this = call()
    counting.kind.begin(this)

    def broken(storage):
        raise RuntimeError("ours")

    monkeypatch.setattr(saved_tensors, "_reference", broken)
    x = torch.full((3,), 2.0, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [4, 4, 4]
    with pytest.raises(RuntimeError, match="ours"):
        counting.kind.end(this, None)
    counting.kind.close()
