"""Hooks of ours: on the model while it is recorded, and on no copy of it."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import weakref

import pytest
import torch
from torch import nn

from memboard.collector.hooks.modules import ModuleHooks

DICTIONARIES = (
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
)


class Counting:
    """Listens to forwards."""

    def __init__(self):
        self.calls = 0
        self.error = None
        self.raises = None

    def before_forward(self, *_):
        self.calls += 1
        if self.raises is not None:
            raise self.raises

    def after_forward(self, *_):
        self.calls += 1

    def hook_failed(self, error):
        self.error = error


class Theirs:
    """A hook of the training's own, which may be copied and sent."""

    def __init__(self, module=None):
        self.module = module
        self.calls = 0

    def __call__(self, *_):
        self.calls += 1


def model_with(listener):
    model = nn.Sequential(nn.Linear(4, 2), nn.ReLU())
    return model, hooks_on(model, listener)


def hooks_on(model, listener):
    hooks = ModuleHooks(listener)
    hooks.add(0, model)
    return hooks


def ways_to_copy():
    return [
        pytest.param(copy.deepcopy, id="deepcopy"),
        *(
            pytest.param(
                lambda model, dumps=dumps, protocol=protocol: pickle.loads(
                    dumps(model, protocol)
                ),
                id=f"{name} {protocol}",
            )
            for name, dumps in (("pickle", pickle.dumps), ("python", pickle._dumps))
            for protocol in (2, pickle.HIGHEST_PROTOCOL)
        ),
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("copied", ways_to_copy())
def test_a_copy_has_none_and_can_be_scripted(copied):
    hook = Counting()
    model, hooks = model_with(hook)
    twin = copied(model)
    hooks.remove()
    for name in DICTIONARIES:
        assert not vars(twin)[name]
        assert not vars(vars(twin)[name])
        assert type(vars(twin)[name]) is type(vars(model)[name])
    x = torch.ones(3, 4)
    assert torch.equal(torch.jit.script(twin)(x), model(x))
    assert torch.equal(twin(x), model(x))
    assert hook.calls == 0


@pytest.mark.parametrize("copied", ways_to_copy())
def test_the_trainings_own_hooks_are_copied(copied):
    model, hooks = model_with(Counting())
    handle = model.register_forward_hook(Theirs(), always_call=True)
    twin = copied(model)
    twin(torch.ones(1, 4))
    (theirs,) = twin._forward_hooks.values()
    assert theirs.calls == 1
    assert twin._forward_hooks_always_called == {handle.id: True}
    hooks.remove()
    assert list(model._forward_hooks) == [handle.id]


def test_a_handle_that_is_copied_with_its_model_takes_off_the_copys_hook():
    model, hooks = model_with(Counting())
    model.register_forward_hook(Theirs(model))
    model.handle = model.register_forward_pre_hook(Theirs(model))
    twin = copy.deepcopy(model)
    (theirs,) = twin._forward_hooks.values()
    assert theirs.module is twin
    twin.handle.remove()
    assert not twin._forward_pre_hooks
    assert len(model._forward_pre_hooks) == 2
    hooks.remove()


def test_numbers_of_ours_are_free_in_a_copy_that_is_sent():
    model, hooks = model_with(Counting())
    number = next(iter(model._forward_hooks))
    twin = pickle.loads(pickle.dumps(model))
    seen = []
    twin._forward_hooks[number] = lambda *given: seen.append(len(given))
    twin(torch.ones(1, 4))
    assert seen == [3]  # module, args and output: no keywords
    hooks.remove()


def test_the_dictionaries_are_torchs_own_again_with_the_last_one():
    model, first = model_with(Counting())
    second = hooks_on(model, Counting())
    first.remove()
    assert not copy.deepcopy(model)._forward_hooks
    second.remove()
    second.remove()
    for name in DICTIONARIES:
        assert not vars(model)[name]
        assert not vars(vars(model)[name])


def test_hooks_keep_no_model_alive():
    model, hooks = model_with(Counting())
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None
    hooks.remove()


def test_where_a_dictionary_takes_no_attributes_copies_have_what_does_nothing():
    class Bare(dict):
        __slots__ = ("__weakref__",)

        def __reduce__(self):
            return Bare, (dict(self),)

    model = nn.Linear(4, 2)
    model._forward_hooks = Bare()
    hook = Counting()
    hooks = hooks_on(model, hook)
    twin = copy.deepcopy(model)
    x = torch.ones(1, 4)
    assert torch.equal(twin(x), model(x))
    assert hook.calls == 2
    hooks.remove()
    assert not model._forward_hooks


def test_a_module_that_takes_but_one_is_left_without(monkeypatch):
    model = nn.Linear(4, 2)

    def refuse(*_, **__):
        raise RuntimeError("not this one")

    monkeypatch.setattr(model, "register_forward_hook", refuse)
    with pytest.raises(RuntimeError, match="not this one"):
        hooks_on(model, Counting())
    assert not model._forward_pre_hooks


def test_a_listener_that_raises_hears_no_more_and_training_goes_on():
    hook = Counting()
    model, hooks = model_with(hook)
    hook.raises = ValueError("ours")
    for _ in range(2):
        assert model(torch.ones(1, 4)).shape == (1, 2)
    assert (hook.calls, str(hook.error)) == (1, "ours")
    hooks.remove()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_in_a_forked_child_hooks_are_idle():
    hook = Counting()
    model, hooks = model_with(hook)
    child = os.fork()
    if child == 0:
        model(torch.ones(1, 4))
        os._exit(hook.calls)
    assert os.waitpid(child, 0)[1] == 0
    model(torch.ones(1, 4))
    assert hook.calls == 2
    hooks.remove()
