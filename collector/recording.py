"""What a recording is to code that stands in the program's way: spans, loaders, exits.

They are below the session, and reach it by these protocols alone; `session` has the one
class that fills them. Nothing of it may raise, and each call returns at once where the
recording is not live.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from memboard.collector.steps.spans.log import SpanLog, SpanOptions


class ErrorReporter(Protocol):
    """Who reports what ends a program, or might: the handler of out-of-memory errors."""

    def observed(
        self, device: int, requested: int, limit: int, free: int, device_type: str
    ) -> None:
        """A request could not be served; the exception is yet to be raised."""

    def uncaught(self, error: BaseException, thread: str) -> None:
        """An exception has reached the end of a thread."""

    def signalled(self, name: str, seconds: float) -> None:
        """A signal is about to end the process; `seconds`: longest wait for the snapshot."""


class Recording(Protocol):
    """One recording, live or not."""

    run_dir: Path
    recorder: Any
    """Its `Recorder`, which imports all this."""

    @property
    def oom(self) -> ErrorReporter | None:
        """None: errors are not reported."""

    @property
    def span_log(self) -> SpanLog | None:
        """Where spans go; None: nowhere, it is not live."""

    def note(self, kind: str, data: dict[str, Any], *, user: bool = False) -> None:
        """Queue a note; `user`: a user's loop may cause it, so it is bounded."""

    # Of spans, loaders and profiled functions, on any thread. What `begin_batch`,
    # `open_span` and `begin_call` return is for the call that ends it.

    def begin_batch(self, iterator: Any) -> Any: ...

    def end_batch(self, begun: Any, *, has_come: bool) -> None: ...

    def open_span(self, name: str, options: SpanOptions) -> Any: ...

    def close_span(self, opened: Any, error: BaseException | None) -> int | None: ...

    def begin_call(self, function: str) -> Any: ...

    def end_call(self, call: Any, error: BaseException | None) -> None: ...

    def passed(self, error: BaseException) -> None:
        """An exception leaves a span or a profiled call; it may yet be caught."""

    # Of the process, at its end.

    def close_for(self, error: BaseException | None) -> None: ...

    def signalled(self, signal_name: str) -> None: ...

    def end_by(self, signal_name: str, seconds: float) -> None: ...
