"""Models that torch.compile has touched, and keeping what it compiled usable.

Below a dispatch mode torch runs the Python code instead of the compiled one, and from
then on for ever: a compiled function that is called below any mode is marked to be
skipped, and later steps would stay eager. While a window is open the compiler's stance
is therefore "run eagerly", which marks nothing. What is tracked is the eager step, an
estimate of the compiled one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from collector.sources.contract import Unavailable

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


class EagerStance:
    """The compiler told to run everything eagerly, and told otherwise again."""

    def __init__(self) -> None:
        self._guard: Any = None

    def take(self) -> None:
        """Run eagerly from now on.

        Raises:
            Unavailable: compiled code is running on this thread.
        """
        try:
            self._guard = torch.compiler.set_stance("force_eager")
        except RuntimeError as error:
            raise Unavailable(
                f"modules cannot be tracked from inside compiled code ({error})",
                "Begin the tracked call outside of what torch.compile compiles.",
            ) from error

    def leave(self) -> None:
        """Go back to what was before, unless the user has chosen since."""
        guard, self._guard = self._guard, None
        if guard is None:
            return
        from torch._dynamo import eval_frame

        if getattr(eval_frame, "_stance", guard.stance) is not guard.stance:
            return
        try:
            guard.__exit__(None, None, None)
        except RuntimeError:  # compiled code is running: it goes on compiled next time
            eval_frame._stance = guard.prev  # noqa: SLF001
