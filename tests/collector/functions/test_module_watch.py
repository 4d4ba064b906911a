"""Watching forwards, and leaving no trace of it."""

from __future__ import annotations

import threading
import warnings

import pytest
import torch
from torch import nn

from memboard.collector.functions.forward_log import OUTSIDE, ForwardLog
from memboard.collector.functions.module_watch import ModuleWatch
from tests import programs
from tests.collector.functions.models import batch, mlp


class Listener:
    """Hooks of a user's, with what the watch knows while they run."""

    def __init__(self, watch):
        self.seen = []
        self.watch = watch

    def before(self, _module, _args):
        self._note("before")

    def after(self, _module, _args, _outputs):
        self._note("after")

    def _note(self, side):
        stack = self.watch.running.here.stack
        self.seen.append((side, stack[-1], len(stack) - 1))


def watching(model):
    watch = ModuleWatch()
    listener = Listener(watch)
    watch.attach(model)
    watch.before, watch.after = listener.before, listener.after
    watch.hold(listener)
    return watch, listener


def innermost(watch):
    return watch.running.here.stack[-1]


def test_every_module_is_told_with_what_is_around_it():
    model = nn.Sequential(mlp(), nn.Tanh())
    watch, listener = watching(model)
    model(batch())
    assert watch.paths == ("", "0", "0.0", "0.1", "0.2", "1")
    assert watch.types == (
        "Sequential",
        "Sequential",
        "Linear",
        "ReLU",
        "Linear",
        "Tanh",
    )
    assert listener.seen == [
        ("before", 0, 1),
        ("before", 1, 2),
        *((side, index, 3) for index in (2, 3, 4) for side in ("before", "after")),
        ("after", 1, 2),
        ("before", 5, 2),
        ("after", 5, 2),
        ("after", 0, 1),
    ]
    assert innermost(watch) == OUTSIDE
    watch.leave(listener)


def test_a_forward_that_raises_leaves_the_stack_as_it_was():
    class Broken(nn.Module):
        def forward(self, x):
            raise ValueError("mine")

    model = nn.Sequential(nn.Linear(32, 32), Broken())
    watch, listener = watching(model)
    with pytest.raises(ValueError, match="mine"):
        model(batch())
    assert innermost(watch) == OUTSIDE
    assert listener.seen[-1] == ("after", 0, 1)
    watch.leave(listener)


def test_a_reading_that_fails_ends_the_watch_and_training_goes_on():
    def fail():
        raise RuntimeError("ours")

    errors = []
    model = mlp()
    watch, listener = watching(model)
    watch.log = ForwardLog(fail, lambda: None, errors.append)
    assert model(batch()).shape == (4, 8)
    assert listener.seen == [("before", 0, 1)]
    assert [str(error) for error in errors] == ["ours"]
    assert innermost(watch) == OUTSIDE
    watch.leave(listener)
    assert not any(module._forward_hooks for module in model.modules())


def test_each_thread_has_its_own_innermost_module():
    found = {}
    ready, done = threading.Event(), threading.Event()

    class Waiting(nn.Module):
        def forward(self, x):
            ready.set()
            done.wait(60)
            return x

    model = nn.Sequential(Waiting())
    watch, listener = watching(model)
    thread = threading.Thread(target=lambda: model(batch()))
    thread.start()
    ready.wait(60)
    found["here"] = innermost(watch)
    done.set()
    thread.join()
    assert found == {"here": OUTSIDE}
    watch.leave(listener)


def test_another_model_takes_the_place_of_the_first():
    first, second = mlp(), nn.Linear(32, 2)
    watch, listener = watching(first)
    watch.attach(second)
    assert not first._forward_hooks
    first(batch())
    assert listener.seen == []
    second(batch())
    assert watch.paths == ("",)
    watch.leave(listener)
    assert not second._forward_hooks


def test_without_a_model_it_says_so():
    watch = ModuleWatch()
    watch.hold(watch)
    assert (watch.paths, watch.not_seen) == ((), "no model is attached")
    watch.attach("no module")
    watch.leave(watch)


def test_what_the_watch_holds_goes_with_the_model():
    model = mlp()
    watch, listener = watching(model)
    watch.leave(listener)
    del model
    assert list(watch.modules()) == []


def test_a_scripted_module_is_left_alone_or_watched_but_never_broken():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch advises against scripting
        model = nn.Sequential(torch.jit.script(nn.Linear(32, 8)))
    watch, listener = watching(model)
    assert model(batch()).shape == (4, 8)
    assert ("before", 0, 1) in listener.seen
    watch.leave(listener)


# torch.compile: in a process of its own, as it keeps what it compiled.

COMPILED = """
import itertools, torch, warnings
from torch._dynamo.utils import counters
from tests.collector.functions.models import batch, mlp
from tests.collector.functions.test_module_watch import watching
warnings.simplefilter("error")
warnings.filterwarnings("ignore", "Guards may run slower")  # torch of Python 3.13.0
torch.set_num_threads(1)

def graphs():
    return counters["frames"]["ok"], sum(counters["graph_break"].values())

def train(forward, *sizes):
    for size in sizes:
        forward(batch(size)).sum().backward()

def compiled(kind):
    attached = model = mlp()
    if kind == "wrapper":
        attached = forward = torch.compile(model, backend="aot_eager")
    elif kind == "wrapped":
        forward = torch.compile(model, backend="aot_eager")
    elif kind == "in place":
        model.compile(backend="aot_eager")
        forward = model
    elif kind == "block":
        model[0] = torch.compile(model[0], backend="aot_eager")
        forward = model
    else:
        forward = torch.compile(lambda x: model(x) * 2, backend="aot_eager")
    return attached, forward

kinds = ("wrapper", "wrapped", "in place", "block", "function")
for kind, warm in itertools.product(kinds, (True, False)):
    torch._dynamo.reset()
    counters.clear()
    attached, forward = compiled(kind)
    if warm:
        train(forward, 4)
    before = graphs()
    watch, listener = watching(attached)
    if warm:
        train(forward, 4)
        assert graphs() == before, (kind, "hooks made it compile", before, graphs())
    train(forward, 4, 6)  # another shape: compiles for good reasons
    inside = graphs()
    watch.leave(listener)
    train(forward, 4, 6, 7)
    assert graphs() == inside, (kind, "it compiled when hooks left", inside, graphs())
    assert inside[1] == 0, (kind, "a graph was broken")
    seen = sorted({index for _, index, _ in listener.seen})
    print(f"{kind}: {warm}")
    if kind == "block":
        assert watch.not_seen == "2 modules are compiled, or below one that is"
        assert seen == [0, 3, 4], seen
    else:
        assert "compile" in watch.not_seen
        assert seen == [], (kind, seen)
"""


def test_compiled_code_is_neither_broken_nor_compiled_anew():
    tried = programs.run(COMPILED).stdout.splitlines()
    kinds = ("wrapper", "wrapped", "in place", "block", "function")
    assert tried == [f"{kind}: {warm}" for kind in kinds for warm in (True, False)]


COMPILED_LATER = """
import torch
from memboard.collector.functions.forward_log import ForwardLog
from memboard.collector.functions.module_watch import ModuleWatch
from tests.collector.functions.models import batch, mlp

def read():
    raise AssertionError("compiled code has called a hook")

model, x = mlp(), batch()
expected = model(x) * 2
watch = ModuleWatch()
watch.attach(model)
watch.hold(watch)
assert watch.sees_any
watch.log = ForwardLog(read, read, print)
twice = torch.compile(lambda x: model(x) * 2, backend="aot_eager", fullgraph=True)
assert torch.equal(twice(x), expected)
with torch._dynamo.config.patch(error_on_recompile=True):
    watch.log = None
    twice(x)
    watch.log = ForwardLog(read, read, print)
    twice(x).sum().backward()
"""


def test_code_that_is_compiled_below_hooks_has_nothing_of_them():
    assert programs.run(COMPILED_LATER).stdout == ""
