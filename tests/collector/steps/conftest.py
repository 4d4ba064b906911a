"""Torch is as it was after each recording."""

from __future__ import annotations

import sys

import pytest
import torch
import torch.utils.data

PATCHED = (
    (torch.autograd, "backward"),
    (torch.optim.Optimizer, "zero_grad"),
    (torch, "save"),
    (torch.utils.data.dataloader._BaseDataLoaderIter, "__next__"),
)


@pytest.fixture(autouse=True)
def _torch_is_left_as_it_was():
    before = [getattr(owner, name) for owner, name in PATCHED]
    yield
    assert [getattr(owner, name) for owner, name in PATCHED] == before
    optimizers = sys.modules["torch.optim.optimizer"]
    assert not optimizers._global_optimizer_pre_hooks
    assert not optimizers._global_optimizer_post_hooks
