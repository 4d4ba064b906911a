"""Named stretches of code, moments and counters, on the thread they happen on.

    with rec.span("forward"):          # of this recorder
    with mb.span("forward"):    # of whichever is active, or of none
    @mb.span("validate")        # functions, coroutines and (async) generators
    loading = rec.span("load").start() # ... and later, anywhere: loading.stop()
    rec.instant("best so far", loss=0.3)
    rec.log({"queue": 17})
    with rec.span("eval", memory=True):  # snaps memory too: see mb.profiled

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
- Code that torch.compile compiles has no spans in it, see `memboard.collector.core.compiling`.
- Of a generator the span lasts from the first item to the end, whoever runs in between.
"""

from __future__ import annotations

import sys
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from memboard.collector.core.compiling import nothing
from memboard.collector.core.guard import guarded, say
from memboard.collector.core.plain import text_of
from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.errors import SpanError
from memboard.collector.hooks.wrapping import wrapped
from memboard.collector.process import lifecycle
from memboard.collector.steps.spans.log import PLAIN, clock_ns

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

    from memboard.collector.recording import Recording
    from memboard.collector.steps.spans.log import SpanOptions

Function = TypeVar("Function", bound="Callable[..., Any]")

warn_once: Final = WarnOnce()
"""Of what spans, instants and counters are given: each is told once per process."""


def tell(where: str, error: BaseException, *_: Any, **__: Any) -> None:
    """Tell what went wrong in a call that belongs to no recorder, or not yet."""
    say(warn_once, where, error)


# The spans under way, the innermost last: of each thread and each task its own.

MAX_DEPTH: Final = 256
"""Spans under way at once, of one thread or task. Of more, as of spans that are started
in a loop and never stopped, the outermost count as ended."""

Entered: TypeAlias = "list[Any]"
"""A span under way, by the places below."""

SPAN: Final = 0
SINK: Final = 1
LOG: Final = 2
"""Its recorder's `SpanLog`; None once the span has ended."""
OPENED: Final = 6
"""Index of `Recording.open_span`'s result; between are depth, `At` and flags, after it
when the span began and its place among the parts of the step, or 0."""

stack: Final[ContextVar[tuple[Entered, ...]]] = ContextVar("memboard_spans", default=())
"""Those of the current thread or task."""

by_thread: Final[dict[int, tuple[Entered, ...]]] = {}
"""The same by thread, as others see it: of several tasks what the last one said."""


_ident: Final = threading.get_ident
newest: Final = lifecycle.newest


class _NoProfiler:
    """Stands for torch's, where there is none."""

    _is_profiler_enabled = False


class TorchProfiler:
    """Whether torch's profiler runs: the module's own flag is the quickest to ask."""

    module: Any = _NoProfiler

    @classmethod
    def find(cls) -> None:
        """Look for it, where torch has been imported."""
        profiler = sys.modules.get("torch.autograd.profiler")
        if hasattr(profiler, "_is_profiler_enabled"):
            cls.module = profiler


def _itself(function: Any, *_: Any) -> Any:
    return function


class Span:
    """A context manager, a decorator, and something to `start` and `stop`.

    One object may be entered again and again, by several threads and tasks at once.
    `begin` and `end` are what every span costs, and written out for that.
    """

    __slots__ = ("_args", "_name", "_options", "_sink", "_started")

    def __init__(
        self,
        name: str,
        sink: Recording | None = None,
        options: SpanOptions = PLAIN,
        args: dict[str, Any] | None = None,
    ) -> None:
        """`sink` None: the recorder that is active when the span begins, if any.

        `args`: plain values, see `span_log.plain_args`.
        """
        self._name = name
        self._sink = sink
        self._options = options
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
        options = self._options
        flags = options.flags | log.keeps
        opened = None
        if (
            options.is_special
            or log.device.ledger is not None
            or TorchProfiler.module._is_profiler_enabled  # noqa: SLF001
        ):
            if options.states is not None:
                flags = options.flags | log.kept(options.states)
            opened = sink.open_span(self._name, options)
        before = stack.get()
        if before and (before[-1][2] is not log or len(before) >= MAX_DEPTH):
            before = _alive(before)[1 - MAX_DEPTH :]
        ident, now = _ident(), clock_ns()
        entered = [self, sink, log, len(before), log.at, flags, opened, now, 0]
        if options.part >= 0 and log.parts is not None and log.parts.thread == ident:
            entered[8] = log.parts.begin(options.part, now)
        by_thread[ident] = spans = (*before, entered)
        stack.set(spans)
        return self

    @guarded(tell, traced=nothing)
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        before = stack.get()
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
        before = stack.get()
        self.__enter__()
        spans = stack.get()
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
        name, sink, options, args = self._name, self._sink, self._options, self._args
        return wrapped(function, lambda: Span(name, sink, options, args))

    def end(self, entered: Any, error: BaseException | None, now_ns: int) -> None:
        # End what `begin` returned
        _, sink, log, depth, step_and_state, flags, opened, since_ns, place = entered
        if log is None:  # ended by another thread
            return
        if error is not None:
            sink.passed(error)  # which looks at what is under way
        entered[2] = None
        before = stack.get()
        if before and before[-1] is entered:
            spans = before[:-1]
        else:
            spans = tuple(other for other in before if other is not entered)
        ident = _ident()
        stack.set(spans)
        if spans:
            by_thread[ident] = spans
        else:
            by_thread.pop(ident, None)
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
            self._options.category,
            ident,
            since_ns,
            now_ns - since_ns,
            depth,
            step_and_state,
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
        return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        return None

    def start(self) -> Self:
        return self

    def stop(self) -> None:
        return

    def __call__(self, function: Function) -> Function:
        return function


_ENDED: Final = Span("")
"""Stands for a span whose recorder has closed."""


def release(sink: Recording) -> None:
    """It has closed: spans that never end must not keep it alive, and all it holds."""
    for entered in tuple(by_thread.values()):
        for entry in entered:
            if (
                entry[SINK] is sink and entry[OPENED] is None
            ):  # nothing to do at its end
                entry[LOG] = None
                entry[SPAN], entry[SINK] = _ENDED, None


def under_way() -> tuple[str, ...]:
    """Names of the spans under way here, outermost first.

    On a thread without any, those of the other threads: autograd's have none, and what
    they do belongs to whoever waits for them.
    """
    entered = stack.get()
    if not entered:
        others = tuple(by_thread.values())
        entered = tuple(entry for spans in others for entry in spans)
    return tuple(entry[SPAN].name for entry in entered if entry[LOG] is not None)


def _alive(entered: tuple[Entered, ...]) -> tuple[Entered, ...]:
    """Those that another thread has not ended, and whose recorder lives."""
    return tuple(
        entry
        for entry in entered
        if entry[LOG] is not None and entry[SINK].span_log is not None
    )
