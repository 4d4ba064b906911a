"""Saved tensors: known numbers, nothing kept alive, and good manners on torch's stack."""

from __future__ import annotations

import asyncio
import threading
import weakref

import pytest
import torch
from torch import nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from collector.config.values import unchanged
from collector.core.source import Unavailable
from collector.functions import saved_tensors
from collector.hooks import saved_tensors as saved_hooks
from tests.collector.functions.counting import Counting, rows
from tests.collector.functions.models import batch, fingerprint, mlp
from tests.collector.functions.sinks import call

c = torch._C._autograd
PLAIN = (c._saved_tensors_hooks_disable, c._saved_tensors_hooks_enable)


@pytest.fixture(autouse=True)
def nothing_stays_on_torch(countable_activations):
    yield
    assert saved_hooks.top() is None
    assert (c._saved_tensors_hooks_disable, c._saved_tensors_hooks_enable) == PLAIN
    assert saved_hooks.places() == []


# Numbers.


def test_the_mlp_saves_1536_bytes_and_memprofiler_says_4608():
    model = mlp()
    x = batch()
    capture = Counting(model)(lambda: model(x).sum())
    assert capture.meta["bytes"] == 1536
    assert capture.meta["npp_compat_bytes"] == 4608
    assert sum(capture.tables["saved"]["tensor_bytes"].tolist()) == 2560
    found = rows(capture, "num_tensors", "bytes", "tensor_bytes", "npp_compat_bytes")
    assert found == {
        ("0", "float32"): (1, 512, 512, 512),
        ("1", "float32"): (1, 1024, 1024, 1024),
        ("2", "float32"): (1, 0, 1024, 3072),
    }
    assert capture.tables["modules"] == {
        "path": ("0", "1", "2"),
        "type": ("Linear", "ReLU", "Linear"),
    }


def test_without_a_model_all_is_outside():
    model = mlp()
    capture = Counting()(lambda: model(batch()).sum())
    ((key, (num_bytes,)),) = rows(capture, "bytes").items()
    assert key == ("outside", "float32")
    assert num_bytes == 1536  # a view of a parameter is told from its base


def test_the_same_storage_counts_once_for_whoever_saved_it_first():
    class Twice(nn.Module):
        def forward(self, x):
            return x.exp() * x.sin()  # x itself, and both results

    model = nn.Sequential(Twice(), Twice())
    x = torch.randn(1000, requires_grad=True)
    capture = Counting(model)(lambda: model(x).sum())
    # First: x (a leaf, no parameter), exp, sin. Second: its input, exp, sin.
    assert rows(capture, "bytes") == {
        ("0", "float32"): (3 * 4000,),
        ("1", "float32"): (3 * 4000,),
    }


def test_dtypes_and_views():
    x = torch.randn(64, 64, requires_grad=True)
    half = x.detach().to(torch.bfloat16).requires_grad_()

    def work():
        (x[:1] * x[1:2]).sum()  # two views of one storage
        (half * half).sum()

    capture = Counting()(work)
    assert rows(capture, "bytes", "num_tensors") == {
        ("outside", "float32"): (64 * 64 * 4, 2),
        ("outside", "bfloat16"): (64 * 64 * 2, 2),
    }


def test_nothing_is_saved_without_gradients():
    model = mlp()

    def work():
        with torch.no_grad():
            model(batch())

    capture = Counting(model)(work)
    assert capture.meta["bytes"] == capture.meta["npp_compat_bytes"] == 0


def test_a_recomputed_block_saves_its_input_alone():
    model = mlp()
    x = batch().requires_grad_()
    plain = Counting(model)(lambda: model(x).sum().backward())
    spared = Counting(model)(
        lambda: checkpoint(model, x, use_reentrant=False).sum().backward()
    )
    assert plain.meta["bytes"] == 1536
    assert spared.meta["bytes"] == 512


def test_storages_that_were_freed_are_not_taken_for_others():
    def work():
        for _ in range(50):
            x = torch.randn(1000, requires_grad=True)
            (x * x).sum()  # its graph goes at once, and its storage's place is reused

    capture = Counting()(work)
    assert capture.meta["bytes"] == 50 * 4000


def test_gathered_parameters_are_no_activations(fsdp_on_cpu, gloo):
    from torch.distributed.fsdp import fully_shard

    model = mlp()
    for layer in (model[0], model[2]):
        fully_shard(layer)
    fully_shard(model)
    x = batch()
    capture = Counting(model)(lambda: model(x).sum().backward())
    assert capture.meta["bytes"] == 1536


def test_sharded_tensors_count_what_is_local(gloo):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    model = mlp()
    mesh = init_device_mesh("cpu", (1,))
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    x = batch()
    capture = Counting(model)(lambda: model(x).sum().backward())
    assert capture.meta["bytes"] == 1536


@pytest.fixture
def gloo():
    import torch.distributed as dist

    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_a_sparse_tensor_counts_for_what_it_stores():
    sparse = torch.eye(8).to_sparse()
    x = torch.ones(8, 2, requires_grad=True)

    def work():
        torch.sparse.mm(sparse, x).sum().backward()
        (x * x).sum()

    capture = Counting()(work)
    assert x.grad.tolist() == [[1.0, 1.0]] * 8
    # Two indices and a value for each element; then x.
    assert capture.meta["bytes"] == 8 * (2 * 8 + 4) + 8 * 2 * 4


def test_a_parameter_that_comes_later_is_one_too():
    """It takes the place of another, or was never the model's."""
    model = mlp()
    x = batch()
    counting = Counting(model)
    this = call()
    counting.kind.begin(this)
    model(x).sum()
    model[0].weight = nn.Parameter(torch.randn(64, 32))
    own = nn.Parameter(torch.randn(4, 32))
    (x * own).sum()
    for _ in range(2):
        torch.nn.functional.linear(x, model[0].weight.detach(), own.new_ones(64))
        model(x).sum()
    counting.kind.end(this, None)
    counting.kind.release()
    # The batch once; what is between the layers anew in each forward.
    assert counting.sink.captures[0].meta["bytes"] == 512 + 3 * 1024


def test_many_saved_tensors_are_added_up_meanwhile(monkeypatch):
    monkeypatch.setattr(saved_tensors, "_FULL", 5 * 8)
    model = mlp()
    x = batch()
    seen = []

    def work():
        for _ in range(20):
            model(x).sum().backward()
            seen.append(len(counting.kind._own.saved.entries))

    counting = Counting(model)
    capture = counting(work)
    assert max(seen) < 5 * 8
    assert capture.meta["bytes"] == 512 + 20 * 1024
    assert capture.meta["npp_compat_bytes"] == 20 * 4608


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
    counting = Counting(model)
    alive = []

    def work():
        for _ in range(12):
            output = model(batch()).exp()  # saved as its own node's output
            alive.append(weakref.ref(output.untyped_storage()))

    this = call()
    counting.kind.begin(this)
    work()
    assert not any(reference() is not None for reference in alive)
    counting.kind.end(this, None)
    counting.kind.release()


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
    counting = Counting()
    this = call()
    counting.kind.begin(this)
    packed = []
    theirs = saved_tensors_hooks(lambda x: packed.append(1) or x.detach(), lambda x: x)
    theirs.__enter__()
    counting.kind.end(this, None)
    counting.kind.release()
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
    outer, inner = call("outer"), call("inner")
    x = torch.randn(10, requires_grad=True)
    y = torch.randn(20, requires_grad=True)
    counting.kind.begin(outer)
    (x * x).sum()
    counting.kind.begin(inner)
    (y * y).sum()
    (x * x).sum()
    counting.kind.end(inner, None)
    counting.kind.end(outer, None)
    counting.kind.release()
    by_name = {c.function: c.meta["bytes"] for c in counting.sink.captures}
    assert by_name == {"inner": 120, "outer": 120}
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
        this = call(name)
        counting.kind.begin(this)
        barrier.wait(60)
        x = torch.randn(sizes[name], requires_grad=True)
        (x * x).sum()
        barrier.wait(60)
        counting.kind.end(this, None)

    threads = [threading.Thread(target=work, args=(name,)) for name in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counting.kind.release()
    by_name = {c.function: c.meta["bytes"] for c in counting.sink.captures}
    assert by_name == {"a": 40, "b": 4000}


def test_tasks_that_overlap_end_in_any_order():
    counting = Counting()

    async def work(name, first, second):
        this = call(name)
        counting.kind.begin(this)
        await asyncio.sleep(first)
        x = torch.randn(10, requires_grad=True)
        (x * x).sum()
        await asyncio.sleep(second)
        counting.kind.end(this, None)

    async def main():
        await asyncio.gather(work("a", 0, 0.02), work("b", 0.01, 0.03))

    asyncio.run(main())
    counting.kind.release()
    by_name = {c.function: c.meta["bytes"] for c in counting.sink.captures}
    assert by_name == {"a": 80, "b": 80}  # what happens counts for all under way


def test_between_two_whole_steps_they_stay_and_count_nothing():
    counting = Counting()
    x = torch.randn(10, requires_grad=True)
    first, second = call("step", iteration=2), call("step", iteration=3)
    counting.kind.begin(first)
    (x * x).sum()
    counting.kind.end(first, None)
    ours = saved_hooks.top()
    assert ours is not None
    torch.ones(5, requires_grad=True).exp().sum().backward()
    counting.kind.begin(second)
    assert saved_hooks.top() == ours
    (x * x).sum()
    counting.kind.end(second, None)
    counting.kind.release()
    assert saved_hooks.top() is None
    assert [c.meta["bytes"] for c in counting.sink.captures] == [40, 40]
    assert [c.meta["npp_compat_bytes"] for c in counting.sink.captures] == [80, 80]


def test_what_the_training_puts_above_them_between_two_steps_is_the_trainings():
    counting = Counting()
    first, second = call("step", iteration=2), call("step", iteration=3)
    counting.kind.begin(first)
    counting.kind.end(first, None)
    with (
        saved_tensors_hooks(lambda x: x.detach(), lambda x: x),
        pytest.raises(Unavailable, match="hooks of its own around"),
    ):
        counting.kind.begin(second)
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
    assert counting.sink.captures[0].meta["bytes"] == 40
    assert saved_hooks.top() is not None  # this thread's stack is its own
    (x * x).sum()
    again = call("again")
    counting.kind.begin(again)
    counting.kind.end(again, None)
    counting.kind.release()


def test_of_a_thread_that_has_ended_in_a_step_nothing_stays_on_torch():
    counting = Counting()

    def work():
        this = call("step")  # after which the hooks stay: the next one begins at once
        counting.kind.begin(this)
        counting.kind.end(this, None)

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

    functions = ("collector.config.values.unchanged", unchanged)
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
