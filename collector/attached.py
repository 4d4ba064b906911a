"""The model and the optimizer that a recorder is told of."""

from __future__ import annotations

import weakref
from typing import Any


def reference(target: Any) -> weakref.ref[Any] | None:
    """A reference that keeps nothing alive; None where there cannot be one."""
    try:
        return weakref.ref(target)
    except TypeError:
        return None


def describe_model(model: Any) -> dict[str, Any]:
    """What a note says about a module: its class and its numbers of parameters.

    Of sharded parameters the whole is counted; nothing waits for the device.
    """
    data: dict[str, Any] = {"type": type(model).__name__}
    if callable(getattr(model, "parameters", None)):
        parameters = list(model.parameters())
        data["num_params"] = sum(p.numel() for p in parameters)
        data["num_trainable_params"] = sum(
            p.numel() for p in parameters if p.requires_grad
        )
    return data
