"""The live recorders of this process, and what happens to them at its turns.

- At exit, a recorder that nobody closed is closed, as ended by the exception that ends
  the program where there is one; so by `sys.exit` with a code other than 0.
- A signal that ends the program, where it is listened to, ends the file and no more.
- In a forked child (a dataloader worker), every recorder of the parent is dead: its
  calls return at once, nothing is written. The child may start one of its own.

The newest live recorder is the active one: `mb.span` and `mb.active` mean
it.
"""

from __future__ import annotations

import atexit
import sys
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from memboard.collector.core.plain import own_text
from memboard.collector.process import exit_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.collector.format.records import How
    from memboard.collector.oom.handler import OomHandler
    from memboard.collector.running import session as running
    from memboard.collector.session import Session

_MAX_MESSAGE: Final = 500


Note: TypeAlias = "Callable[[str, dict[str, Any]], None]"
"""Queues a note of this kind, with this data."""


launcher: running.Session | None = None
"""Session that runs and records the program; None: the program started by itself."""

_live: list[Session] = []
_hooked = False


def add(recorder: Session) -> None:
    global _hooked  # noqa: PLW0603  # hooks are per process and cannot be removed
    if not _live:
        exit_code.watch()
        _close_in_multiprocessing()
    if not _hooked:
        _hooked = True
        atexit.register(_at_exit)
    _live.append(recorder)


def remove(recorder: Session) -> None:
    if recorder in _live:
        _live.remove(recorder)
        if not _live:
            exit_code.leave()


def all_live() -> tuple[Session, ...]:
    """Every live recorder, the oldest first."""
    return tuple(_live)


def newest() -> Session | None:
    """The active recorder, or None."""
    return _live[-1] if _live else None


def newest_oom_handler() -> OomHandler | None:
    """Of the newest live recorder that reports such errors; None: there is none."""
    handlers = (getattr(session, "oom", None) for session in reversed(_live))
    return next((handler for handler in handlers if handler is not None), None)


def ending(
    error: BaseException | None,
) -> tuple[How, str]:
    """How a recording ended, and the first line of why. `sys.exit(0)` is no error."""
    if error is None or (isinstance(error, SystemExit) and not error.code):
        return "closed", ""
    text = (own_text(error) or "").strip().split("\n", 1)[0]
    name = type(error).__name__
    return "exception", _short(f"{name}: {text}" if text else name)


def _short(message: str) -> str:
    """Not more than is kept; cut where a sentence ends, if one does late enough."""
    if len(message) <= _MAX_MESSAGE:
        return message
    cut = message[: _MAX_MESSAGE - 1]
    end = cut.rfind(". ") + 1
    return cut[:end] if end > _MAX_MESSAGE // 2 else f"{cut}…"


def _at_exit() -> None:
    error = exit_code.ended_by() or _last_uncaught()
    for recorder in reversed(_live.copy()):
        recorder.close_for(error)


def _close_in_multiprocessing() -> None:
    """A process that multiprocessing has forked skips `atexit`, but not its own."""
    util: Any = sys.modules.get("multiprocessing.util")
    process: Any = sys.modules.get("multiprocessing.process")
    if util is not None and process.parent_process() is not None:
        util.Finalize(None, _at_process_exit, exitpriority=0)


def _at_process_exit() -> None:
    # Before Python 3.13 it is still on its way out of the process's function.
    error = sys.exc_info()[1] or exit_code.ended_by()
    for recorder in reversed(_live.copy()):
        recorder.close_for(error)


def _last_uncaught() -> BaseException | None:
    """The exception that ends the program; the interpreter leaves it in `sys`."""
    if hasattr(sys, "ps1"):
        return None  # an interactive session goes on after its errors
    error: object = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return error if isinstance(error, BaseException) else None
