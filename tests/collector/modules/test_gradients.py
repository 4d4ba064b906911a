"""Gradients of activations in the tracker's log, against what autograd's hooks are given."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import pytest
import torch

from memboard.collector.format.memory import CATEGORIES
from tests.virtual import gradient_hooks

MODELS = (
    "mlp",
    "mlp-square",
    "mlp-square-accumulate",
    "transformer",
    "transformer-reentrant",
    "transformer-nonreentrant",
    "transformer-amp",
    "conv",
)


@dataclass
class Gradient:
    """A storage that hooks were given; bytes are added up over the moments it was there."""

    storage: weakref.ref
    is_parameters: bool
    num_bytes: int = 0
    num_named: int = 0


class Hooks(gradient_hooks.Hooks):
    """Compares what the tracker calls each storage as each node's function has returned."""

    def __init__(self, tracking):
        super().__init__("cpu")
        self._tracking = tracking
        self.gradients = []
        self._by_address = {}

    def _hook(self, here, following):
        ran = super()._hook(here, following)

        def compare(sent, given):
            ran(sent, given)
            self._compare()

        return compare

    def _note(self, gradient, of_parameter):
        if gradient is None:
            return
        storage = gradient.untyped_storage()
        known = self._by_address.get(storage.data_ptr())
        if known is None or known.storage() is not storage:
            known = Gradient(weakref.ref(storage), of_parameter)
            self._by_address[storage.data_ptr()] = known
            self.gradients.append(known)
        known.is_parameters |= of_parameter

    def _compare(self):
        named = {
            storage.data_ptr()
            for storage, category, _ in self._tracking.kind.known_storages()
            if CATEGORIES[category] == "activation_grad"
        }
        for address, known in self._by_address.items():
            storage = known.storage()
            if storage is not None:
                known.num_bytes += storage.nbytes()
                known.num_named += storage.nbytes() * (address in named)
                named.discard(address)
        assert not named  # nothing that no hook was given


@pytest.mark.parametrize("model", MODELS)
def test_what_nodes_are_given_is_called_so_and_nothing_else(track, model):
    torch.manual_seed(0)
    net = gradient_hooks.made(model, "cpu")
    optimizer = torch.optim.AdamW(net.parameters())
    tracking = track(net, optimizer)
    hooks = Hooks(tracking)
    try:
        for _ in range(2):
            capture = tracking.step(gradient_hooks.train, model, net, optimizer, "cpu")
    finally:
        hooks.close()
    of_parameters = [one for one in hooks.gradients if one.is_parameters]
    others = [one for one in hooks.gradients if not one.is_parameters]
    assert sum(one.num_named for one in of_parameters) == 0
    every = sum(one.num_bytes for one in others)
    share = sum(one.num_named for one in others) / every
    print(f"{model}: {share:.4f} of {every >> 20} MiB")
    # A reentrant checkpoint accumulates gradients of its inputs as of parameters.
    assert share > 0.98
    assert capture.meta["reasons"] == []
