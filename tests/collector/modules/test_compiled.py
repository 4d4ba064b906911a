"""Compiled models: tracked eagerly and said so, or not at all; later steps as before."""

from __future__ import annotations

import pytest
import torch

from tests.collector.modules import models, reduction

pytestmark = pytest.mark.filterwarnings("ignore")


class Backend:
    """Counts what torch.compile compiles and runs."""

    def __init__(self):
        self.num_graphs = self.num_calls = 0

    def __call__(self, graph, _inputs):
        self.num_graphs += 1

        def run(*arguments):
            self.num_calls += 1
            return graph.forward(*arguments)

        return run


def compiled_whole(backend):
    return torch.compile(models.mlp(), backend=backend)


def compiled_in_place(backend):
    model = models.mlp()
    model.compile(backend=backend)
    return model


def compiled_blocks(backend):
    model = models.mlp()
    model[0] = torch.compile(model[0], backend=backend)
    model[2].compile(backend=backend)
    return model


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("make", [compiled_whole, compiled_in_place, compiled_blocks])
def test_an_eager_estimate_and_then_the_compiled_code_again(track, make):
    backend, x = Backend(), torch.ones(4, 32)
    model, optimizer = models.started(
        lambda: make(backend), models.plain_step, x, num_steps=3
    )
    num_graphs, num_calls = backend.num_graphs, backend.num_calls
    tracking = track(model, optimizer)
    capture = tracking.step(models.plain_step, model, optimizer, x)
    assert backend.num_calls == num_calls
    assert capture.meta["estimate"] == "eager estimate"
    log = reduction.Log(capture)
    log.check()
    states = {state for fqn, state, *_ in log.rows() if fqn.endswith(".2")}
    assert {"before_pre_forward", "after_post_backward"} <= states

    plain, its_optimizer = models.started(models.mlp, models.plain_step, x)
    expected = track(plain, its_optimizer).step(
        models.plain_step, plain, its_optimizer, x
    )
    assert log.peak_snapshot() == reduction.Log(expected).peak_snapshot()

    per_step = num_calls // 3
    for number in range(1, 4):
        models.plain_step(model, optimizer, x)
        assert backend.num_calls == num_calls + number * per_step
    assert backend.num_graphs == num_graphs


def test_a_model_that_is_first_run_inside_a_window_compiles_later(track):
    backend, x = Backend(), torch.ones(4, 32)
    model = compiled_whole(backend)
    optimizer = torch.optim.SGD(model.parameters())
    tracking = track(model, optimizer)
    tracking.step(models.plain_step, model, optimizer, x)
    assert backend.num_calls == 0
    for _ in range(2):
        models.plain_step(model, optimizer, x)
    assert backend.num_calls == 2


def test_a_compiled_function_beside_the_model_is_no_trouble(track):
    backend, x = Backend(), torch.ones(4, 32)
    model = models.mlp()
    loss = torch.compile(lambda y: (y * 2).sum(), backend=backend)
    loss(model(x))
    num_graphs = backend.num_graphs
    capture = track(model).step(lambda: loss(model(x)).backward())
    reduction.Log(capture).check()
    loss(model(x))
    assert backend.num_graphs == num_graphs
    assert capture.meta["reasons"] == [capture.meta["reasons"][-1]]
    assert capture.meta["estimate"] == "eager estimate"


def test_a_model_whose_compiled_wrapper_is_called_is_an_estimate_too(track):
    """The model that was attached does not show that it is compiled."""
    backend, x = Backend(), torch.ones(4, 32)
    model = models.mlp()
    wrapper = torch.compile(model, backend=backend)
    wrapper(x).sum().backward()
    num_calls = backend.num_calls
    capture = track(model).step(lambda: wrapper(x).sum().backward())
    assert backend.num_calls == num_calls
    assert capture.meta["estimate"] == "eager estimate"


def test_an_eager_model_is_no_estimate(track):
    model = models.mlp()
    capture = track(model).step(lambda: model(torch.ones(4, 32)))
    assert capture.meta["estimate"] == ""


def test_a_stance_that_the_user_takes_inside_a_window_stays(track):
    from torch._dynamo import eval_frame

    before = eval_frame._stance
    model = models.mlp()
    tracking = track(model)
    call = tracking.begin()
    torch.compiler.set_stance("eager_on_recompile")
    tracking.end(call)
    assert eval_frame._stance.stance == "eager_on_recompile"
    eval_frame._set_stance(before)
