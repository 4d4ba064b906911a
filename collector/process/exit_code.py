"""The code that a program exits with, for recorders that nobody closed.

At exit the exception is gone, and `sys` does not keep a SystemExit. Python 3.12 and newer
report what leaves a frame: there the outermost frame of the main thread is watched.

Before that, `sys.exit` (and `exit` of `site`, and where a module has taken either by name)
notes its code, and the outermost frame's last instruction shows whether an exception left
it. A bare `raise SystemExit` is unknown there. A process that multiprocessing has forked
ends with what its own function is left by, whatever it is.
"""

from __future__ import annotations

import builtins
import functools
import gc
import sys
import threading
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.patches import Patches
from memboard.collector.core.plain import text_of

if TYPE_CHECKING:
    from types import CodeType, FrameType

_PLACES: Final = ((sys, "exit"), (builtins, "exit"), (builtins, "quit"))

_NAMES: Final = ("exit", "sys_exit", "quit")
"""By which modules take it."""

_TOOLS: Final = (4, 3)
"""Numbers of `sys.monitoring` that are nobody's by convention."""

_monitoring: Final[Any] = getattr(sys, "monitoring", None)


class _Watch:
    """Of the main thread's outermost frame, from `watch` to `leave`."""

    def __init__(self, frame: FrameType, *, is_process: bool) -> None:
        self.frame = frame
        self.is_process = is_process
        """It is the function of a process of multiprocessing."""
        self.ended: BaseException | None = None
        """What left the frame, where Python reports it."""
        self.exits: list[SystemExit] = []
        """The last exit that the main thread called, where Python does not."""
        self.patches = Patches()
        self.tool = next(filter(_took_tool, _TOOLS if _monitoring else ()), None)
        if self.tool is None:
            self._replace()
            return
        # Nothing runs slower for it but the leaving of a frame by an exception.
        event = _monitoring.events.PY_UNWIND
        _monitoring.register_callback(self.tool, event, self._unwound)
        _monitoring.set_events(self.tool, event)

    def leave(self) -> None:
        """Put back what was there, unless somebody has put something else there."""
        self.patches.remove()
        if self.tool is not None:
            _monitoring.set_events(self.tool, 0)
            _monitoring.free_tool_id(self.tool)

    def found(self) -> BaseException | None:
        """What has ended the program, where it is known."""
        if self.ended is not None or not self.exits or _has_returned(self.frame):
            return self.ended
        uncaught = getattr(sys, "last_value", None)
        traceback = getattr(uncaught, "__traceback__", None)
        is_other = traceback is not None and traceback.tb_frame is self.frame
        return None if is_other else self.exits[0]

    def _unwound(self, code: CodeType, _offset: int, error: BaseException) -> None:
        if code is not self.frame.f_code:
            return
        if isinstance(error, SystemExit):
            self.ended = _without_objects(error.code)
        elif self.is_process:
            self.ended = error

    def _replace(self) -> None:
        functions = [
            getattr(owner, function_name, None) for owner, function_name in _PLACES
        ]
        functions = [function for function in functions if function is not None]
        for owner, function_name in (*_PLACES, *_taken(functions)):
            function = getattr(owner, function_name, None)
            if function is not None:
                self.patches.attribute(owner, function_name, self._noting(function))

    def _noting(self, function: Any) -> Any:
        @functools.wraps(function)
        def noting(code: Any = None, /) -> Any:
            if threading.current_thread() is threading.main_thread():
                self.exits[:] = [_without_objects(code)]
            return function(code)

        return noting


_watches: Final[list[_Watch]] = []
"""The one there is, while a recorder lives."""


def watch() -> None:
    """See how the program exits from now on."""
    leave()
    frame = main_frame()
    if frame is None:
        return
    process: Any = sys.modules.get("multiprocessing.process")
    bootstrap = None if process is None else process.BaseProcess._bootstrap.__code__  # noqa: SLF001
    while frame.f_back is not None and frame.f_back.f_code is not bootstrap:
        frame = frame.f_back
    _watches.append(_Watch(frame, is_process=frame.f_back is not None))


def main_frame() -> FrameType | None:
    """The main thread's innermost frame.

    Before Python 3.12 a collection of garbage inside `sys._current_frames` can wait for
    ever for a lock that this function holds: a `threading.local` in a circle is enough.
    """
    main = threading.main_thread()
    if threading.current_thread() is main:
        return sys._getframe(1)  # noqa: SLF001
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames().get(main.ident or 0)  # noqa: SLF001
    finally:
        if was_enabled:
            gc.enable()


def leave() -> None:
    while _watches:
        _watches.pop().leave()


def ended_by() -> BaseException | None:
    """The exit that ends the program, where it is known. To be asked at exit."""
    return _watches[0].found() if _watches else None


def _took_tool(tool: int) -> bool:
    """Whether this number of `sys.monitoring` was free, and is ours now."""
    with suppress(ValueError):
        _monitoring.use_tool_id(tool, "memboard")
        return True
    return False


def _taken(functions: list[Any]) -> list[tuple[Any, str]]:
    """Modules that took one of these functions by its name, before it was watched."""
    return [
        (module, name)
        for module in tuple(sys.modules.values())
        if type(module) is ModuleType and module not in (sys, builtins)
        for name in _NAMES
        if any(module.__dict__.get(name) is function for function in functions)
    ]


def _without_objects(code: Any) -> SystemExit:
    is_plain = code is None or type(code) is int
    return SystemExit(code if is_plain else text_of(code))


def _has_returned(frame: FrameType) -> bool:
    import dis  # before Python 3.12 alone

    last = frame.f_code.co_code[frame.f_lasti]
    return dis.opname[last].startswith("RETURN")
