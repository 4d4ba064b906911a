"""`mb.profiled`: a function whose calls are collected on the schedule.

    @mb.profiled                 # methods, coroutines and generators too
    def training_step(self, batch): ...

    @mb.profiled("forward pass") # under a name of your own

Without a live recorder the call goes straight through: one look at an empty list.

Defined where one might wonder:

- A function is called by its own name in the settings and on the page. Where another
  function has taken that name already, by the qualified one (`Model.training_step`).
- Every call counts, also a recursive one, a nested one and one on another thread; they
  are numbered in the order they begin, for each function and phase by themselves.
- A generator's call lasts from the first item that a consumer takes to its end.
"""

from __future__ import annotations

import difflib
import sys
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from memboard.collector.core.calls import WHOLE_STEP
from memboard.collector.core.guard import guarded
from memboard.collector.core.plain import text_of
from memboard.collector.core.source import SourceInfo
from memboard.collector.functions.kinds import ALL, names
from memboard.collector.hooks.wrapping import wrapped
from memboard.collector.steps.spans.calls import active_sink
from memboard.collector.steps.spans.span import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from memboard.collector.config.sections import FunctionsConfig
    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.recording import Recording

    Note = Callable[[SourceInfo, str, str, str], None]
    """Says that something is recorded, or why it is not."""

Function = TypeVar("Function", bound="Callable[..., Any]")

_MAX_NAME: Final = 200

_LISTS: Final = ("default", "device", "host", "history", "modules")
_MAX_NAMED: Final = 10

_names: dict[str, str] = {WHOLE_STEP: ""}
"""Whose each name is: the function's module and qualified name."""


@overload
def profiled(function: Function, /) -> Function: ...
@overload
def profiled(name: str = "", /) -> Callable[[Function], Function]: ...
def profiled(function_or_name: Any = "", /) -> Any:
    """Decorate a function so that the active recorder collects its calls.

    What is collected, of which functions and which calls, is said by the settings
    `functions`, `schedule` and those of each kind (`hooks`, `activations`, `modules`,
    `history`). The function keeps its signature, its results and its errors.

    Args:
        function_or_name: the function itself, or a name for it: then what is returned
            is the decorator.
    """
    if issubclass(type(function_or_name), str):
        name = text_of(function_or_name, _MAX_NAME)
        return lambda function: _profiled(function, name)
    return _profiled(function_or_name, "")


def name_of(function: Any) -> str:
    """The function's own name, or the qualified one where it is another function's."""
    function = getattr(function, "__func__", function)  # static and class methods
    short = getattr(function, "__name__", type(function).__name__)
    qualified = getattr(function, "__qualname__", short)
    identity = f"{getattr(function, '__module__', '')}.{qualified}"
    for candidate in (short, qualified):
        name = str(candidate)[-_MAX_NAME:]
        if _names.setdefault(name, identity) == identity:
            return name
    return identity[-_MAX_NAME:]


def _itself(function: Any, *_: Any) -> Any:
    return function


@guarded(tell, instead=_itself)
def _profiled(function: Function, function_name: str) -> Function:
    function_name = function_name or name_of(function)
    return wrapped(function, lambda: _block(function_name))


def _block(function: str) -> ProfiledCall | None:
    sink = active_sink()
    return None if sink is None else ProfiledCall(sink, function)


class ProfiledCall:
    """One call: it begins and ends at its recorder."""

    __slots__ = ("_call", "_function", "_sink")

    def __init__(self, sink: Recording, function: str) -> None:
        self._sink = sink
        self._function = function
        self._call: Any = None

    @guarded(tell, traced=_itself)
    def __enter__(self) -> None:
        self._call = self._sink.begin_call(self._function)

    @guarded(tell)
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self._sink.passed(error)
        if self._call is not None:
            # A consumer that asks for no more items is no error of the generator.
            ended = None if isinstance(error, GeneratorExit) else error
            self._sink.end_call(self._call, ended)


# Names in the settings `functions`. A function is called by its own name, so a module in
# front of it, or a slip of the pen, makes a setting that does nothing: not in silence.


def tell_missing(functions: FunctionsConfig, warn_once: WarnOnce) -> None:
    """Say at once which names lead into a module that has no such thing."""
    for function in _named(functions):
        reason_and_remedy = _missing(function)
        if reason_and_remedy is not None:
            warn_once(
                f"function {function}",
                "'%s' in functions: the module %s has no '%s'. Correct the name; a"
                " function is called by its own, without its module.",
                function,
                *reason_and_remedy,
            )


def tell_unmatched(
    functions: FunctionsConfig, seen: Iterable[str], note: Note, warn_once: WarnOnce
) -> None:
    """Say at the end which names no call had; `seen`: those that calls had."""
    called = [name for name in seen if name != WHOLE_STEP]
    for listed in _named(functions):
        if any(names((listed,), function) for function in called):
            continue
        own = listed.rpartition(".")[2]
        near = difflib.get_close_matches(own, called, n=1, cutoff=0.6)
        remedy = f"Did you mean '{near[0]}'? " if near else ""
        remedy += "Decorate the function with mb.profiled, or use a span with"
        remedy += " memory=True; calls inside of compiled code are not seen."
        if called:
            remedy += f" Called were: {', '.join(called[:_MAX_NAMED])}."
        reason = f"no call of a function '{listed}' was seen, which functions names"
        note(SourceInfo(name=f"function {listed}", cost=""), "absent", reason, remedy)
        warn_once(f"function {listed} unseen", "%s. %s", reason, remedy)


def _named(functions: FunctionsConfig) -> list[str]:
    if not functions.enabled:
        return []
    every = [name for list_name in _LISTS for name in getattr(functions, list_name)]
    return [name for name in dict.fromkeys(every) if name not in (ALL, WHOLE_STEP)]


def _missing(dotted: str) -> tuple[str, str] | None:
    """The imported module that a dotted name begins with, and what it does not have."""
    parts = dotted.split(".")
    for length in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:length]))
        if module is None:
            continue
        target: Any = module
        for part in parts[length:]:
            target = getattr(target, part, None)
            if target is None:
                return module.__name__, ".".join(parts[length:])
        return None
    return None
