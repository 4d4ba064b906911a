"""A worker as its parent sees it: started, followed, killed where it takes too long."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

from tb_plugin.readers.imports.errors import (
    REPORT,
    ImportFailedError,
    LimitError,
    ReaderError,
    error_of,
)
from tb_plugin.readers.imports.kinds import SNAPSHOT
from tb_plugin.readers.imports.worker import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from tb_plugin.readers.imports.forks import ForkedProcess, ForkServer
    from tb_plugin.readers.imports.kinds import Kind
    from tb_plugin.readers.imports.limits import Limits

_CODE: Final = (
    # Isolated (-I), so nothing is imported from where TensorBoard happens to be started.
    "import sys; kind, limits = sys.argv[1:3]; sys.path[:] = sys.argv[3:];"
    " from tb_plugin.readers.imports.worker import main; main(kind, limits)"
)
_MAX_LINE: Final = 1 << 16
_MAX_NOISE: Final = 2000
ONE_THREAD: Final = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
"""Threads that are never used would take of the address space."""


class WorkerProcess:
    """One worker, from start to end."""

    def __init__(
        self,
        file: IO[Any],
        columns: IO[bytes],
        limits: Limits,
        kind: Kind = SNAPSHOT,
        forks: ForkServer | None = None,
    ) -> None:
        """Start reading `file` into `columns`; `forks` makes that quick.

        Raises:
            ReaderError: no process can be started.
        """
        self._limits = limits
        self._overdue = False
        self._kind = kind
        self._process: subprocess.Popen[bytes] | ForkedProcess
        forked = None if forks is None else forks.start(file, columns, kind, limits)
        if forked is not None:
            self._process = forked
            return
        command = [sys.executable, "-I", "-c", _CODE, kind.name]
        command.append(msgspec.json.encode(limits).decode())
        command += (entry or os.getcwd() for entry in sys.path)  # noqa: PTH109
        try:
            self._process = subprocess.Popen(  # noqa: S603  # our own interpreter
                command,
                stdin=file,
                stdout=columns,
                stderr=subprocess.PIPE,
                env={**os.environ, **ONE_THREAD},
            )
        except (OSError, ValueError) as error:
            raise ReaderError(
                f"No process could be started to read it: {error}.",
                "",
                "Check how many processes the user who runs TensorBoard may have.",
            ) from error

    def kill(self) -> None:
        """Stop it, if it still runs; `follow` raises then."""
        self._process.kill()

    def follow(self, note: Callable[[float], None]) -> None:
        """Wait for the end; `note` is told of progress.

        Raises:
            ImportFailedError: it did not end well.
        """
        timer = threading.Timer(self._limits.wall_s, self._kill_overdue)
        timer.daemon = True
        timer.start()
        try:
            ending, noise = self._listen(note)
            code = self._process.wait()
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            timer.cancel()
            if self._process.stderr is not None:
                self._process.stderr.close()
        if ending is not None and ending.failure is not None:
            failure = ending.failure
            raise error_of(failure.kind, failure.what, failure.where, failure.remedy)
        # Who says so has written all, however it ended: a server that forked it and is
        # gone cannot tell.
        if ending is None or not ending.done:
            raise self._death(code, noise)

    def _listen(self, note: Callable[[float], None]) -> tuple[Message | None, str]:
        """How it ended, if it said so, and what else it wrote."""
        ending, noise = None, b""
        stream = self._process.stderr
        while stream is not None and (line := stream.readline(_MAX_LINE)):
            try:
                message = msgspec.json.decode(line, type=Message)
            except (msgspec.DecodeError, UnicodeDecodeError):
                noise = (noise + line)[-_MAX_NOISE:]
                continue
            if message.progress is not None:
                note(message.progress)
            else:
                ending = message
        return ending, noise.decode(errors="replace").strip()

    def _kill_overdue(self) -> None:
        self._overdue = True
        self._process.kill()

    def _death(self, code: int, noise: str) -> ImportFailedError:
        limits = self._limits
        cpu = getattr(signal, "SIGXCPU", None)
        remedy = self._kind.remedy
        if self._overdue:
            return LimitError(
                f"Reading it took longer than {limits.wall_s:.0f} s.", "", remedy
            )
        if cpu is not None and code == -cpu:
            return LimitError(
                f"Reading it took more than {limits.cpu_s} s of processor time.",
                "",
                remedy,
            )
        if code == -getattr(signal, "SIGKILL", 9):
            return ReaderError(
                "The process that read it was killed, most likely because the"
                " machine ran out of memory.",
                "",
                "Free memory where TensorBoard runs, and open it again.",
            )
        last = noise.splitlines()[-1] if noise else "it said nothing"
        return ReaderError(
            f"The process that read it ended with {code}: {last}",
            "",
            REPORT,
        )
