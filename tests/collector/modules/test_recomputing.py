"""Activation checkpointing by function, and steps that are only imagined."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.collector.modules import models, oracle, reduction
from tests.collector.modules.test_plain import assert_same, both


class Checkpointed(nn.Module):
    """A transformer that recomputes its layers, one way or the other."""

    def __init__(self, *, reentrant):
        super().__init__()
        self.inner = models.Transformer()
        self.reentrant = reentrant

    def forward(self, x):
        places = torch.arange(x.shape[1])
        x = self.inner.tokens(x) + self.inner.places(places)
        for layer in self.inner.layers:
            x = checkpoint(layer, x, use_reentrant=self.reentrant)
        return self.inner.out(self.inner.norm(x))


@pytest.mark.parametrize("reentrant", [False, True])
def test_recomputed_states_and_peaks_are_theirs(track, reentrant):
    def make():
        return Checkpointed(reentrant=reentrant)

    theirs, capture = both(track, make, models.train_step, models.tokens())
    if not reentrant:
        assert_same(theirs, capture)
    found = reduction.ours(capture, fsdp=False)
    expected = oracle.states(theirs)
    shared = {key: calls for key, calls in found.items() if key in expected}
    assert shared == {key: expected[key] for key in shared}
    recomputed = {
        f for f, s, *_ in reduction.Log(capture).rows() if s == "pre_forward_ac"
    }
    assert "Checkpointed.inner.layers.0.mlp.2" in recomputed


def test_what_is_recomputed_belongs_to_its_module(track):
    model = Checkpointed(reentrant=False)
    x = models.tokens()
    capture = track(model).step(lambda: model(x).sum().backward())
    log = reduction.Log(capture)
    at = [e for _, s, _, e in log.rows() if s in {"pre_forward_ac", "post_forward_ac"}]
    modules = log.modules["fqn"]
    owners = {
        modules[owner]
        for owner, category in zip(
            log.events["module"][at[0] : at[-1]].tolist(),
            log.events["category"][at[0] : at[-1]].tolist(),
            strict=True,
        )
        if reduction.CATEGORIES[category] == "activation"
    }
    assert {
        "Checkpointed.inner.layers.1.qkv",
        "Checkpointed.inner.layers.1.mlp.1",
    } <= owners


def test_a_step_on_fake_tensors_holds_the_same_bytes(track):
    from torch._subclasses.fake_tensor import FakeTensorMode

    def one():
        model, optimizer = models.started(
            models.Transformer, models.train_step_unread, models.tokens(), num_steps=2
        )
        x = models.tokens()
        return track(model, optimizer).step(
            models.train_step_unread, model, optimizer, x
        )

    real = reduction.Log(one())
    with FakeTensorMode():
        fake = reduction.Log(one())
    real.check()
    fake.check()
    assert fake.peak_snapshot() == real.peak_snapshot()
    assert [(f, s, c) for f, s, c, _ in fake.rows()] == [
        (f, s, c) for f, s, c, _ in real.rows()
    ]


def test_shapes_that_are_tried_out_are_no_memory(track):
    from torch._subclasses.fake_tensor import FakeTensorMode

    def step():
        with FakeTensorMode():
            torch.empty(2**40)
        return torch.empty(10)

    model = nn.Linear(1, 1)
    log = reduction.Log(track(model).step(step))
    assert log.peak() < 1000
