"""A worker as its parent sees it: started, followed, stopped where it hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

from tb_plugin.jobs.worker.errors import (
    REPORT,
    FileError,
    ImportFailedError,
    LimitError,
    ReaderError,
    error_of,
)
from tb_plugin.jobs.worker.kinds import SNAPSHOT
from tb_plugin.jobs.worker.limits import cpu_seconds_of
from tb_plugin.jobs.worker.worker import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from tb_plugin.jobs.worker.forks import ForkedProcess, ForkServer
    from tb_plugin.jobs.worker.kinds import Kind
    from tb_plugin.jobs.worker.limits import Limits

_CODE: Final = (
    # Isolated (-I), so nothing is imported from where TensorBoard happens to be started.
    "import sys; kind, limits = sys.argv[1:3]; sys.path[:] = sys.argv[3:];"
    " from tb_plugin.jobs.worker.worker import main; main(kind, limits)"
)
_LOOK_S: Final = 0.1
_MAX_LINE: Final = 1 << 16
_MAX_NOISE: Final = 2000
ONE_THREAD: Final = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
"""Threads that are never used would take of the address space."""


class SetAsideError(Exception):
    """The worker was stopped so that others have their turn; it is to begin again."""


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
        self._kind = kind
        self._began = self._last_sign = time.monotonic()
        self._over = threading.Event()
        self._is_silent = self._is_set_aside = False
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

    def follow(
        self, note: Callable[[float], None], may_go_on: Callable[[float], bool]
    ) -> None:
        """Wait for the end.

        Args:
            note: is told of progress.
            may_go_on: is asked again and again, with the seconds of processor time that
                were taken so far, or for which nothing happens; once it says no, the
                worker is stopped.

        Raises:
            SetAsideError: it was not to go on.
            ImportFailedError: it did not end well.
        """
        watch = threading.Thread(target=self._watch, args=(may_go_on,), daemon=True)
        watch.start()
        try:
            ending, noise = self._listen(note)
            code = self._process.wait()
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            self._over.set()
            watch.join()
            if self._process.stderr is not None:
                self._process.stderr.close()
        if ending is not None and ending.failure is not None:
            failure = ending.failure
            raise error_of(failure.kind, failure.what, failure.where, failure.remedy)
        # Who says so has written all, however it ended: a server that forked it and is
        # gone cannot tell.
        if ending is None or not ending.done:
            if self._is_set_aside:
                raise SetAsideError
            raise self._death(code, noise)

    def _watch(self, may_go_on: Callable[[float], bool]) -> None:
        """Thread: stop it where it hangs, or is not to go on."""
        before = 0.0
        while not self._over.wait(_LOOK_S):
            now = time.monotonic()
            used = cpu_seconds_of(self._process.pid)
            if used is not None and used > before:
                before, self._last_sign = used, now
            silent = now - self._last_sign
            taken = now - self._began if used is None else max(used, silent)
            if not may_go_on(taken):
                self._is_set_aside = True
            elif silent > self._limits.silent_s:
                self._is_silent = True
            else:
                continue
            self._process.kill()
            return

    def _listen(self, note: Callable[[float], None]) -> tuple[Message | None, str]:
        """How it ended, if it said so, and what else it wrote."""
        ending, noise = None, b""
        stream = self._process.stderr
        while stream is not None and (line := stream.readline(_MAX_LINE)):
            self._last_sign = time.monotonic()
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

    def _death(self, code: int, noise: str) -> ImportFailedError:
        limits = self._limits
        cpu = getattr(signal, "SIGXCPU", None)
        remedy = self._kind.remedy
        if self._is_silent:
            return FileError(
                f"Reading it came to a halt: for {limits.silent_s:.0f} s nothing was"
                " heard of it.",
                "",
                "Check the disk or network drive that it lies on, and open it again.",
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
