"""Decorating whatever can be called, so that each call happens inside a block.

A block is a context manager that is made anew for every call. What is decorated keeps
its kind (plain, coroutine, generator, async generator), its signature and its results.
A generator's block lasts from the first item that a consumer takes to its end, whoever
runs in between.
"""

from __future__ import annotations

import functools
import inspect
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from memboard.collector.core.compiling import traced_as

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

Block: TypeAlias = AbstractContextManager[Any]
"""Context manager around a call."""

Function = TypeVar("Function", bound="Callable[..., Any]")


def wrapped(function: Function, block: Callable[[], Block | None]) -> Function:
    """`function` with each call inside `block()`; None: the call runs straight through.

    A staticmethod or classmethod stays one. In code that torch.compile compiles there is
    no block.

    Raises:
        TypeError: it is nothing that can be called.
    """
    traced_as(block, _no_block)
    if isinstance(function, (staticmethod, classmethod)):
        inner = wrapped(function.__func__, block)
        return cast("Function", type(function)(inner))
    if not callable(function):
        raise TypeError(f"a {type(function).__name__} cannot be called")
    for is_one, wrap in (
        (inspect.iscoroutinefunction, _awaited),
        (inspect.isgeneratorfunction, _generated),
        (inspect.isasyncgenfunction, _streamed),
    ):
        if is_one(function):
            return cast("Function", wrap(function, block))

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        around = block()
        if around is None:
            return function(*args, **kwargs)
        with around:
            return function(*args, **kwargs)

    return cast("Function", called)


def _no_block() -> None:
    """What torch.compile makes of a block."""


def _awaited(function: Any, block: Callable[[], Block | None]) -> Any:
    @functools.wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        with block() or nullcontext():
            return await function(*args, **kwargs)

    return awaited


def _generated(function: Any, block: Callable[[], Block | None]) -> Any:
    @functools.wraps(function)
    def generated(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with block() or nullcontext():
            return (yield from function(*args, **kwargs))

    return generated


def _streamed(function: Any, block: Callable[[], Block | None]) -> Any:
    @functools.wraps(function)
    async def streamed(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        with block() or nullcontext():
            stream = function(*args, **kwargs)
            step = stream.asend(None)
            while True:
                try:
                    item = await step
                except StopAsyncIteration:
                    return
                try:
                    step = stream.asend((yield item))
                except GeneratorExit:  # nobody asks for more
                    await stream.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001  # is passed on
                    step = stream.athrow(error)

    return streamed
