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

from memboard.collector.format.names import MERGED_TRACE, RANK_FILES_DIR, RUN_INDEX
from memboard.collector.process.child_python import own_module

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.mirror.mirror import Mirror

_NICE: Final = 10
"""Whatever else runs on the host goes first."""

_FOLDER: Final = Path(os.sep)
"""It keeps nobody from removing the folder that training runs in."""

_START_SECONDS: Final = 10.0
"""Time for a new interpreter to load the package from a file system."""

_WAIT_SECONDS: Final = 60
"""For the other ranks' files, in the process that merges them."""

_MIN_INDEXED: Final = 16
"""Fewer ranks at a store open quickly without an index."""

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


def start_merge(run_dir: Path, remote: Mirror, warn_once: WarnOnce) -> None:
    """Have `memboard merge` wait for the other ranks, and merge what is there then."""
    merged = run_dir / MERGED_TRACE
    command = ["memboard.tb_plugin.cli", "merge", str(run_dir), "--force"]
    command += ["--wait", str(_WAIT_SECONDS), "-o", str(merged)]
    upload = remote.task_for("merged", merged)
    if upload:
        command.insert(0, "memboard.collector.mirror.finishing")
    try:
        log = run_dir.joinpath(*RANK_FILES_DIR, "merge.log")
        log.unlink(missing_ok=True)
        start(command[0], command[1:], log, upload)
    except (OSError, ValueError) as error:
        warn_once(
            "merge",
            "merge_on_close: merging could not be started. Run: memboard merge %s",
            run_dir,
            error=error,
        )


def start_index(run_dir: Path, remote: Mirror, world_size: int) -> None:
    """Have the mirrored run indexed, where it has so many ranks that it matters."""
    index = run_dir.joinpath(*RANK_FILES_DIR, RUN_INDEX)
    url = remote.url_of("events", index)
    task = remote.task_for_later()
    if world_size >= _MIN_INDEXED and url is not None and task:
        start("memboard.tb_plugin.cli.index", [url], index.with_name("index.log"), task)


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
