"""The code that `sys.exit` ends the program with, for recorders that nobody closed.

At exit Python tells nobody: the exception is gone by then, and `sys` does not keep it. So
while a recorder lives, `sys.exit` (and `exit` of `site`, and where a module has taken
either by name) raises a SystemExit that can be seen to die. Whoever catches it has a
frame on the stack when it does; the interpreter, which ends the program with it, has
none.

A bare `raise SystemExit` is seen where Python can say that a frame is left by an
exception (3.12 and newer): by the outermost one of the main thread. A process that
multiprocessing has forked ends with what its own function is left by, whatever it is.
"""

from __future__ import annotations

import builtins
import dis
import sys
import threading
import weakref
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from collector.core.plain import text_of

if TYPE_CHECKING:
    from types import CodeType


class _Exit(SystemExit):
    """A SystemExit that takes weak references."""

    def __reduce__(self) -> tuple[Any, ...]:
        return SystemExit, self.args


_Exit.__name__ = _Exit.__qualname__ = SystemExit.__name__
_Exit.__module__ = SystemExit.__module__

_PLACES: Final = ((sys, "exit"), (builtins, "exit"), (builtins, "quit"))

_NAMES: Final = ("exit", "sys_exit", "quit")
"""By which modules take it."""
_TOOLS: Final = (4, 3)
"""Numbers of `sys.monitoring` that are nobody's by convention."""

_before: Final[dict[tuple[Any, str], Any]] = {}
"""What stood at each place."""
_raised: Final[dict[int, tuple[weakref.ref[_Exit], Any]]] = {}
"""Those that live: each with its code."""
_ended: Final[list[BaseException]] = []
"""What ends the program, once it does."""
_outermost: Final[list[tuple[int, CodeType, bool]]] = []
"""The number under which a frame is watched, its code, and whether it is a process's own."""


def watch() -> None:
    """See how the program exits from now on."""
    _ended.clear()
    known = [getattr(owner, name, None) for owner, name in _PLACES]
    known = [one for one in known if one is not None and one is not _exit]
    for owner, name in (*_PLACES, *_taken(known)):
        found = getattr(owner, name, None)
        if found is not None and found is not _exit:
            _before[owner, name] = found
            setattr(owner, name, _exit)
    _watch_outermost()


def leave() -> None:
    """Put back what was there, unless somebody has put something else there."""
    for (owner, name), found in _before.items():
        if getattr(owner, name, None) is _exit:
            setattr(owner, name, found)
    _before.clear()
    while _outermost:
        tool, *_ = _outermost.pop()
        _monitoring.set_events(tool, 0)
        _monitoring.free_tool_id(tool)


_monitoring: Final[Any] = getattr(sys, "monitoring", None)


def _taken(known: list[Any]) -> list[tuple[Any, str]]:
    """Modules that took one of these functions by its name, before it was watched."""
    return [
        (module, name)
        for module in tuple(sys.modules.values())
        if type(module) is ModuleType and module not in (sys, builtins)
        for name in _NAMES
        if any(module.__dict__.get(name) is one for one in known)
    ]


def _watch_outermost() -> None:
    """See what the main thread's outermost frame is left by, where Python can tell."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001
    if _monitoring is None or frame is None or _outermost:
        return
    process: Any = sys.modules.get("multiprocessing.process")
    bootstrap = None if process is None else process.BaseProcess._bootstrap.__code__  # noqa: SLF001
    while frame.f_back is not None and frame.f_back.f_code is not bootstrap:
        frame = frame.f_back
    is_process = frame.f_back is not None
    for tool in _TOOLS:
        with suppress(ValueError):
            _monitoring.use_tool_id(tool, "memboard")
            _outermost.append((tool, frame.f_code, is_process))
            # Nothing runs slower for it but the leaving of a frame by an exception.
            event = _monitoring.events.PY_UNWIND
            _monitoring.register_callback(tool, event, _unwound)
            _monitoring.set_events(tool, event)
            return


def _unwound(code: CodeType, _offset: int, error: BaseException) -> None:
    for _, own, is_process in _outermost:
        if code is not own:
            continue
        if isinstance(error, SystemExit):
            held = error.code
            is_plain = held is None or type(held) is int
            _ended.append(SystemExit(held if is_plain else text_of(held)))
        elif is_process:
            _ended.append(error)


def ended_by() -> BaseException | None:
    """The exit that ends the program, where it is known. To be asked at exit."""
    ended = _ended.copy()
    for reference, code in tuple(_raised.values()):
        error = reference()  # a frame that it passed may hold it, and it that frame
        if error is not None and _has_left(error):
            ended.append(SystemExit(code))
    return ended[-1] if ended else None


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
        _ended.append(SystemExit(code))
