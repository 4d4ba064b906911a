"""Processes that end with the one that started them, however that ends.

Also by SIGKILL, where nobody is left to end them: Linux does it. A process is told so by
itself, since nothing of ours may run between a fork and the program: as a program, this
file becomes the one that its arguments name. It imports nothing that takes time.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_PR_SET_PDEATHSIG: Final = 1


def bound(command: Sequence[str]) -> list[str]:
    """`command` so that its process ends with the thread that starts it.

    Elsewhere than on Linux it is returned as it is: the process outlives a SIGKILL there.
    """
    if sys.platform != "linux" or not sys.executable:
        return list(command)
    parent = str(os.getpid())
    return [sys.executable, "-I", "-S", __file__, parent, *command]


def end_with(parent: int) -> None:
    """Have this process killed when `parent`, which has started it, ends; now, if it has.

    Elsewhere than on Linux it does nothing.
    """
    if sys.platform != "linux":
        return
    import ctypes

    number = ctypes.c_ulong(signal.SIGKILL)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:  # it ended before this was said
        os._exit(1)


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606  # what our caller starts
