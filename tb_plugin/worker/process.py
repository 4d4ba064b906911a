"""A process that reads files, seen from TensorBoard: a bad file harms nobody else.

Processes are forked by the standard library's fork server, which has imported all that
they need: starting Python and numpy takes longer than reading a small file. Even to fork
takes longer, so one that read a file well may be handed another. Nothing that comes back
is unpickled.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from multiprocessing import forkserver
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec

from memboard.collector.process.child_python import SAFE_PATH, variables_of_children
from memboard.tb_plugin.worker.errors import (
    REPORT,
    FileError,
    ImportFailedError,
    LimitError,
    ReaderError,
    error_of,
)
from memboard.tb_plugin.worker.limits import cpu_seconds_of
from memboard.tb_plugin.worker.reading import MAX_MESSAGE, Message, ReaderProcess, Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.tb_plugin.worker.limits import Kind, Limits

_LOOK_S: Final = 0.1
_FORKS: Final = hasattr(os, "fork")
_PRELOAD: Final = ("memboard.tb_plugin.worker.preload",)
_ENVIRONMENT: Final = {
    **SAFE_PATH,
    # Threads that are never used would take of the address space.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
_CODE: Final = (
    "import pickle, sys; sys.path[:] = sys.argv[2:];"
    " pickle.loads(bytes.fromhex(sys.argv[1])).run_alone()"
)
_START: Final = threading.Lock()
_started: Final = threading.Event()
"""The fork server was started, and is not known to have ended."""


class SetAsideError(Exception):
    """The worker was stopped so that others have their turn; it is to begin again."""


class Order(NamedTuple):
    """A file to read, and where its columns go."""

    file: IO[Any]
    columns: IO[bytes]
    kind: Kind
    limits: Limits
    is_last: bool
    """Whether the worker is to end with it: it is large."""

    @property
    def task(self) -> Task:
        """What the worker is told of it."""
        return Task(self.kind, self.limits, self.is_last)


class WorkerProcess:
    """One worker, from start to end."""

    def __init__(self, order: Order) -> None:
        """Start reading a file.

        Raises:
            ReaderError: no process can be started.
        """
        self._order = order
        self._lock = threading.Lock()
        self._code: int | None = None
        self._process: subprocess.Popen[bytes] | None = None  # None: it was forked
        self._tasks: socket.socket | None = None
        """Hands files to one that was forked."""
        self._cpu_s = 0.0
        """Processor time of the files before."""
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        try:
            if _FORKS and self._fork():
                self._hand(order)
            else:
                self._spawn(order)
        except (OSError, ValueError, EOFError) as error:
            _started.clear()
            raise ReaderError(
                f"No process could be started to read it: {error}.",
                "",
                "Check how many processes the user who runs TensorBoard may have.",
            ) from error
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def may_read_more(self) -> bool:
        """Whether it waits for another file."""
        is_open = self._tasks is not None and self._code is None
        return is_open and not self._order.is_last and self._lines.empty()

    def read_more(self, order: Order) -> None:
        """Start reading another file, after one that was read well.

        Raises:
            ReaderError: it waits for none any more.
        """
        self._order = order
        self._cpu_s = cpu_seconds_of(self.pid) or 0.0
        try:
            self._hand(order)
        except OSError as error:
            raise self._death(self._ended()) from error

    def dismiss(self) -> None:
        """Hand it no other file: it ends by itself."""
        if self._tasks is not None:
            with suppress(OSError):
                self._tasks.shutdown(socket.SHUT_WR)
        self._ended()

    def kill(self) -> None:
        """Stop it, if it still runs; `follow` raises then."""
        with self._lock, suppress(OSError):
            if self._code is None:
                os.kill(self.pid, getattr(signal, "SIGKILL", signal.SIGTERM))

    def follow(
        self, note: Callable[[float], object], may_go_on: Callable[[float], bool]
    ) -> None:
        """Wait until the file is read.

        Args:
            note: is told of progress.
            may_go_on: is asked again and again, with the seconds of processor time that
                were taken so far, or for which nothing happens; once it says no, the
                worker is stopped.

        Raises:
            SetAsideError: it was not to go on.
            ImportFailedError: it did not end well.
        """
        began = last_sign = next_look = time.monotonic()
        before, stopped = 0.0, cast("Exception | None", None)
        ending: Message | None = None
        is_well = False
        try:
            while line := _next(self._lines):
                now = time.monotonic()
                if line is not _NOTHING:
                    last_sign = now
                    message = _decoded(line)
                    if message is not None and message.progress is not None:
                        note(message.progress)
                    else:
                        ending = message or ending
                if stopped is not None:
                    continue
                if ending == Message() and self.may_read_more:
                    is_well = True
                    return
                if now < next_look:
                    continue
                next_look = now + _LOOK_S
                used = cpu_seconds_of(self.pid)
                if used is not None:
                    used -= self._cpu_s
                    if used > before:
                        before, last_sign = used, now
                silent = now - last_sign
                taken = now - began if used is None else max(used, silent)
                if not may_go_on(taken):
                    stopped = SetAsideError()
                elif silent > self._order.limits.silent_s:
                    stopped = self._halted()
                if stopped is not None:
                    self.kill()
            is_well = True
        finally:
            if not is_well:
                self.kill()
                self._ended()
        code = self._ended()
        # A worker that says so has written all, however it ended.
        if ending is None:
            raise self._death(code) if stopped is None else stopped
        if ending.kind:
            raise error_of(ending.kind, ending.what, ending.where, ending.remedy)

    def _fork(self) -> bool:
        """Whether the fork server gave a process."""
        own, its = socket.socketpair()
        try:
            with its, _START:
                if not _started.is_set():
                    # It imports what we import: Python 3.12 does not tell it where from.
                    path = {"PYTHONPATH": os.pathsep.join(_search_path())}
                    with variables_of_children({**_ENVIRONMENT, **path}):
                        forkserver.set_forkserver_preload(list(_PRELOAD))
                        forkserver.ensure_running()
                    _started.set()
                self._status, data = forkserver.connect_to_new_process([its.fileno()])
        except OSError:  # no room for its socket, or no process
            own.close()
            return False
        self._tasks, messages = own, own.makefile("rb")
        self._messages: IO[bytes] = messages
        with os.fdopen(data, "wb") as out:
            # Not the parent's main module, as `multiprocessing.Process` has it: that is
            # a whole TensorBoard.
            pickle.dump({"sys_path": _search_path()}, out)
            pickle.dump(ReaderProcess(), out)
        self.pid = int(forkserver.read_signed(self._status))
        return True

    def _hand(self, order: Order) -> None:
        assert self._tasks is not None  # noqa: S101  # it was forked
        files = [order.file.fileno(), order.columns.fileno()]
        socket.send_fds(self._tasks, [pickle.dumps(order.task)], files)

    def _spawn(self, order: Order) -> None:
        """Where no process can be forked: slower, and nothing else."""
        self._process = subprocess.Popen(  # noqa: S603  # our own interpreter
            [
                sys.executable,
                "-I",
                "-c",
                _CODE,
                pickle.dumps(order.task).hex(),
                *_search_path(),
            ],
            stdin=order.file,
            stdout=order.columns,
            stderr=subprocess.PIPE,
            env={**os.environ, **_ENVIRONMENT},
        )
        assert self._process.stderr is not None  # noqa: S101  # a pipe
        self._messages, self.pid = self._process.stderr, self._process.pid

    def _listen(self) -> None:
        """Thread: pass on what the worker writes; empty at the end."""
        with self._messages as stream, suppress(OSError):
            while line := stream.readline(MAX_MESSAGE):
                self._lines.put(line)
        self._lines.put(b"")

    def _ended(self) -> int:
        """Its exit code; waits for it."""
        if self._code is not None:
            return self._code
        if self._process is None:
            try:
                code = int(forkserver.read_signed(self._status))
            except EOFError:  # the fork server is gone
                code = 255
                _started.clear()
            os.close(self._status)
            if self._tasks is not None:
                self._tasks.close()
        else:
            code = self._process.wait()
        with self._lock:
            self._code = code
        return code

    def _halted(self) -> ImportFailedError:
        return FileError(
            f"Reading it stalled: for {self._order.limits.silent_s:.0f} s it made no"
            f" progress.",
            "",
            "Check the disk or network drive that it lies on, and open it again.",
        )

    def _death(self, code: int) -> ImportFailedError:
        cpu = getattr(signal, "SIGXCPU", None)
        if cpu is not None and code == -cpu:
            return LimitError(
                f"Reading it took more than {self._order.limits.cpu_s} s of processor time.",
                "",
                self._order.kind.remedy,
            )
        if code == -getattr(signal, "SIGKILL", 9):
            return ReaderError(
                "The process that read it was killed, most likely because the"
                " machine ran out of memory.",
                "",
                "Free memory where TensorBoard runs, and open it again.",
            )
        return ReaderError(
            f"The process that read it ended with {code}, without a message.",
            "",
            REPORT,
        )


_NOTHING: Final = b"\n"


def _next(lines: queue.SimpleQueue[bytes]) -> bytes:
    try:
        return lines.get(timeout=_LOOK_S)
    except queue.Empty:
        return _NOTHING


def _decoded(line: bytes) -> Message | None:
    try:
        return msgspec.json.decode(line, type=Message)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _search_path() -> list[str]:
    return [entry or os.getcwd() for entry in sys.path]  # noqa: PTH109
