"""Checkpointing: what is recomputed is not saved, whichever way it is recomputed."""

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

from tests.collector.functions.counting import Counting, rows


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
