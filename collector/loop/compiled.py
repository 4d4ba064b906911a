"""What torch.compile must know of the recorder's calls: to leave them alone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Function = TypeVar("Function", bound="Callable[..., Any]")


def untraced(function: Function) -> Function:
    """A function that torch.compile calls as it is, where compiled code calls it.

    Tracing into it would warn of the clocks it reads and compile anew at each step.
    The attribute is what `torch.compiler.disable` sets, without importing torch.
    """
    function.__dict__["_torchdynamo_disable"] = True
    return function


def compiles_anything() -> bool:
    """Whether torch.compile was asked for anything in this process; imports nothing."""
    dynamo: Any = sys.modules.get("torch._dynamo")
    backends = getattr(getattr(dynamo, "eval_frame", None), "cached_backends", {})
    return any(backend is not None for backend in dict(backends).values())
