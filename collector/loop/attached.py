"""What is said of the model that a recorder is told of."""

from __future__ import annotations

from typing import Any


def describe_model(model: Any) -> dict[str, Any]:
    """What a note says about a module: its class and its numbers of parameters.

    Of sharded parameters the whole is counted; nothing waits for the device.
    """
    try:
        model = getattr(model, "_orig_mod", model)  # behind torch.compile
        data: dict[str, Any] = {"type": type(model).__name__}
        if callable(getattr(model, "parameters", None)):
            parameters = list(model.parameters())
            data["num_params"] = sum(p.numel() for p in parameters)
            data["num_trainable_params"] = sum(
                p.numel() for p in parameters if p.requires_grad
            )
    except Exception:  # noqa: BLE001  # a lazy module does not know its sizes yet
        return {"type": type(model).__name__}
    return data
