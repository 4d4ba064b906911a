"""What spans, loaders and profiled functions tell a recorder, on any thread.

None of this may raise: it stands in the middle of somebody else's code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.guard import guarded, say
from collector.plain import text_of

if TYPE_CHECKING:
    from collector.loop.span_how import How
    from collector.loop.span_log import SpanLog
    from collector.loop.timing import Timing
    from collector.oom.witness import OomWitness
    from collector.profiling.windows import Windows
    from collector.recording import Recording


def tell(where: str, error: Exception, sink: Sink, *_: Any, **__: Any) -> None:
    """Tell what went wrong in a call of a recorder."""
    say(sink._recording.troubles, where, error)  # noqa: SLF001  # half of its class


class Sink:
    """The side of `Recorder` that faces them: see `loader.BatchSink`, `spans.SpanSink`."""

    span_log: SpanLog | None
    """Where spans go; None: nowhere, it is not live."""
    witness: OomWitness | None
    """What reports out-of-memory errors and other ends; None: switched off."""
    _recording: Recording
    _timing: Timing
    _windows: Windows
    _num_batches: int
    _live: bool

    @guarded(tell)
    def begin_batch(self, iterator: Any) -> Any:
        """See `loader.BatchSink`."""
        automatic = self._timing.automatic if self._live else None
        return None if automatic is None else automatic.begin_batch(iterator)

    @guarded(tell)
    def end_batch(self, begun: Any, *, has_come: bool) -> None:
        """See `loader.BatchSink`."""
        self._num_batches += has_come
        if begun is not None and self._timing.automatic is not None:
            self._timing.automatic.end(begun)

    @guarded(tell)
    def open_span(self, name: str, how: How) -> Any:
        """See `spans.SpanSink`."""
        call = self.begin_call(text_of(name)) if how.memory else None
        return call, self._timing.open_span(name, how)

    @guarded(tell)
    def close_span(self, opened: Any, error: BaseException | None) -> int | None:
        """See `spans.SpanSink`."""
        call, beside = opened
        peak_bytes = self._timing.close_span(beside)
        if call is not None:
            self.end_call(call, error)
        return peak_bytes

    @guarded(tell)
    def passed(self, error: BaseException) -> None:
        """See `spans.SpanSink`."""
        if self.witness is not None and self._live:
            self.witness.passed(error)

    @guarded(tell)
    def begin_call(self, function: str) -> Any:
        """See `spans.SpanSink`."""
        return self._windows.begin(function) if self._live else None

    @guarded(tell)
    def end_call(self, call: Any, error: BaseException | None) -> None:
        """See `spans.SpanSink`."""
        self._windows.end(call, error)
