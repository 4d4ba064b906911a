"""Tells torch.compile how to treat the recorder's calls, and finds compiled code.

Where a call says how far training is (`step`, `phase`, `mark` ...), it must happen: it is
left out of the graph and made as it is. Where it says how long a stretch of code takes
(`span`, `profiled`, `instant`, `log`), nothing is left of it in compiled code: a graph
has no such stretches, and to break it for them would cost what compiling is to save.
torch does the same with `record_function`.

Both are attributes that torch.compile looks for, set without importing torch.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Function = TypeVar("Function", bound="Callable[..., Any]")

COMPILED_CALL: Final = "_compiled_call_impl"
"""Attribute of a module that was told `compile()`: what is called in its place."""

_REASON = (
    "it records where training is, so it must run: call it outside of the compiled"
    " function, or compile without fullgraph=True"
)


def untraced(function: Function) -> Function:
    """A function that torch.compile calls as it is, where compiled code calls it.

    Tracing into it would warn of the clocks it reads and compile anew at each step.
    """
    function.__dict__["_torchdynamo_disable"] = True
    function.__dict__["_torchdynamo_disable_msg"] = _REASON
    return function


def traced_as(function: Function, traced: Callable[..., Any]) -> Function:
    """A function in place of which torch.compile traces another one."""
    function.__dict__["_torchdynamo_inline"] = traced
    return function


def nothing(*_: Any, **__: Any) -> None:
    """What is left of a call in compiled code."""


def compiled_away(function: Function) -> Function:
    """A function of which nothing is left in compiled code.

    It costs nothing where it is called thousands of times a step: to ask torch whether
    code is being compiled takes two calls of Python's each time.
    """
    return traced_as(function, nothing)


def compiles_anything() -> bool:
    """Whether torch.compile was called in this process; imports nothing."""
    dynamo: Any = sys.modules.get("torch._dynamo")
    backends = getattr(getattr(dynamo, "eval_frame", None), "cached_backends", {})
    return any(backend is not None for backend in dict(backends).values())


def is_wrapper(module: Any) -> bool:
    """Whether a module is what `torch.compile(module)` returned."""
    return type(module).__name__ == "OptimizedModule"


def is_compiled(module: Any) -> bool:
    """Whether a module itself is compiled, in either way."""
    return getattr(module, COMPILED_CALL, None) is not None or is_wrapper(module)


def uncompiled(model: Any) -> Any:
    """The module behind `torch.compile(model)`; a module that is not compiled, itself."""
    return getattr(model, "_orig_mod", model)
