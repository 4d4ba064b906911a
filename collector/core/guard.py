"""The border to training: nothing of ours that goes wrong gets across it.

- `guarded` stands around the whole body of every call that training, torch or the
  interpreter makes.
- `Guard` stands around a block: `with guard("close"):`.
- `Breaker` stands around a part that measures or writes: where that fails, it is off for a
  while, a note and one warning say so with the remedy, and it is tried again.

What is raised is said once, with what to do, and the program goes on. What ends a program
passes: `PROGRAM_ENDS`.

It is also where torch.compile stops: see `memboard.collector.core.compiling`.
"""

from __future__ import annotations

import functools
import inspect
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from memboard.collector.core.compiling import traced_as, untraced
from memboard.collector.core.plain import PROGRAM_ENDS, forgiving
from memboard.collector.core.source import Unavailable
from memboard.collector.core.warn_once import remedy_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

    from memboard.collector.core.source import SourceInfo
    from memboard.collector.core.warn_once import WarnOnce

Function = TypeVar("Function", bound="Callable[..., Any]")

FIRST_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 600.0  # Pauses of `Retry`

_MAX_REASON: Final = 1000


def say(warn_once: WarnOnce, where: str, error: BaseException) -> None:
    """Say once that a call did not work, and what to do."""
    warn_once(
        f"fault {where}",
        "%s did not work; training goes on, and so does the rest of the recording. Pass it"
        " what its documentation asks for; if you did, please report this.",
        where,
        error=error,
    )


def guarded(
    tell: Callable[..., None],
    *,
    instead: Callable[..., Any] | None = None,
    passes: tuple[type[BaseException], ...] = (),
    traced: Callable[..., Any] | None = None,
) -> Callable[[Function], Function]:
    """Decorate a call that is not ours to make.

    Args:
        tell: is given the call's name, what went wrong, and what the call was given.
        instead: makes the result where the call failed, given the same; None: None.
        passes: exceptions that the call is documented to raise.
        traced: what torch.compile makes of the call in code that it compiles; None: the
            call is left out of the graph and made as it is.
    """

    def decorate(function: Function) -> Function:
        function_name = function.__name__

        def refused(error: BaseException, *args: Any, **kwargs: Any) -> Any:
            with forgiving:
                tell(function_name, error, *args, **kwargs)
            return None if instead is None else instead(*args, **kwargs)

        call = functools.wraps(function)(_around(function, passes, refused))
        untraced(call) if traced is None else traced_as(call, traced)
        return cast("Function", call)

    return decorate


def _around(
    function: Callable[..., Any],
    passes: tuple[type[BaseException], ...],
    refused: Callable[..., Any],
) -> Callable[..., Any]:
    """`function` with the guard around it."""
    # To pack and unpack arguments costs more than all the rest, and the begin and end of
    # a span happen thousands of times a step: what is called by position alone has a
    # guard of its own shape.
    parameters = inspect.signature(function).parameters.values()
    passes = (*PROGRAM_ENDS, *passes)

    def of_one(self: Any, /) -> Any:
        try:
            return function(self)
        except passes:
            raise
        except BaseException as error:  # noqa: BLE001  # the border to training
            return refused(error, self)

    def of_two(self: Any, first: Any, /) -> Any:
        try:
            return function(self, first)
        except passes:
            raise
        except BaseException as error:  # noqa: BLE001  # the border to training
            return refused(error, self, first)

    def of_three(self: Any, first: Any, second: Any, /) -> Any:
        try:
            return function(self, first, second)
        except passes:
            raise
        except BaseException as error:  # noqa: BLE001  # the border to training
            return refused(error, self, first, second)

    def of_four(self: Any, first: Any, second: Any, third: Any, /) -> Any:
        try:
            return function(self, first, second, third)
        except passes:
            raise
        except BaseException as error:  # noqa: BLE001  # the border to training
            return refused(error, self, first, second, third)

    def of_any(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except passes:
            raise
        except BaseException as error:  # noqa: BLE001  # the border to training
            return refused(error, *args, **kwargs)

    if any(
        parameter.name != "self" and parameter.kind is not parameter.POSITIONAL_ONLY
        for parameter in parameters
    ):
        return of_any
    shapes: dict[int, Callable[..., Any]]
    shapes = {1: of_one, 2: of_two, 3: of_three, 4: of_four}
    return shapes.get(len(parameters), of_any)


class Block:
    """A block of code from which no fault escapes but `passes`: it goes to `failed`."""

    __slots__ = ("_failed", "_passes")

    def __init__(
        self,
        failed: Callable[[BaseException], object],
        passes: tuple[type[BaseException], ...] = (),
    ) -> None:
        self._failed = failed
        self._passes: tuple[type[BaseException], ...] = (*PROGRAM_ENDS, *passes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if kind is None or error is None or issubclass(kind, self._passes):
            return False
        with forgiving:
            self._failed(error)
        return True


class Guard:
    """Makes blocks whose faults are said once each."""

    def __init__(
        self,
        warn_once: WarnOnce,
        message: str = "%s failed; training goes on, and so does the rest of the"
        " recording. Please report this.",
        *,
        note: Callable[[str, BaseException], object] | None = None,
    ) -> None:
        """`message` has room for the block's name. `note`: is told of each fault too."""
        self._warn_once = warn_once
        self._message = message
        self._note = note

    def __call__(self, where: str) -> Block:
        """The guard of one block, by a name of ours."""
        return Block(functools.partial(self.fault, where))

    def fault(self, where: str, error: BaseException) -> None:
        if self._note is not None:
            self._note(where, error)
        self._warn_once(
            f"fault {self._message[:20]} {where}", self._message, where, error=error
        )


class Retry:
    """Growing pauses between two tries of what failed.

    Being out of file descriptors passes, say. Pauses that only grow keep what comes and
    goes from filling a recording with notes and a log with lines.
    """

    __slots__ = ("_due", "_first", "_longest", "num_failures")

    def __init__(
        self, first: float | None = None, longest: float | None = None
    ) -> None:
        """Its first and its longest pause, in seconds."""
        self._first = FIRST_SECONDS if first is None else first
        self._longest = LONGEST_SECONDS if longest is None else longest
        self.num_failures = 0
        self._due = 0.0

    def failed(self) -> float:
        """It has failed, once more perhaps: the pause from now, in seconds."""
        # Past this many doublings the longest pause holds anyway.
        doublings = min(self.num_failures, 30)
        pause = min(self._longest, self._first * 2.0**doublings)
        self.num_failures += 1
        self._due = time.monotonic() + pause
        return pause

    def works(self) -> None:
        """It has worked: the next pause is the first one again."""
        self.num_failures = 0

    def make_due(self) -> None:
        """It may be tried at once."""
        self._due = 0.0

    def is_due(self) -> bool:
        """Whether it may be tried now."""
        return time.monotonic() >= self._due


class Breaker:
    """Switches a part off where it fails, and on where it works again.

    Used as `with breaker:` around what the part does, or told of it. Pauses between two
    tries grow; see `Retry`.
    """

    def __init__(
        self,
        info: SourceInfo,
        note: Callable[[SourceInfo, str, str, str], object],
        warn_once: WarnOnce,
        *,
        message: str = "the source %s failed and is off for now; the others go on. %s",
        setting: str = "",
        remedy: str = "",
        is_asked_for: bool = False,
    ) -> None:
        """Make one.

        Args:
            info: the part's name and cost.
            note: notes a status, its reason and remedy.
            warn_once: takes the warning.
            message: its words, with room for name and remedy.
            setting: what switches the part off; empty: its name.
            remedy: what to do, where it is something else.
            is_asked_for: somebody switched it on and counts on it, so there is a warning
                too where it cannot work here.
        """
        self.info = info
        self.is_failing = False
        self._note = note
        self._warn_once = warn_once
        self._message = message
        self._setting = setting or info.name
        self._remedy = remedy
        self._is_asked_for = is_asked_for
        self._retry = Retry()
        self.said = ""
        """What was noted last: `recorded`, `failed`, or why it is absent."""

    def is_due(self) -> bool:
        """Whether it may be tried: it works, or has been left alone for long enough."""
        return self._retry.is_due()

    def works(self) -> None:
        """It has done what it is to do."""
        self.is_failing = False
        if self.said != "recorded":  # asked first: this is called in every step
            self._say("recorded", "", "")

    def failed(self, error: BaseException) -> float:
        """It has raised: the pause from now, in seconds."""
        self.is_failing = True
        if isinstance(error, Unavailable):
            self._say("absent", error.reason, error.remedy)
            if self._is_asked_for:
                self._warn_once(
                    f"absent {self.info.name} {error.reason}",
                    "%s is switched on, and nothing of it is recorded: %s. %s",
                    self.info.name,
                    error.reason,
                    error.remedy,
                )
            return self._retry.failed()
        remedy = self._remedy or remedy_of(self._setting, error)
        self._say("failed", f"{type(error).__name__}: {error}"[:_MAX_REASON], remedy)
        self._warn_once(
            f"source {self.info.name}",
            self._message,
            self.info.name,
            remedy,
            error=error,
        )
        return self._retry.failed()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if kind is None or error is None:
            self.works()
        elif not issubclass(kind, PROGRAM_ENDS):
            self.failed(error)
            return True
        return False

    def _say(self, status: str, reason: str, remedy: str) -> None:
        """Note what has changed; of one failure after another the first."""
        status_or_reason = status if status != "absent" else reason
        if status_or_reason != self.said:
            self.said = status_or_reason
            self._note(self.info, status, reason, remedy)
