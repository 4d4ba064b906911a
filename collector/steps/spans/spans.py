"""Named stretches of code, moments and counters, on the thread they happen on.

    with rec.span("forward"):          # of this recorder
    with collector.span("forward"):    # of whichever is active, or of none
    @collector.span("validate")        # functions, coroutines and (async) generators
    loading = rec.span("load").start() # ... and later, anywhere: loading.stop()
    rec.instant("best so far", loss=0.3)
    rec.log({"queue": 17})
    with rec.span("eval", memory=True):  # snaps memory too: see collector.profiled

Without a live recorder the code runs straight through. In the steps that the schedule
chooses (`spans.states`, or the span's own `states`) each span is kept by itself, with
thread, depth and arguments, and is one of torch's profiler's too while that runs. In all
steps, spans are summed up: one note per name and flush says how many, how long in total
and at most, and the highest peak of an accelerator's memory.

Defined where one might wonder:

- A span is written when it ends, so there is none that only begins or only ends; one that
  has not ended when the recording closes is not recorded. It belongs to the step in which
  it begins.
- `start` of what is started and `stop` of what is not are errors of the program, and
  raise `SpanError`; nothing else here ever raises. Use one object for each stretch.
- Code that torch.compile compiles has no spans in it, see `collector.steps.compiled`.
- Of a generator the span lasts from the first item to the end, whoever runs in between.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from collector.core import lifecycle
from collector.core.guard import guarded
from collector.core.plain import number_of, text_of
from collector.errors import SpanError
from collector.hooks.wrapping import wrapped
from collector.steps.compiled import traced_as
from collector.steps.spans import stack as span_stack
from collector.steps.spans.how import (
    PLAIN,
    USER,
    How,
    how_of,
    known_args,
    known_hows,
    known_states,
    tell,
    troubles,
)
from collector.steps.spans.log import clock_ns
from collector.steps.spans.stack import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from typing_extensions import Self

    from collector.steps.spans.how import States
    from collector.steps.spans.log import SpanLog
    from collector.steps.spans.stack import Entered

Function = TypeVar("Function", bound="Callable[..., Any]")


class SpanSink(Protocol):
    """Who takes spans and profiled calls: a recorder. None of these may raise."""

    span_log: SpanLog | None
    """Where spans go; None: nowhere, it is not live."""

    def open_span(self, name: str, how: How) -> Any:
        """A span begins of which there is more to do; what is returned comes back."""

    def close_span(self, opened: Any, error: BaseException | None) -> int | None:
        """It has ended; its peak in bytes, where there is one."""

    def passed(self, error: BaseException) -> None:
        """An exception leaves a span or a profiled call; it may yet be caught."""

    def begin_call(self, function: str) -> Any:
        """A profiled call begins; None where it is not collected."""

    def end_call(self, call: Any, error: BaseException | None) -> None:
        """The call that `begin_call` returned has ended."""


class _NoProfiler:
    """Stands for torch's, where there is none."""

    _is_profiler_enabled = False


class TorchProfiler:
    """Whether torch's profiler runs: the module's own flag is the quickest to ask."""

    module: Any = _NoProfiler

    @classmethod
    def find(cls) -> None:
        """Look for it, where torch has been imported."""
        found = sys.modules.get("torch.autograd.profiler")
        if hasattr(found, "_is_profiler_enabled"):
            cls.module = found


_ident: Final = threading.get_ident
_stack: Final = span_stack.stack
_by_thread: Final = span_stack.by_thread
newest: Final[Any] = lifecycle.newest


def _itself(given: Any, *_: Any) -> Any:
    return given


def nothing(*_: Any, **__: Any) -> None:
    """What is left of a call in compiled code."""


class Span:
    """A context manager, a decorator, and something to `start` and `stop`.

    One object may be entered again and again, by several threads and tasks at once.
    `begin` and `end` are what every span costs, and written out for that.
    """

    __slots__ = ("_args", "_how", "_name", "_sink", "_started")

    def __init__(
        self,
        name: str,
        sink: SpanSink | None = None,
        how: How = PLAIN,
        args: dict[str, Any] | None = None,
    ) -> None:
        """`sink` None: the recorder that is active when the span begins, if any.

        `args`: plain values, see `span_log.plain_args`.
        """
        self._name = name
        self._sink = sink
        self._how = how
        self._args = args
        self._started: Entered | bool = False
        """What `start` began; True where there was no recorder."""

    @property
    def name(self) -> str:
        """As shown with its times."""
        return text_of(self._name)

    @guarded(tell, instead=_itself, traced=_itself)
    def __enter__(self) -> Self:
        sink = self._sink
        if sink is None:
            sink = newest()
            if sink is None:
                return self
        log = sink.span_log
        if log is None:
            return self
        how = self._how
        flags = how.flags | log.keeps
        opened = None
        if (
            how.is_special
            or log.device.ledger is not None
            or TorchProfiler.module._is_profiler_enabled  # noqa: SLF001
        ):
            if how.states is not None:
                flags = how.flags | log.kept(how.states)
            opened = sink.open_span(self._name, how)
        before = _stack.get()
        if before and (before[-1][2] is not log or len(before) >= MAX_DEPTH):
            before = span_stack.alive(before)[1 - MAX_DEPTH :]
        ident, now = _ident(), clock_ns()
        entered = [self, sink, log, len(before), log.at, flags, opened, now, 0]
        if how.part >= 0 and log.parts is not None and log.parts.thread == ident:
            entered[8] = log.parts.begin(how.part, now)
        _by_thread[ident] = spans = (*before, entered)
        _stack.set(spans)
        return self

    @guarded(tell, traced=nothing)
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        before = _stack.get()
        if not before:
            return
        now = clock_ns()
        if before[-1][0] is self:
            self.end(before[-1], error, now)
            return
        for entered in reversed(before):
            if entered[0] is self:
                self.end(entered, error, now)
                return

    def begin(self) -> Entered | None:
        """Begin; what is returned is for `end`. None: there is no recorder."""
        before = _stack.get()
        self.__enter__()
        spans = _stack.get()
        return None if spans is before else spans[-1]

    @guarded(tell, instead=_itself, passes=(SpanError,))
    def start(self) -> Self:
        """Begin here; `stop` may come anywhere, also on another thread.

        Raises:
            SpanError: it was started before, and has not been stopped.
        """
        if self._started:
            raise SpanError(
                f"the span '{self.name}' was started again without a stop. Stop it"
                " first, or use an object of its own for each stretch."
            )
        self._started = self.begin() or True
        return self

    @guarded(tell, passes=(SpanError,))
    def stop(self) -> None:
        """End what `start` began.

        Raises:
            SpanError: it was not started, or is stopped already.
        """
        now, entered = clock_ns(), self._started
        if not entered:
            raise SpanError(
                f"the span '{self.name}' was stopped without a start. Start it first,"
                " or use it as a context manager."
            )
        self._started = False
        if entered is not True:
            self.end(entered, None, now)

    @guarded(tell, instead=lambda _, function: function)
    def __call__(self, function: Function) -> Function:
        """Decorate: each call is a span of its own, and returns what it did."""
        name, sink, how, args = self._name, self._sink, self._how, self._args
        return wrapped(function, lambda: Span(name, sink, how, args))

    def end(self, entered: Any, error: BaseException | None, now_ns: int) -> None:
        """End what `begin` returned."""
        _, sink, log, depth, at, flags, opened, since_ns, place = entered
        if log is None:  # ended by another thread
            return
        if error is not None:
            sink.passed(error)  # which looks at what is under way
        entered[2] = None
        before = _stack.get()
        if before and before[-1] is entered:
            spans = before[:-1]
        else:
            spans = tuple(one for one in before if one is not entered)
        ident = _ident()
        _stack.set(spans)
        if spans:
            _by_thread[ident] = spans
        else:
            _by_thread.pop(ident, None)
        if place:
            log.parts.end(place, now_ns)
        peak_bytes = None if opened is None else sink.close_span(opened, error)
        if not flags:
            return
        if ident not in log.threads:
            log.know_thread(ident)
        rows = log.spans
        rows += (
            self._name,
            self._how.category,
            ident,
            since_ns,
            now_ns - since_ns,
            depth,
            at,
            flags,
            self._args,
            peak_bytes,
        )
        if len(rows) >= log.wake_at:
            log.crowded()


class NoSpan(Span):
    """A span of no recorder: of one that is switched off, and in compiled code."""

    __slots__ = ()

    # It sets nothing: torch.compile makes one for each span that it leaves out.
    def __init__(self, *_: Any) -> None:
        pass

    @property
    def name(self) -> str:
        """It has none."""
        return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None

    def start(self) -> Self:
        """Do nothing."""
        return self

    def stop(self) -> None:
        """Do nothing."""
        return

    def __call__(self, function: Function) -> Function:
        """Return the function itself."""
        return function


def no_span(*_: Any, **__: Any) -> Span:
    """What is left of a span in compiled code."""
    return NoSpan()


_ENDED: Final = Span("")
"""Stands for a span whose recorder has closed."""


def release(sink: SpanSink) -> None:
    """It has closed: see `span_stack.release`."""
    span_stack.release(sink, _ENDED)


def _plain_span(name: Any, sink: SpanSink | None, *_: Any) -> Span:
    return Span(name, sink)


@guarded(tell, instead=_plain_span)
def make_span(
    name: str,
    sink: SpanSink | None,
    category: str,
    states: States,
    args: dict[str, Any] | None,
    memory: bool,
) -> Span:
    """A span as `Recorder.span` and `span` describe it."""
    is_usual = states is None and memory is False and type(category) is str
    how = known_hows.get(category) if is_usual else None
    if how is None:
        how = how_of(category, states, memory)
    return Span(name, sink, how, None if args is None else known_args(args))


def span(
    name: str,
    *,
    category: str = USER,
    states: States = None,
    args: dict[str, Any] | None = None,
    memory: bool = False,
) -> Span:
    """A span of the active recorder; see `Recorder.span`.

    The recorder is looked up whenever the span begins, so a decorator may be applied
    before recording starts. Without a live recorder the code runs straight through, and
    so does code that torch.compile has compiled: put spans around it.
    """
    # Nothing is asked here of what may be anybody's object: that is done under a guard.
    if states is args is None and memory is False:
        if category is USER:
            return Span(name)
        how = known_hows.get(category) if type(category) is str else None
        if how is not None:
            return Span(name, None, how)
    return make_span(name, None, category, states, args, memory)


traced_as(span, no_span)


@guarded(tell, traced=nothing)
def instant(name: str, *, states: States = None, **args: Any) -> None:
    """A moment of the active recorder; see `Recorder.instant`."""
    sink = active_sink()
    if sink is not None:
        put_instant(sink, name, states, args)


@guarded(tell, traced=nothing)
def log(values: Mapping[str, float], *, states: States = None) -> None:
    """Numbers of the active recorder; see `Recorder.log`."""
    sink = active_sink()
    if sink is not None:
        put_numbers(sink, values, states)


def put_instant(
    sink: SpanSink, name: str, states: States, args: dict[str, Any]
) -> None:
    """Of `sink`, where it is live."""
    log = sink.span_log
    if log is not None:
        mask = known_states(states)
        if log.kept(mask):
            log.add_instant(name, USER, known_args(args), mask)


def put_numbers(sink: SpanSink, values: Mapping[str, Any], states: States) -> None:
    """Of `sink`, where it is live; a value that is no number is refused with a word."""
    log = sink.span_log
    if log is None:
        return
    mask = known_states(states)
    for name, value in values.items():
        number = number_of(value)
        if number is None:
            troubles.tell(
                "log",
                "log takes numbers of 64 bits, got a %s for %s; it is ignored. Pass a"
                " Python number: a tensor would have to wait for the device.",
                type(value).__name__,
                text_of(name),
            )
        elif log.kept(mask):
            log.add_counter(text_of(name), number, mask)


def active_sink() -> SpanSink | None:
    """The active recorder as a taker of spans."""
    found: SpanSink | None = newest()
    return found
