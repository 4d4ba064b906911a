"""What goes wrong while traces are saved and read, in words."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from collector.core.warn_once import remedy_for

if TYPE_CHECKING:
    from pathlib import Path

    from collector.core.warn_once import WarnOnce
    from collector.torch_profiler.source import Trace


class OverBudgetError(Exception):
    """A trace that was larger than what is left of the budget."""


class NoRoomError(OSError):
    """The disk is nearly full."""

    def __init__(self, text: str) -> None:
        super().__init__(errno.ENOSPC, text)


class Telling:
    """Warns of each problem once."""

    def __init__(self, warn_once: WarnOnce) -> None:
        self._warn_once = warn_once

    def lost(self, trace: Trace, error: Exception) -> None:
        """A trace was not saved."""
        remedy = "Please report this."
        if isinstance(error, OverBudgetError):
            remedy = (
                "Raise it, or keep fewer traces (torch_profiler.num_traces_to_keep)."
            )
        elif isinstance(error, OSError):
            remedy = remedy_for(error)
        known = isinstance(error, (OSError, OverBudgetError))
        self._warn_once(
            f"torch_profiler save {type(error).__name__}",
            "the trace of steps %d to %d was not saved and nothing of it is left: %s."
            " Training and recording go on. %s",
            trace.first_step,
            trace.last_step,
            error,
            remedy,
            error=None if known else error,
        )

    def unread(self, path: Path, error: Exception) -> None:
        """A trace is saved and could not be read."""
        self._warn_once(
            f"torch_profiler digest {type(error).__name__}",
            "the trace %s is saved, but it could not be read: its operators are not"
            " recorded. Training and recording go on. Please report this.",
            path,
            error=error,
        )

    def file(self, path: Path, error: OSError) -> None:
        """A file that belongs to a trace was not written."""
        self._warn_once(
            f"torch_profiler {type(error).__name__} {error.errno}",
            "%s could not be written: %s. %s",
            path,
            error,
            remedy_for(error),
        )

    def post_process(self, path: Path, error: Exception) -> None:
        """The user's own function failed."""
        self._warn_once(
            "torch_profiler.post_process",
            "torch_profiler.post_process failed for %s; the trace is there all the"
            " same, and the rest goes on. Correct the function.",
            path,
            error=error,
        )

    def slow(self, seconds: float, *, is_saved: bool) -> None:
        """The end of a recording has waited long enough; `is_saved`: all files are."""
        if is_saved:
            self._warn_once(
                "torch_profiler close",
                "after %d s a trace is still being read. Its file is saved, its operators"
                " are not recorded. Record less of each step, or fewer steps.",
                seconds,
            )
        else:
            self._warn_once(
                "torch_profiler close",
                "after %d s a trace is still being saved and may be lost. Record"
                " less of each step, or fewer steps.",
                seconds,
            )
