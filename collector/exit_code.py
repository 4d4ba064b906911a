"""The code that `sys.exit` ends the program with, for recorders that nobody closed.

At exit Python tells nobody: the exception is gone by then, and `sys` does not keep it. So
while a recorder lives, `sys.exit` (and `exit` of `site`) raises a SystemExit that can be
seen to die. Whoever catches it has a frame on the stack when it does; the interpreter,
which ends the program with it, has none. A bare `raise SystemExit` is not seen.
"""

from __future__ import annotations

import builtins
import dis
import sys
import threading
import weakref
from typing import Any, Final, NoReturn

from collector.plain import text_of


class _Exit(SystemExit):
    """A SystemExit that takes weak references."""

    def __reduce__(self) -> tuple[Any, ...]:
        return SystemExit, self.args


_Exit.__name__ = _Exit.__qualname__ = SystemExit.__name__
_Exit.__module__ = SystemExit.__module__

_PLACES: Final = ((sys, "exit"), (builtins, "exit"), (builtins, "quit"))

_before: Final[dict[tuple[Any, str], Any]] = {}
"""What stood at each place."""
_raised: Final[dict[int, tuple[weakref.ref[_Exit], Any]]] = {}
"""Those that live: each with its code."""
_ended: Final[list[Any]] = []
"""The code that ends the program, once it does."""


def watch() -> None:
    """See how the program exits from now on."""
    _ended.clear()
    for owner, name in _PLACES:
        found = getattr(owner, name, None)
        if found is not None and found is not _exit:
            _before[owner, name] = found
            setattr(owner, name, _exit)


def leave() -> None:
    """Put back what was there, unless somebody has put something else there."""
    for (owner, name), found in _before.items():
        if getattr(owner, name, None) is _exit:
            setattr(owner, name, found)
    _before.clear()


def ended_by() -> SystemExit | None:
    """The exit that ends the program, where it is known. To be asked at exit."""
    codes = _ended.copy()
    for reference, code in tuple(_raised.values()):
        error = reference()  # a frame that it passed may hold it, and it that frame
        if error is not None and _has_left(error):
            codes.append(code)
    return SystemExit(codes[-1]) if codes else None


def _exit(code: Any = None, /) -> NoReturn:
    """Exit the interpreter by raising SystemExit(code)."""
    error = _Exit(*(() if code is None else (code,)))
    if threading.current_thread() is threading.main_thread():
        key = id(error)
        held = code if code is None or type(code) is int else text_of(code)
        _raised[key] = weakref.ref(error, lambda _: _died(key)), held
    raise error


def _has_left(error: SystemExit) -> bool:
    """Whether it left every frame: one that catches an exception goes on, and returns."""
    at = error.__traceback__
    frame = None if at is None else at.tb_frame
    if frame is None:
        return False
    while frame is not None:
        if dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("RETURN"):
            return False
        frame = frame.f_back
    return True


def _died(key: int) -> None:
    """Nobody holds it any more: has the interpreter dropped it, or who caught it?"""
    _, code = _raised.pop(key, (None, None))
    try:
        sys._getframe(2)  # noqa: SLF001  # beyond this and the callback
    except ValueError:
        _ended.append(code)
