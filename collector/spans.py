"""Named stretches of code: how long, and on an accelerator how much at the peak.

    with rec.span("forward"):          # of this recorder
    with collector.span("forward"):    # of whichever is active, or of none
    @collector.span("validate")        # functions, coroutines and generators

Without a live recorder the code runs straight through. A recorder writes each span as
a note; the number of notes per flush is bounded.
"""

from __future__ import annotations

import functools
import inspect
import time
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from collector import lifecycle

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType

    from typing_extensions import Self

Function = TypeVar("Function", bound="Callable[..., Any]")


class SpanSink(Protocol):
    """Who takes spans: a recorder. Neither may raise."""

    def open_span(self) -> Any:
        """A span begins; whatever is returned comes back at its end."""

    def close_span(self, name: str, duration_ns: int, opened: Any) -> None:
        """It has ended."""


class Span:
    """A context manager and a decorator; one object may be entered again and again."""

    __slots__ = ("_entered", "_name", "_sink")

    def __init__(self, name: str, sink: SpanSink | None = None) -> None:
        """`sink` None: the recorder that is active when the span begins, if any."""
        self._name = name
        self._sink = sink
        self._entered: list[tuple[SpanSink | None, Any, int]] = []

    def __enter__(self) -> Self:
        sink = self._sink or active_sink()
        opened = None if sink is None else sink.open_span()
        self._entered.append((sink, opened, time.perf_counter_ns()))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        now = time.perf_counter_ns()
        sink, opened, since = self._entered.pop()
        if sink is not None:
            sink.close_span(self._name, now - since, opened)

    def __call__(self, function: Function) -> Function:
        """Decorate: each call is a span of its own."""
        name, sink = self._name, self._sink
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with Span(name, sink):
                    return await function(*args, **kwargs)

            return cast("Function", awaited)
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generated(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
                with Span(name, sink):
                    return (yield from function(*args, **kwargs))

            return cast("Function", generated)

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            with Span(name, sink):
                return function(*args, **kwargs)

        return cast("Function", called)


def span(name: str) -> Span:
    """A span of the active recorder: a context manager and a decorator.

    The recorder is looked up whenever the span begins, so a decorator may be applied
    before recording starts. Without a live recorder the code runs straight through.
    """
    return Span(name)


def active_sink() -> SpanSink | None:
    """The active recorder as a taker of spans."""
    return cast("SpanSink | None", lifecycle.newest())
