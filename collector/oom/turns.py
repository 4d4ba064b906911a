"""Where a program ends without asking: uncaught exceptions and SIGTERM.

Python has one hook for uncaught exceptions, one for those of threads, and one handler per
signal. Ours stand in front of whatever was there while a recorder that wants them lives,
call it afterwards, and are taken away again, unless somebody stands in front of ours by
then: such a one stays, does nothing and passes on. In a forked child the signal has its
former handler at once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from collector.core import lifecycle
from collector.core.warn_once import warn
from collector.oom.observer import newest_witness

if TYPE_CHECKING:
    from collections.abc import Callable

_QUIET: Final = (SystemExit, KeyboardInterrupt, GeneratorExit)
"""How a program is meant to end."""


class Turns:
    """The hooks of this process, installed for those who hold them."""

    def __init__(self) -> None:
        self._holders: set[int] = set()
        self._signal_holders: set[int] = set()
        self._hook: tuple[Any, Any] | None = None
        """What stood at `sys.excepthook`, and what stands there now."""
        self._thread_hook: tuple[Any, Any] | None = None
        self._handler: tuple[Any, Any] | None = None
        """The same of SIGTERM."""

    def hold(self, holder: object) -> None:
        """See uncaught exceptions from now on."""
        if not self._holders:
            self._hook = sys.excepthook, _excepthook(sys.excepthook)
            sys.excepthook = self._hook[1]
            self._thread_hook = (
                threading.excepthook,
                _thread_excepthook(threading.excepthook),
            )
            threading.excepthook = self._thread_hook[1]
        self._holders.add(id(holder))

    def hold_signal(self, holder: object) -> str:
        """See SIGTERM from now on; why that cannot be, empty where it can."""
        if threading.current_thread() is not threading.main_thread():
            return "handlers of signals can be set on the main thread alone"
        if not self._signal_holders:
            before = signal.getsignal(signal.SIGTERM)
            if before is None:
                return "a handler stands there that Python does not know"
            handler = _on_sigterm(before)
            signal.signal(signal.SIGTERM, handler)
            self._handler = before, handler
        self._signal_holders.add(id(holder))
        return ""

    def let_go(self, holder: object) -> None:
        """See nothing any more; the last one's puts back what was there."""
        if self._holders:
            self._holders.discard(id(holder))
            if not self._holders:
                self._restore_hooks()
        if self._signal_holders:
            self._signal_holders.discard(id(holder))
            if not self._signal_holders:
                self._restore_handler()

    def after_fork(self) -> None:
        """In a forked child, where no recorder lives."""
        self._holders.clear()
        self._signal_holders.clear()
        self._restore_hooks()
        self._restore_handler()

    def _restore_hooks(self) -> None:
        if self._hook is not None and sys.excepthook is self._hook[1]:
            sys.excepthook = self._hook[0]
        if (
            self._thread_hook is not None
            and threading.excepthook is self._thread_hook[1]
        ):
            threading.excepthook = self._thread_hook[0]
        self._hook = self._thread_hook = None

    def _restore_handler(self) -> None:
        handler, self._handler = self._handler, None
        if handler is None:
            return
        with suppress(ValueError):  # closed on another thread: ours passes on
            if signal.getsignal(signal.SIGTERM) is handler[1]:
                signal.signal(signal.SIGTERM, handler[0])


def _excepthook(before: Callable[..., Any]) -> Callable[..., None]:
    def excepthook(kind: Any, error: Any, traceback: Any) -> None:
        _tell(error, threading.current_thread().name)
        before(kind, error, traceback)

    return excepthook


def _thread_excepthook(before: Callable[..., Any]) -> Callable[..., None]:
    def excepthook(args: Any) -> None:
        _tell(args.exc_value, getattr(args.thread, "name", ""))
        before(args)

    return excepthook


def _tell(error: Any, thread: str) -> None:
    try:
        if isinstance(error, BaseException) and not isinstance(error, _QUIET):
            witness = newest_witness()
            if witness is not None:
                witness.uncaught(error, thread)
    except Exception as fault:  # noqa: BLE001  # the border to training
        warn("an exception could not be reported", error=fault)


def _on_sigterm(before: Any) -> Callable[[int, Any], None]:
    def handler(number: int, frame: Any) -> None:
        try:
            witness = newest_witness()
            if witness is not None:
                witness.signalled("SIGTERM")
            if before == signal.SIG_DFL:  # nothing of the program's runs after this
                for recorder in reversed(lifecycle.all_live()):
                    recorder.end_by("SIGTERM")
        except Exception as fault:  # noqa: BLE001  # the border to training
            warn("SIGTERM could not be reported", error=fault)
        if callable(before):
            before(number, frame)
        elif before == signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    return handler


turns: Final = Turns()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=turns.after_fork)
