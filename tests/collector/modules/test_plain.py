"""Plain modules and DDP against torch's MemTracker, byte for byte."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.collector.modules import models, oracle, reduction


class Shared(nn.Module):
    """One layer called twice, and one given by keyword, with a dictionary as result."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(32, 32)
        self.gate = Gate()

    def forward(self, x):
        x = self.inner(functional.relu(self.inner(x)))
        return self.gate(x, scale=x.mean(-1, keepdim=True))["y"]


class Gate(nn.Module):
    """Takes a keyword and returns a dictionary."""

    def forward(self, x, *, scale):
        return {"y": x * torch.sigmoid(scale), "untouched": None}


def recomputed():
    from torch.distributed._composable import checkpoint

    model = models.Transformer()
    for layer in model.layers:
        checkpoint(layer)
    return model


def assert_same(theirs, capture):
    assert reduction.ours(capture, fsdp=False) == oracle.states(theirs)
    assert reduction.our_peaks(capture, fsdp=False) == oracle.peaks(theirs)
    assert reduction.our_peak(capture, fsdp=False) == oracle.peak_snapshot(theirs)
    assert not capture.meta["incomplete"]
    assert capture.meta["reasons"] == []


def both(track, make, step, *data, num_steps=2):
    """(theirs, our capture) of the same step of two equal models."""
    model, optimizer = models.started(make, step, *data, num_steps=num_steps)
    theirs = oracle.plain_tracker(model, optimizer, data)
    with theirs:
        step(model, optimizer, *data)
    model, optimizer = models.started(make, step, *data, num_steps=num_steps)
    hooks = models.hooks_of(model)
    capture = track(model, optimizer).step(step, model, optimizer, *data)
    assert models.hooks_of(model) == hooks
    return theirs, capture


@pytest.mark.parametrize("num_steps", [0, 2])
@pytest.mark.parametrize(
    ("make", "step", "data"),
    [
        (models.mlp, models.plain_step, torch.ones(8, 32)),
        (models.Transformer, models.train_step, torch.arange(256).view(4, 64)),
        (recomputed, models.train_step, torch.arange(256).view(4, 64)),
    ],
    ids=["mlp", "transformer", "recomputed"],
)
def test_every_state_and_peak_is_theirs(track, make, step, data, num_steps):
    theirs, capture = both(track, make, step, data, num_steps=num_steps)
    assert_same(theirs, capture)
    assert capture.meta["backend"] == "plain"


def test_a_module_called_twice_has_two_calls(track):
    theirs, capture = both(track, Shared, models.plain_step, torch.ones(4, 32))
    assert_same(theirs, capture)
    calls = [c for f, _, c, _ in reduction.Log(capture).rows() if f == "Shared.inner"]
    assert calls == [0, 0, 1, 1, 1, 1, 0, 0]


def test_what_backward_allocates_belongs_to_the_module_it_is_for(track):
    model = Shared()
    capture = track(model).step(lambda: model(torch.ones(4, 32)).sum().backward())
    owners = {
        capture.tables["modules"]["fqn"][owner]
        for owner, category in zip(
            capture.tables["events"]["module"].tolist(),
            capture.tables["events"]["category"].tolist(),
            strict=True,
        )
        if reduction.CATEGORIES[category] == "temp"
    }
    assert {"Shared.gate", "Shared.inner"} <= owners


def test_each_iteration_has_its_own_peak(track):
    model, optimizer = models.started(
        models.Transformer, models.train_step, models.tokens()
    )
    tracking = track(model, optimizer)
    peaks, expected = [], []
    for batch in (2, 8, 2):
        x = models.tokens(batch)
        theirs = oracle.plain_tracker(model, optimizer, (x,))
        with theirs:
            models.train_step(model, optimizer, x)
        expected.append(sum(oracle.peak_snapshot(theirs)["cpu"].values()))
        capture = tracking.step(models.train_step, model, optimizer, x)
        peaks.append(reduction.Log(capture).peak())
    assert peaks == expected
    assert peaks[0] == peaks[2] < peaks[1]


def test_all_optimizers_are_followed_not_the_first(track):
    model = models.mlp()
    optimizers = [
        torch.optim.AdamW(p for p in layer.parameters())
        for layer in (model[0], model[2])
    ]

    def step(x):
        model(x).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()

    x = torch.ones(4, 32)
    step(x)
    tracking = track(model, optimizers[0])  # the second one is not attached
    capture = tracking.step(step, x)
    log = reduction.Log(capture)
    log.check()
    assert capture.meta["optimizers"] == 2
    states = sum(
        value.nbytes
        for optimizer in optimizers
        for state in optimizer.state.values()
        for value in state.values()
    )
    end = log.balances[-1]["cpu"]
    assert end["optimizer"] == states
    steps = [s for _, s, *_ in log.rows() if s.endswith("optimizer")]
    assert steps == ["before_optimizer", "after_optimizer"] * 2


def test_an_optimizer_inside_backward_is_an_optimizer(track):
    model = models.mlp()
    optimizers = {p: torch.optim.SGD([p], momentum=0.9) for p in model.parameters()}

    def apply(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(apply)
    x = torch.ones(4, 32)
    hooks = models.hooks_of(model)
    capture = track(model, *optimizers.values()).step(lambda: model(x).sum().backward())
    log = reduction.Log(capture)
    log.check()
    assert models.hooks_of(model) == hooks
    total = sum(p.nbytes for p in model.parameters())
    assert log.balances[-1]["cpu"] == {
        "param": total,
        "optimizer": total,
        "input": x.nbytes,
    }


def test_no_gradients_no_backward(track):
    model = models.Transformer()
    x = models.tokens()

    def evaluate():
        with torch.no_grad():
            model(x)

    capture = track(model).step(evaluate)
    states = {state for _, state, *_ in reduction.Log(capture).rows()}
    assert states == {"before_pre_forward", "after_post_forward"}
    assert "no optimizer was attached" in capture.meta["reasons"][0]


def test_inputs_made_inside_the_window_are_inputs(track):
    model = models.mlp()
    seen = []

    def step():
        x = torch.ones(16, 32)
        seen.append(x.nbytes)
        model(x).sum().backward()

    log = reduction.Log(track(model).step(step))
    rows = {(f, s): e for f, s, _, e in log.rows()}
    at = log.balances[rows["Sequential", "before_pre_forward"]]["cpu"]
    assert at["input"] == seen[0]
    assert "activation" not in at


def test_gradients_belong_to_the_module_of_their_parameter(track):
    model = models.mlp()
    capture = track(model).step(lambda: model(torch.ones(4, 32)).sum().backward())
    held = reduction.bytes_by_owner(capture, "grad")
    assert held == capture.tables["modules"]["param_bytes"].tolist()


def test_a_penalty_on_gradients_is_followed(track):
    model, optimizer = models.started(models.mlp, models.plain_step, torch.ones(4, 32))

    def step():
        x = torch.ones(4, 32, requires_grad=True)
        (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        (model(x).sum() + gradient.pow(2).sum()).backward()
        optimizer.step()

    capture = track(model, optimizer).step(step)
    reduction.Log(capture).check()
    assert capture.meta["reasons"] == []


def test_sparse_gradients_are_counted(track):
    model = nn.Embedding(1000, 16, sparse=True)
    x = torch.arange(10)
    capture = track(model).step(lambda: model(x).sum().backward())
    log = reduction.Log(capture)
    log.check()
    assert capture.meta["reasons"][:-1] == []
    assert log.balances[-1]["cpu"]["grad"] == 10 * 16 * 4 + 10 * 8


def test_ddp_is_theirs(track, tmp_path):
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group(
        "gloo", rank=0, world_size=1, store=dist.FileStore(str(tmp_path / "s"), 1)
    )
    try:
        data = models.tokens()
        theirs, capture = both(
            track,
            lambda: DistributedDataParallel(models.Transformer()),
            models.train_step,
            data,
        )
        assert_same(theirs, capture)
        assert capture.meta["root"] == "DistributedDataParallel"
    finally:
        dist.destroy_process_group()


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize("lazy", [False, True])
def test_what_a_lazy_module_makes_in_its_first_forward_is_its_own(track, lazy):
    first = nn.LazyLinear(8) if lazy else nn.Linear(32, 8)
    norm = nn.LazyBatchNorm1d() if lazy else nn.BatchNorm1d(8)
    model, optimizers = nn.Sequential(first, norm, nn.Linear(8, 4)), []

    def step():
        loss = model(torch.ones(4, 32)).sum()
        optimizers.append(torch.optim.SGD(model.parameters(), momentum=0.9))
        loss.backward()
        optimizers[-1].step()

    capture = track(model).step(step)
    reduction.Log(capture).check()
    own = [0, 33 * 8 * 4, 2 * 8 * 4, 9 * 4 * 4]
    assert capture.tables["modules"]["param_bytes"].tolist() == own
    for category in ("param", "grad", "optimizer"):
        assert reduction.bytes_by_owner(capture, category) == own, category
    assert reduction.bytes_by_owner(capture, "buffer") == [0, 0, 2 * 8 * 4 + 8, 0]
    assert capture.meta["reasons"] == []
