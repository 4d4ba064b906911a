"""Threads of the recorder's own: no profiler of Python code records what they do.

torch's tracer (`with_stack`), and others, put their function on every thread that there is
when they begin. Calls of the recorder's threads would stand in the program's trace by the
thousand, and cost time in training.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def own_thread(name: str, work: Callable[[], object]) -> threading.Thread:
    """A daemon that is not profiled from its start on; not started."""

    def run() -> None:
        leave_profilers()
        work()

    return threading.Thread(target=run, name=f"memboard-{name}", daemon=True)


def leave_profilers() -> None:
    """Take this thread out of a profiler that has begun meanwhile; called at every turn."""
    if sys.getprofile() is not None:
        sys.setprofile(None)
