"""The border to training: nothing of ours that goes wrong gets across it.

`guarded` stands around the whole body of every call that training makes. What is raised
inside is told once, with what to do, and the call returns what stands in for its result.
What a call raises on purpose passes, and so does what ends a program: KeyboardInterrupt,
SystemExit, GeneratorExit.

It is also where torch.compile stops: see `collector.steps.compiled`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import TYPE_CHECKING, Any, TypeVar, cast

from collector.steps.compiled import traced_as, untraced

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.core.warn_once import Troubles

Function = TypeVar("Function", bound="Callable[..., Any]")


def say(troubles: Troubles, where: str, error: Exception) -> None:
    """Tell once that a call did not work, and what to do."""
    troubles.tell(
        f"fault {where}",
        "%s did not work; training goes on, and so does the rest of the recording. Give it"
        " what its documentation says; if that is what it was given, please report this.",
        where,
        error=error,
    )


def guarded(
    tell: Callable[..., None],
    *,
    instead: Callable[..., Any] | None = None,
    passes: tuple[type[Exception], ...] = (),
    traced: Callable[..., Any] | None = None,
) -> Callable[[Function], Function]:
    """Decorate a call that training makes.

    Args:
        tell: is given the call's name, what went wrong, and what the call was given.
        instead: makes the result where the call failed, given the same; None: None.
        passes: exceptions that the call is documented to raise.
        traced: what torch.compile makes of the call in code that it compiles; None: the
            call is left out of the graph and made as it is.
    """

    def decorate(function: Function) -> Function:
        name = function.__name__

        def refused(error: Exception, *args: Any, **kwargs: Any) -> Any:
            with contextlib.suppress(Exception):
                tell(name, error, *args, **kwargs)
            return None if instead is None else instead(*args, **kwargs)

        call = functools.wraps(function)(_around(function, passes, refused))
        untraced(call) if traced is None else traced_as(call, traced)
        return cast("Function", call)

    return decorate


def _around(
    function: Callable[..., Any],
    passes: tuple[type[Exception], ...],
    refused: Callable[..., Any],
) -> Callable[..., Any]:
    """`function` with the guard around it."""
    # To pack and unpack arguments costs more than all the rest, and the begin and end of
    # a span happen thousands of times a step: these have a guard of their own shape.
    shape = tuple(inspect.signature(function).parameters)

    def of_one(self: Any) -> Any:
        try:
            return function(self)
        except passes:
            raise
        except Exception as error:  # noqa: BLE001  # the border to training
            return refused(error, self)

    def of_exit(self: Any, kind: Any, error: Any, traceback: Any) -> Any:
        try:
            return function(self, kind, error, traceback)
        except passes:
            raise
        except Exception as fault:  # noqa: BLE001  # the border to training
            return refused(fault, self, kind, error, traceback)

    def of_any(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except passes:
            raise
        except Exception as error:  # noqa: BLE001  # the border to training
            return refused(error, *args, **kwargs)

    if shape == ("self",):
        return of_one
    if shape == ("self", "kind", "error", "traceback"):
        return of_exit
    return of_any
