"""Bytes that autograd saves: known numbers, and what is recomputed is not saved."""

from __future__ import annotations

import weakref

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

from memboard.collector.functions import saved_tensors
from tests.collector.functions.models import batch, mlp
from tests.collector.functions.sinks import Counting, rows

pytestmark = pytest.mark.usefixtures("countable_activations")


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

    def work():
        model(x).sum()
        model[0].weight = nn.Parameter(torch.randn(64, 32))
        own = nn.Parameter(torch.randn(4, 32))
        (x * own).sum()
        for _ in range(2):
            torch.nn.functional.linear(x, model[0].weight.detach(), own.new_ones(64))
            model(x).sum()

    # The batch once; what is between the layers anew in each forward.
    assert Counting(model)(work).meta["bytes"] == 512 + 3 * 1024


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


# Recomputing.


class Made(TorchDispatchMode):
    """The storages that operators made, while they live."""

    def __init__(self):
        super().__init__()
        self.storages = weakref.WeakSet()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for one in tree_leaves(out):
            if isinstance(one, torch.Tensor):
                self.storages.add(one.untyped_storage())
        return out


def held_bytes(forward, *leaves):
    """What the graph of a forward holds, besides its result; `leaves` are held by it."""
    with Made() as made:
        loss = forward()
    held = {*made.storages, *(leaf.untyped_storage() for leaf in leaves)}
    return sum(one.nbytes() for one in held - {loss.untyped_storage()})


TREES = st.recursive(
    st.sampled_from(["exp", "sin", "relu"]),
    lambda parts: st.lists(parts, min_size=1, max_size=3).flatmap(
        lambda chosen: st.sampled_from([("checkpoint", chosen), ("plain", chosen)])
    ),
    max_leaves=8,
)


def applied(tree, x, reentrant):
    """A tree of operators and checkpointed stretches of them."""
    if isinstance(tree, str):
        return getattr(torch, tree)(x)
    kind, parts = tree

    def stretch(x):
        for part in parts:
            x = applied(part, x, reentrant)
        return x

    if kind == "plain":
        return stretch(x)
    return checkpoint(stretch, x, use_reentrant=reentrant, preserve_rng_state=False)


# A checkpoint in another one meets an input that wants no gradient yet.
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("reentrant", [False, True])
@given(tree=TREES)
def test_whatever_is_recomputed_counted_is_what_the_graph_holds(reentrant, tree):
    x = torch.rand(1000, requires_grad=True)

    def forward():
        first = x.exp() * 1  # saves its result, not x
        return applied(tree, first, reentrant).sum()

    held = held_bytes(forward)
    for work in (forward, lambda: forward().backward()):
        assert Counting()(work).meta["bytes"] == held


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_is_recomputed_counts_no_more_than_what_is_kept_for_it(reentrant):
    """Eight blocks, each of which saves four times its input while it is recomputed."""
    blocks = nn.ModuleList(
        nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
        for _ in range(8)
    )
    x = torch.randn(16, 64, requires_grad=True)

    def work():
        hidden = x
        for block in blocks:
            hidden = checkpoint(block, hidden, use_reentrant=reentrant)
        hidden.sum().backward()

    capture = Counting(blocks)(work)
    assert capture.meta["bytes"] == 8 * 16 * 64 * 4
    assert rows(capture, "bytes")["outside", "float32"] == (8 * 16 * 64 * 4,)


def test_what_a_further_derivative_needs_counts():
    x = torch.rand(1000, requires_grad=True)
    held = []

    def work():
        (gradient,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        held.append(gradient)

    alone = Counting()((x**3).sum)
    assert Counting()(work).meta["bytes"] > alone.meta["bytes"]
