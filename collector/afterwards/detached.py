"""A process of its own for what is left to do when a recording has closed.

Training does not wait for it and it outlives training: it has a session of its own, a low
priority, and a log beside the rank files instead of training's output, so that nothing
that waits for training's pipes waits for it. Where the container ends with training, so
does it; what it does can be taken up again.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from memboard.collector.process.child_python import own_module

if TYPE_CHECKING:
    from collections.abc import Sequence


_NICE: Final = 10
"""Whatever else runs on the host goes first."""

_FOLDER: Final = Path(os.sep)
"""It keeps nobody from removing the folder that training runs in."""

_START_SECONDS: Final = 10.0
"""Time for a new interpreter to load the package from a file system."""

_started: Final[list[subprocess.Popen[bytes]]] = []
"""Held, so that none is waited for and none is complained about."""


def start(module: str, arguments: Sequence[str], log: Path, task: bytes = b"") -> None:
    """Start `python -m module arguments` with `task` as its standard input.

    Raises:
        OSError: it cannot be started, or its log cannot be written.
    """
    if not sys.executable:
        raise FileNotFoundError("no Python interpreter is known")
    _started[:] = [process for process in _started if process.poll() is None]
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603  # our own interpreter and module
            own_module(module, *arguments),
            cwd=_FOLDER,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _started.append(process)
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
            pipe.write(task)
    with contextlib.suppress(OSError, AttributeError):  # it then runs as fast as others
        os.setpriority(os.PRIO_PROCESS, process.pid, _NICE)


def reader(
    module: str,
    descriptor: int,
    *,
    asked: IO[bytes],
    answered: IO[bytes],
    failed: IO[bytes],
) -> subprocess.Popen[bytes]:
    """Start `python -m module descriptor`, which reads that open file.

    `asked`, `answered`, `failed`: its standard streams.

    Raises:
        OSError: it cannot be started.
    """
    return subprocess.Popen(  # noqa: S603  # our own interpreter and module
        own_module(module, str(descriptor)),
        cwd=_FOLDER,
        env=environment(),
        stdin=asked,
        stdout=answered,
        stderr=failed,
        pass_fds=(descriptor,),
        start_new_session=True,
    )


def finish(module: str, task: bytes, seconds: float) -> None:
    """Have another process do a task within the time, and wait for it.

    Raises:
        OSError: it cannot be started.
        subprocess.SubprocessError: it failed, or took longer.
    """
    subprocess.run(  # noqa: S603  # our own interpreter and module
        own_module(module),
        cwd=_FOLDER,
        env=environment(),
        input=task,  # not an argument: options may be secret
        stdout=subprocess.DEVNULL,
        timeout=seconds + _START_SECONDS,
        check=True,
    )


def environment() -> dict[str, str]:
    """This process's, so that what can be imported here can be imported there."""
    paths = [str(Path(path).absolute()) for path in sys.path if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
