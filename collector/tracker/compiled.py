"""Models that torch.compile has touched.

Below a dispatch mode torch runs the Python code instead of the compiled one: what is
tracked is the eager step, an estimate of the compiled one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn


def uncompiled(model: Any) -> Any:
    """The module behind `torch.compile(model)`; a module that is not compiled, itself."""
    return getattr(model, "_orig_mod", model)


def is_compiled(model: nn.Module) -> bool:
    """Whether the model or a module below it is compiled."""
    return any(
        getattr(module, "_compiled_call_impl", None) is not None
        or type(module).__name__ == "OptimizedModule"
        for module in model.modules()
    )
