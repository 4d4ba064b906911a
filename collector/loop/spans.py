"""Named stretches of code: how long, and on an accelerator how much at the peak.

    with rec.span("forward"):          # of this recorder
    with collector.span("forward"):    # of whichever is active, or of none
    @collector.span("validate")        # functions, coroutines and (async) generators
    with rec.span("eval", memory=True):  # snaps memory too: see collector.profiled

Without a live recorder the code runs straight through. A recorder writes one note per
name and flush: how many, how long in total and at most, and the highest peak. A span
that comes once in a while thus has its own note, and one in every step costs no more.
"""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar, cast

from collector import lifecycle
from collector.loop.compiled import untraced
from collector.loop.wrapping import wrapped

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

Function = TypeVar("Function", bound="Callable[..., Any]")


MAX_NAMES: Final = 64
"""Names made up in a loop must not fill the disk."""

OTHER: Final = "other"


class SpanSink(Protocol):
    """Who takes spans and profiled calls: a recorder. None of these may raise."""

    def open_span(self) -> Any:
        """A span begins; whatever is returned comes back at its end."""

    def close_span(self, name: str, duration_ns: int, opened: Any) -> None:
        """It has ended."""

    def begin_call(self, function: str) -> Any:
        """A profiled call begins; None where it is not collected."""

    def end_call(self, call: Any, error: BaseException | None) -> None:
        """The call that `begin_call` returned has ended."""


class SpanTotals:
    """Spans since the last flush, by name. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may have spans too
        self._totals: dict[str, list[int | None]] = {}

    def add(self, name: str, duration_us: int, peak_bytes: int | None) -> None:
        """Count a span; beyond `MAX_NAMES` names since the last flush as other."""
        with self._lock:
            totals = self._totals
            if name not in totals and len(totals) >= MAX_NAMES:
                name = OTHER
            number, total, most, peak = totals.get(name) or (0, 0, 0, None)
            if peak_bytes is not None and peak_bytes > (peak or 0):
                peak = peak_bytes
            most = max(most or 0, duration_us)
            totals[name] = [(number or 0) + 1, (total or 0) + duration_us, most, peak]

    def take(self) -> list[dict[str, Any]]:
        """The notes' data, and begin anew."""
        with self._lock:
            totals, self._totals = self._totals, {}
        return [
            {
                "name": name,
                "num_spans": number,
                "total_us": total,
                "max_us": most,
                "allocated_peak_bytes": peak,
            }
            for name, (number, total, most, peak) in totals.items()
        ]


class _Entered(NamedTuple):
    span: Span
    sink: SpanSink | None
    opened: Any
    """What `open_span` returned."""
    call: Any
    """What `begin_call` returned."""
    since_ns: int


_entered: ContextVar[tuple[_Entered, ...]] = ContextVar("memboard_spans", default=())
"""Spans under way, the innermost last: of each thread and task its own."""


class Span:
    """A context manager and a decorator.

    One object may be entered again and again, by several threads and tasks at once.
    """

    __slots__ = ("_memory", "_name", "_sink")

    def __init__(
        self, name: str, sink: SpanSink | None = None, *, memory: bool = False
    ) -> None:
        """`sink` None: the recorder that is active when the span begins, if any.

        `memory`: it is a profiled call too.
        """
        self._name = name
        self._sink = sink
        self._memory = memory

    @untraced
    def __enter__(self) -> Self:
        sink = self._sink or active_sink()
        opened = call = None
        if sink is not None:
            if self._memory:
                call = sink.begin_call(self._name)
            opened = sink.open_span()
        now = time.perf_counter_ns()
        _entered.set((*_entered.get(), _Entered(self, sink, opened, call, now)))
        return self

    @untraced
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        now = time.perf_counter_ns()
        under_way = _entered.get()
        for at in range(len(under_way) - 1, -1, -1):
            entered = under_way[at]
            if entered.span is self:
                _entered.set(under_way[:at] + under_way[at + 1 :])
                if entered.sink is not None:
                    duration_ns = now - entered.since_ns
                    entered.sink.close_span(self._name, duration_ns, entered.opened)
                    if entered.call is not None:
                        entered.sink.end_call(entered.call, error)
                return

    def __call__(self, function: Function) -> Function:
        """Decorate: each call is a span of its own."""
        name, sink, memory = self._name, self._sink, self._memory
        return wrapped(function, lambda: Span(name, sink, memory=memory))


def span(name: str, *, memory: bool = False) -> Span:
    """A span of the active recorder: a context manager and a decorator.

    The recorder is looked up whenever the span begins, so a decorator may be applied
    before recording starts. Without a live recorder the code runs straight through.

    Args:
        name: shown with its times; spans of one name are summed up.
        memory: also snap memory at its start and end, on the schedule, as for a
            function decorated with `collector.profiled`.
    """
    return Span(name, memory=memory)


def active_sink() -> SpanSink | None:
    """The active recorder as a taker of spans."""
    return cast("SpanSink | None", lifecycle.newest())
