"""Spans of a trainer's events and of its callbacks, while a recording lives.

A trainer's own events (`event/fit`, `event/epoch` ...) begin and end by name. Methods of
others (callbacks, algorithms, a profiler) are timed by a function in their instance that
calls them; it is taken off when the recording ends. A copy of such an instance, or one
that is sent elsewhere, has its own method in that place.

Nothing here raises into the trainer; what the methods return and raise is theirs.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.patches import Patches
from memboard.collector.steps.spans.log import STATES

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.collector.recorder import Recorder
    from memboard.collector.steps.spans.span import Span

EVENT: Final = "event"
CALLBACK: Final = "callback"

LONG: Final = frozenset({"event/fit", "event/epoch", "event/eval"})
"""Events that are kept whatever the schedule says: they are few."""


class TrainerSpans:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._under_way: dict[str, list[Span]] = {}
        self._patches = Patches()

    def begin(self, event: str, category: str = EVENT) -> None:
        """An event begins; it may nest in one of the same name."""
        states = STATES if event in LONG else None
        span = self._recorder.span(event, category=category, states=states)
        self._under_way.setdefault(event, []).append(span.start())

    def end(self, event: str) -> None:
        """It has ended; one that never began is none."""
        spans = self._under_way.get(event)
        if spans:
            spans.pop().stop()

    def time_method(
        self, owner: Any, method: str, span_name: Callable[..., str]
    ) -> None:
        """Each call of the method is a span; `span_name` is given its arguments."""
        recorder = self._recorder
        before = getattr(owner, method)

        def timed(*args: Any, **kwargs: Any) -> Any:
            with recorder.span(span_name(*args), category=CALLBACK):
                return before(*args, **kwargs)

        self.replace(owner, method, timed)

    def replace(self, owner: Any, method: str, function: Callable[..., Any]) -> None:
        """Have `function` called in the method's place.

        An owner that forbids it is left alone, and one that another recording times.
        """
        with suppress(AttributeError, TypeError, ValueError):
            if not isinstance(vars(owner).get(method), _InPlace):
                stands = _InPlace(owner, method, function)
                self._patches.attribute(owner, method, stands)

    def close(self) -> None:
        """End what is under way, and put everything back."""
        self._patches.remove()
        for spans in self._under_way.values():
            while spans:
                spans.pop().stop()


class _InPlace:
    """Stands in an instance in place of its class's method."""

    def __init__(self, owner: Any, method: str, function: Callable[..., Any]) -> None:
        self._owner = owner
        self._method = method
        self._function = function
        self.__name__ = method

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        owner = memo.get(id(self._owner), self._owner)
        return getattr(type(owner), self._method).__get__(owner)

    def __reduce__(self) -> Any:
        return _own_method, (self._owner, self._method)


def _own_method(owner: Any, method: str) -> Any:
    return getattr(type(owner), method).__get__(owner)


def canonical(event: str) -> tuple[str, bool | None]:
    """An event's name without when it is, and whether it begins; None: it has no length.

    `epoch_start` is the beginning of `epoch`, `after_forward` the end of `forward`.
    """
    name = event
    for word in ("before_", "after_", "_start", "_end"):
        name = name.replace(word, "")
    if event.endswith("_start") or "before_" in event:
        return name, True
    if event.endswith("_end") or "after_" in event:
        return name, False
    return name, None
