"""Fixtures of the tracker's tests."""

from __future__ import annotations

import pytest
import torch

from memboard.collector.config.sections import ModulesConfig
from memboard.collector.core.calls import Call
from memboard.collector.modules.kind import ModulesKind


@pytest.fixture(autouse=True, scope="package")
def _one_thread():
    """These models are small: threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class ListSink:
    """A sink that keeps what it is given."""

    def __init__(self):
        self.captures = []
        self.notes = []

    def put_capture(self, capture):
        self.captures.append(capture)
        return True

    def put_later(self, *_arguments):
        raise AssertionError("the tracker writes no rows")

    def note_kind(self, info, status, reason, remedy):
        self.notes.append((info.name, status, reason, remedy))


class Tracking:
    """A `ModulesKind` with a model, and a step of it at a time."""

    def __init__(self, model, *optimizers, **settings):
        self.sink = ListSink()
        self.kind = ModulesKind(ModulesConfig(enabled=True, **settings), self.sink)
        self.kind.attach(model, optimizers)
        self.num_calls = 0

    def begin(self, function="step"):
        self.num_calls += 1
        call = Call(
            function=function,
            phase="train",
            iteration=self.num_calls,
            step=self.num_calls,
        )
        self.kind.begin(call)
        return call

    def end(self, call, error=None):
        self.kind.end(call, error)
        return self.sink.captures[-1]

    def step(self, function, *arguments):
        """The capture of one call of `function`, whatever it raises."""
        call, error = self.begin(), None
        try:
            function(*arguments)
        except Exception as caught:
            error = caught
            raise
        finally:
            capture = self.end(call, error)
        return capture


@pytest.fixture
def track():
    """Makes `Tracking`s, and checks that each left torch as it was."""
    before = global_hooks()
    made = []

    def make(model, *optimizers, **settings):
        made.append(Tracking(model, *optimizers, **settings))
        return made[-1]

    yield make
    for tracking in made:
        tracking.kind.close()
    assert global_hooks() == before


def global_hooks():
    """Everything process-wide that the tracker touches."""
    from torch.nn.modules import module
    from torch.optim import optimizer

    return (
        dict(module._global_forward_pre_hooks),
        dict(module._global_forward_hooks),
        dict(module._global_forward_hooks_always_called),
        dict(module._global_forward_hooks_with_kwargs),
        dict(optimizer._global_optimizer_pre_hooks),
        dict(optimizer._global_optimizer_post_hooks),
        torch.UntypedStorage.resize_,  # torch's own trackers leave it on the class
        torch._C._len_torch_dispatch_stack(),
        torch.utils._python_dispatch._is_in_torch_dispatch_mode,
        torch._dynamo.eval_frame._stance,
    )


@pytest.fixture
def fake_world(fsdp_on_cpu):
    """A process group of 2 ranks that does nothing, as rank 0."""
    yield from _fake_group(2)


@pytest.fixture
def fake_world_of_4(fsdp_on_cpu):
    """The same with 4 ranks."""
    yield from _fake_group(4)


def _fake_group(world_size):
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=world_size, store=FakeStore())
    yield
    dist.destroy_process_group()
