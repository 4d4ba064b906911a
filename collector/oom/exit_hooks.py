"""Hooks where a program ends without asking: uncaught exceptions and SIGTERM.

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
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.guard import guarded
from memboard.collector.core.patches import Patches
from memboard.collector.core.plain import PROGRAM_ENDS
from memboard.collector.core.warn_once import warn
from memboard.collector.process import fork, lifecycle

if TYPE_CHECKING:
    from collections.abc import Callable

SIGNAL_SECONDS: Final = 2.0
"""The longest wait of a signal for what is being written."""


class ExitHooks:
    """The hooks of this process, installed for those who hold them."""

    def __init__(self) -> None:
        self._holders: set[int] = set()
        self._signal_holders: set[int] = set()
        self._patches = Patches()  # Of every `excepthook`
        self._handler: tuple[Any, Any] | None = None
        """What handled SIGTERM, and what does now."""

    def hold(self, holder: object) -> None:
        """See uncaught exceptions from now on."""
        if not self._holders:
            self._patches = Patches()
            for owner, made in (
                (sys, _excepthook(sys.excepthook)),
                (threading, _thread_excepthook(threading.excepthook)),
            ):
                self._patches.attribute(owner, "excepthook", made)
        self._holders.add(id(holder))

    def hold_signal(self, holder: object) -> str:
        """See SIGTERM from now on; why that cannot be, empty where it can."""
        if threading.current_thread() is not threading.main_thread():
            return "handlers of signals can be set on the main thread alone"
        if not self._signal_holders:
            before = signal.getsignal(signal.SIGTERM)
            if before is None:
                return "a handler is installed that Python does not know"
            handler = _on_sigterm(before)
            signal.signal(signal.SIGTERM, handler)
            self._handler = before, handler
        self._signal_holders.add(id(holder))
        return ""

    def release(self, holder: object) -> None:
        """See nothing any more; the last one's puts back what was there."""
        self._holders.discard(id(holder))
        self._signal_holders.discard(id(holder))
        self._restore()

    def after_fork(self) -> None:
        """No recorder lives here: this is a forked child."""
        self._holders.clear()
        self._signal_holders.clear()
        self._restore()

    def _restore(self) -> None:
        """Put back what nobody needs replaced any more."""
        if not self._holders:
            self._patches.remove()
        if not self._signal_holders and self._handler is not None:
            before, handler = self._handler
            self._handler = None
            with suppress(ValueError):  # closed on another thread: ours passes on
                if signal.getsignal(signal.SIGTERM) is handler:
                    signal.signal(signal.SIGTERM, before)


def _excepthook(before: Callable[..., Any]) -> Callable[..., None]:
    def excepthook(kind: Any, error: Any, traceback: Any) -> None:
        _uncaught(error, threading.current_thread().name)
        before(kind, error, traceback)

    return excepthook


def _thread_excepthook(before: Callable[..., Any]) -> Callable[..., None]:
    def excepthook(args: Any) -> None:
        _uncaught(args.exc_value, getattr(args.thread, "name", ""))
        before(args)

    return excepthook


def _unreported(where: str, error: BaseException, *_: Any) -> None:
    cause = "SIGTERM" if where == "_signalled" else "an exception"
    warn("%s could not be reported", cause, error=error)


@guarded(_unreported)
def _uncaught(error: Any, thread: str) -> None:
    if isinstance(error, BaseException) and not isinstance(error, PROGRAM_ENDS):
        reporter = lifecycle.newest_reporter()
        if reporter is not None:
            reporter.uncaught(error, thread)


@guarded(_unreported)
def _signalled(before: Any) -> None:
    ends = before == signal.SIG_DFL  # nothing of the program's runs after this
    ending = tuple(reversed(lifecycle.all_live())) if ends else ()
    for session in ending:
        session.signalled("SIGTERM")
    reporter = lifecycle.newest_reporter()
    if reporter is not None:
        reporter.signalled("SIGTERM", 0.0 if ends else SIGNAL_SECONDS)
    deadline = time.monotonic() + SIGNAL_SECONDS
    for session in ending:
        session.end_by("SIGTERM", max(0.0, deadline - time.monotonic()))


def _on_sigterm(before: Any) -> Callable[[int, Any], None]:
    def handler(number: int, frame: Any) -> None:
        _signalled(before)
        if callable(before):
            before(number, frame)
        elif before == signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    return handler


exit_hooks: Final = ExitHooks()
fork.watch(exit_hooks)
