"""Hooks on every module: built in and the user's own, and what they leave behind."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from memboard.collector.config.sections import HooksConfig
from memboard.collector.config.values import zero_attributes
from memboard.collector.core.source import Unavailable
from memboard.collector.format.memory import NPP_ATTRS, RSS_ATTRS
from memboard.collector.functions import module_watch
from memboard.collector.functions.hooks_kind import HooksKind
from memboard.collector.functions.module_watch import ModuleWatch
from memboard.collector.sources.host.rss import open_sizes
from tests.collector.functions.models import batch, fingerprint, mlp
from tests.collector.functions.sinks import KeptSink, call


class Sizes:
    """Resident memory that is what a test says, one value after the other."""

    def __init__(self, *values):
        self.values = list(values)

    def sizes(self):
        return 0, 0

    def reader(self):
        return lambda: self.values.pop(0)

    def close(self):
        pass


class Hooking:
    def __init__(self, model, *, resident=None, saved=None, **settings):
        self.sink = KeptSink()
        self.watch = ModuleWatch()
        self.sizes = open_sizes() if resident is None else Sizes(*resident)
        config = HooksConfig(**settings)
        self.kind = HooksKind(config, self.sink, self.sizes, self.watch, saved)
        if model is not None:
            self.kind.attach(model, ())

    def __call__(self, function, this=None):
        this = this or call()
        self.kind.begin(this)
        function()
        found = self.kind.root_values(this)().items()
        floats = {name: math.nan if v is None else float(v) for name, v in found}
        self.root = {k: None if math.isnan(v) else v for k, v in floats.items()}
        self.kind.end(this, None)
        self.kind.release()
        return self.sink.captures[-1]


def values(capture, name):
    column = capture.tables["values"][name].tolist()
    return [None if math.isnan(value) else value for value in column]


# Built in.


def test_resident_memory_around_every_modules_forward():
    model = mlp()
    readings = [100, 100, 110, 110, 110, 110, 125, 130]
    hooking = Hooking(model, resident=readings)
    capture = hooking(lambda: model(batch()))
    assert capture.tables["modules"] == {
        "path": ("", "0", "1", "2"),
        "type": ("Sequential", "Linear", "ReLU", "Linear"),
    }
    assert capture.tables["values"]["module"].tolist() == [0, 1, 2, 3]
    assert values(capture, "rss_pre_forward") == [100, 100, 110, 110]
    assert values(capture, "rss_post_forward") == [130, 110, 110, 125]
    assert values(capture, "rss_diff") == [30, 10, 0, 15]
    assert hooking.root == {
        "rss_pre_forward": 100,
        "rss_post_forward": 130,
        "rss_diff": 30,
    }


def test_a_difference_adds_up_over_forwards_and_starts_anew_in_the_next_call():
    model = nn.Linear(32, 2)
    hooking = Hooking(model, resident=[10, 15, 20, 27, 30, 31])

    def twice():
        model(batch())
        model(batch())

    assert values(hooking(twice), "rss_diff") == [12]
    assert values(hooking(lambda: model(batch())), "rss_diff") == [1]


def test_memprofilers_saved_bytes_around_every_forward():
    """The count stands where a test puts it, as saved tensors do between the hooks."""

    class Saves(nn.Module):
        def __init__(self, num_bytes, *inner):
            super().__init__()
            self.num_bytes, self.inner = num_bytes, nn.ModuleList(inner)

        def forward(self, x):
            for module in self.inner:
                x = module(x)
            here.saved_bytes += self.num_bytes
            return x

    model = Saves(6811136, Saves(512), Saves(1024), Saves(3072))
    hooking = Hooking(model, saved=lambda: here.saved_bytes)
    here = hooking.watch.running.here
    here.saved_bytes = 100  # of calls before
    capture = hooking(lambda: model(batch()))
    found = dict(
        zip(capture.tables["modules"]["path"], values(capture, "npp_diff"), strict=True)
    )
    ran = {path: value for path, value in found.items() if value is not None}
    assert ran == {"": 6815744, "inner.0": 512, "inner.1": 1024, "inner.2": 3072}
    assert {name: hooking.root[name] for name in NPP_ATTRS} == dict(
        zip(NPP_ATTRS, (0, 6815744, 6815744), strict=True)
    )


def test_a_module_that_did_not_run_has_no_value():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Linear(32, 2), nn.Linear(32, 2)

        def forward(self, x):
            return self.used(x)

    model = Half()
    capture = Hooking(model)(lambda: model(batch()))
    assert [v is None for v in values(capture, "rss_diff")] == [False, False, True]


def test_a_root_that_did_not_run_has_what_is_inside_it():
    """With MemProfiler and a trainer that calls submodules, all were zero (A8)."""

    class Trained(nn.Module):
        def __init__(self):
            super().__init__()
            self.generator, self.critic = nn.Linear(32, 2), nn.Linear(32, 2)

    model = Trained()
    hooking = Hooking(model, resident=[100, 140, 150, 170])

    def training_step():
        model.generator(batch())
        model.critic(batch())

    capture = hooking(training_step)
    assert values(capture, "rss_diff") == [None, 40, 20]
    assert [hooking.root[name] for name in RSS_ATTRS] == [100, 170, 70]


def test_a_root_of_which_nothing_ran_has_no_values():
    model = mlp()
    hooking = Hooking(model)
    capture = hooking(lambda: None)
    assert set(hooking.root.values()) == {None}
    assert values(capture, "rss_diff") == [None] * 4


def test_two_calls_at_once_have_both_what_happens():
    model = nn.Linear(32, 2)
    hooking = Hooking(model, resident=[10, 15, 20, 27])
    outer, inner = call("outer"), call("inner")
    hooking.kind.begin(outer)
    model(batch())
    hooking.kind.begin(inner)
    model(batch())
    assert hooking.kind.root_values(call("another"))() == {}
    hooking.kind.end(inner, None)
    hooking.kind.end(outer, None)
    hooking.kind.release()
    found = {c.function: values(c, "rss_diff") for c in hooking.sink.captures}
    assert found == {"inner": [7], "outer": [12]}


def test_many_forwards_are_added_up_meanwhile(monkeypatch):
    monkeypatch.setattr(module_watch, "FOLD_AT", 6 * 5)
    model = nn.Sequential(nn.Linear(32, 2))
    readings = list(range(0, 4 * 50 * 3, 3))
    hooking = Hooking(model, resident=readings)
    seen = []

    def many():
        for _ in range(50):
            model(batch())
            seen.append(len(hooking.watch.log.entries))

    capture = hooking(many)
    assert max(seen) < 6 * 5
    assert values(capture, "rss_diff") == [50 * 9, 50 * 3]
    assert hooking.root == {
        "rss_pre_forward": readings[-4],
        "rss_post_forward": readings[-1],
        "rss_diff": 50 * 9,
    }


def test_a_reading_that_fails_ends_the_kind_and_not_the_forward():
    model = mlp()
    hooking = Hooking(model, resident=[1, 2, 3])
    this = call()
    hooking.kind.begin(this)
    assert model(batch()).shape == (4, 8)
    assert hooking.watch.log is None
    with pytest.raises(IndexError):
        hooking.kind.end(this, None)
    hooking.kind.close()
    assert not any(module._forward_hooks for module in model.modules())


# The user's own.


def count(name):
    def hook(module, *_):
        setattr(module, name, getattr(module, name, 0) + 1)

    return hook


def test_own_hooks_set_attributes_that_are_kept_and_then_removed():
    model = mlp()
    before = fingerprint(model)
    hooking = Hooking(
        model,
        pre_forward=(count("num_calls"),),
        post_forward=("tests.collector.functions.test_hooks.keep_shape",),
        save_attrs=("num_calls", "num_outputs", "no_such", "rss_diff"),
    )

    def twice():
        model(batch())
        model(batch())

    capture = hooking(twice)
    assert values(capture, "num_calls") == [2, 2, 2, 2]
    assert values(capture, "num_outputs") == [32, 256, 256, 32]
    assert values(capture, "no_such") == [None] * 4
    assert all(v is not None for v in values(capture, "rss_diff"))  # the built-in one
    assert (hooking.root["num_calls"], hooking.root["no_such"]) == (2, None)
    assert fingerprint(model) == before
    copy.deepcopy(model)


def keep_shape(module, inputs, outputs):
    """Named in a configuration; what it holds forbids copying, and must go."""
    module.num_outputs = np.int64(outputs.numel())
    module.handle = iter(())
    module.lock = __import__("threading").RLock()


def test_what_training_sets_meanwhile_stays():
    model = nn.Linear(32, 2)
    model.mine = 1

    def bump(module, inputs):
        module.mine += 1
        module.extra = 1

    hooking = Hooking(model, pre_forward=(bump,), save_attrs=("mine",))

    def work():
        model(batch())
        model.cache = "training's own"

    assert values(hooking(work), "mine") == [2]
    assert (model.mine, model.cache) == (2, "training's own")
    assert not hasattr(model, "extra")


def test_reset_hooks_run_after_each_call_on_every_module():
    model = nn.Linear(32, 2)

    def reset(module):
        module.num_calls = 0

    hooking = Hooking(
        model,
        pre_forward=(count("num_calls"),),
        reset=(reset,),
        save_attrs=("num_calls",),
    )
    this, that = call(iteration=1), call(iteration=2)
    for one in (this, that):
        hooking.kind.begin(one)
        model(batch())
        hooking.kind.end(one, None)
    hooking.kind.release()
    assert [values(c, "num_calls") for c in hooking.sink.captures] == [[1], [1]]


def test_memprofilers_reset_hooks_start_every_call_from_zero():
    """`hook(model, attributes)`, once: before the first call, and after each."""
    model = mlp()
    told = []

    def add(module, *_):
        module.num_calls += 1  # AttributeError, had nothing set it to 0

    def reset(model, attributes):
        told.append((type(model).__name__, attributes))
        zero_attributes(model, attributes)

    before = fingerprint(model)
    hooking = Hooking(
        model, pre_forward=(add,), reset=(reset,), save_attrs=("num_calls",)
    )
    this, that = call(iteration=1), call(iteration=2)
    for one in (this, that):
        hooking.kind.begin(one)
        assert hooking.kind.root_values(one)()["num_calls"] == 0
        model(batch())
        hooking.kind.end(one, None)
    hooking.kind.release()
    assert told == [("Sequential", ["num_calls"])] * 3
    assert [values(c, "num_calls") for c in hooking.sink.captures] == [[1] * 4] * 2
    assert fingerprint(model) == before, "and leaves nothing behind"


def test_another_model_starts_from_zero_too():
    first = mlp()
    hooking = Hooking(first, reset=(zero_attributes,), save_attrs=("mine",))
    hooking(lambda: None)
    another = nn.Linear(32, 2)
    hooking.kind.attach(another, ())
    assert values(hooking(lambda: None), "mine") == [0]
    assert not hasattr(another, "mine")


def test_a_reset_hook_that_raises_is_off(caplog):
    def reset(model, attributes):
        raise RuntimeError("no")

    model = nn.Linear(32, 2)
    hooking = Hooking(model, reset=(reset,), save_attrs=("mine",))
    assert values(hooking(lambda: model(batch())), "rss_diff") != [None]
    assert "hooks.reset failed and is off" in caplog.text


def test_what_a_hook_returns_changes_nothing():
    model = nn.Linear(32, 2)
    x = batch()
    expected = model(x)
    hooking = Hooking(
        model,
        pre_forward=(lambda module, inputs: (torch.zeros(1, 32),),),
        post_forward=(lambda module, inputs, outputs: outputs * 0,),
    )
    found = []
    hooking(lambda: found.append(model(x)))
    assert torch.equal(found[0], expected)


def test_a_forward_that_raises_leaves_what_was_there_before():
    model = mlp()
    before = fingerprint(model)
    hooking = Hooking(model, pre_forward=(count("num_calls"),))
    this = call()
    hooking.kind.begin(this)
    with pytest.raises(RuntimeError) as raised:
        model(torch.ones(1, 31))
    hooking.kind.end(this, raised.value)
    hooking.kind.close()
    assert fingerprint(model) == before
    assert hooking.sink.captures[0].meta["incomplete"] is True


def test_without_a_model_nothing_is_captured():
    hooking = Hooking(None)
    with pytest.raises(Unavailable, match="no model is attached"):
        hooking.kind.begin(call())
    hooking.kind.end(call(), None)
    assert hooking.sink.captures == []
    hooking.kind.attach(mlp(), ())  # which is gone at once
    with pytest.raises(Unavailable):
        hooking.kind.begin(call())
    hooking.kind.close()
