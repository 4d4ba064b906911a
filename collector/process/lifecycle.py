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
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from memboard.collector.core.plain import own_text
from memboard.collector.process import exit_code

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from memboard.collector.format.records import How
    from memboard.collector.recording import ErrorReporter, Recording

_MAX_MESSAGE: Final = 500


Note: TypeAlias = "Callable[[str, dict[str, Any]], None]"
"""Queues a note of this kind, with this data."""


class Launcher(Protocol):
    """Who runs the program, and is told of each of its recordings: `running.session`."""

    close_seconds: float
    """The longest that the end of a recording waits for what is being written, where that
    is longer than without a launcher."""

    def settings_of(self, config: Any) -> tuple[Any, Mapping[str, Any]]:
        """Files of settings in place of the program's, and settings that win over all."""

    def recording_begins(self, run_dir: Path) -> Path:
        """A recorder is about to be made for a directory; returns the one to take."""

    def recording_begun(self, note: Note) -> None:
        """A recorder lives; `note` writes notes into its file."""

    def recording_ends(self, note: Note, error: BaseException | None) -> None:
        """It is about to close, by the exception where there is one."""

    def step_taken(self, recorder: Any) -> None:
        """A step of a live recorder is done; may raise what is no Exception."""


launcher: Launcher | None = None
"""None: the program started by itself."""

_live: list[Recording] = []
_hooked = False


def add(recorder: Recording) -> None:
    global _hooked  # noqa: PLW0603  # hooks are per process and cannot be removed
    if not _live:
        exit_code.watch()
        _close_in_multiprocessing()
    if not _hooked:
        _hooked = True
        atexit.register(_at_exit)
    _live.append(recorder)


def remove(recorder: Recording) -> None:
    if recorder in _live:
        _live.remove(recorder)
        if not _live:
            exit_code.leave()


def all_live() -> tuple[Recording, ...]:
    """Every live recorder, the oldest first."""
    return tuple(_live)


def newest() -> Recording | None:
    """The active recorder, or None."""
    return _live[-1] if _live else None


def newest_reporter() -> ErrorReporter | None:
    """Of the newest live recorder that reports errors; None: there is none."""
    reporters = (recording.oom for recording in reversed(_live))
    return next((reporter for reporter in reporters if reporter is not None), None)


def ending(
    error: BaseException | None,
) -> tuple[How, str]:
    """How a recording ended, and the first line of why. `sys.exit(0)` is no error."""
    if error is None or (isinstance(error, SystemExit) and not error.code):
        return "closed", ""
    text = (own_text(error) or "").strip().split("\n", 1)[0]
    kind = type(error).__name__
    return "exception", _short(f"{kind}: {text}" if text else kind)


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
