"""The models that optimizers train, found among all that lives in the process."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def models_of(optimizers: Iterable[Any]) -> list[Any]:
    """The outermost modules that hold a parameter of these, the largest first.

    Looks at every object that the garbage collector knows: some 0.1 s per million. Runs no
    code of theirs but `parameters` and `modules`. May raise what odd models raise.
    """
    from torch import nn

    trained = {
        id(tensor)
        for optimizer in optimizers
        for group in optimizer.param_groups
        for tensor in group["params"]
    }
    # By their type: `isinstance` asks an object for its `__class__`, which may be code.
    every = [one for one in gc.get_objects() if issubclass(type(one), nn.Module)]
    every = [one for one in every if "_modules" in one.__dict__]  # else half made
    inside = {id(child) for one in every for child in one.__dict__["_modules"].values()}
    found = []
    for module in every:
        if id(module) not in inside:
            held = sum(id(tensor) in trained for tensor in module.parameters())
            if held:
                found.append((held, module))
    found.sort(key=lambda pair: -pair[0])
    return [module for _, module in found]
