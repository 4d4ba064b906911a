"""The spans under way, the innermost last: of each thread and each task its own.

`spans.Span` puts them there and takes them away; here is who else looks.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final, TypeAlias

MAX_DEPTH: Final = 256
"""Spans under way at once, of one thread or task. Of more, as of spans that are started
in a loop and never stopped, the outermost count as ended."""

Entered: TypeAlias = "list[Any]"
"""A span under way, by the places below."""

SPAN: Final = 0
SINK: Final = 1
"""Its recorder."""
LOG: Final = 2
"""Its recorder's `SpanLog`; None once the span has ended."""
OPENED: Final = 6
"""What `SpanSink.open_span` returned; the places between are depth, `At` and flags, those
after it when the span began and its place among the parts of the step, or 0."""

stack: Final[ContextVar[tuple[Entered, ...]]] = ContextVar("memboard_spans", default=())
"""Those of the current thread or task."""

by_thread: Final[dict[int, tuple[Entered, ...]]] = {}
"""The same by thread, as others see it: of several tasks what the last one said."""


def under_way() -> tuple[str, ...]:
    """Names of the spans under way here, outermost first.

    On a thread without any, those of the other threads: autograd's have none, and what
    they do belongs to whoever waits for them.
    """
    entered = stack.get()
    if not entered:
        others = tuple(by_thread.values())
        entered = tuple(one for spans in others for one in spans)
    return tuple(one[SPAN].name for one in entered if one[LOG] is not None)


def alive(entered: tuple[Entered, ...]) -> tuple[Entered, ...]:
    """Those that another thread has not ended, and whose recorder lives."""
    return tuple(
        one
        for one in entered
        if one[LOG] is not None and one[SINK].span_log is not None
    )


def release(sink: Any, ended: Any) -> None:
    """It has closed: spans that never end must not keep it alive, and all it holds.

    `ended` stands in their place from now on.
    """
    for entered in tuple(by_thread.values()):
        for one in entered:
            if one[SINK] is sink and one[OPENED] is None:  # nothing to do at its end
                one[LOG] = None
                one[SPAN], one[SINK] = ended, None
