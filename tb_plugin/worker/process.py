"""The process that reads one file, seen from both sides: a bad file harms nobody else.

Processes are forked by the standard library's fork server, which has imported all that
they need: starting Python and numpy takes longer than reading a small file. A process is
given three open files, and opens none: the file to read, the column file to write, and a
pipe for messages, a line of JSON each. Nothing that comes back is unpickled.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import forkserver
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn, cast

import msgspec

from tb_plugin.worker.columns import write_columns
from tb_plugin.worker.errors import (
    REPORT,
    FileError,
    ImportFailedError,
    LimitError,
    ReaderError,
    error_of,
)
from tb_plugin.worker.limits import (
    Kind,
    Limits,
    apply,
    cpu_seconds_of,
    memory_remedy,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_READ_SHARE: Final = 0.9
"""Of the progress; the rest is writing."""
_REPORT_S: Final = 0.05
_LOOK_S: Final = 0.1
_MAX_LINE: Final = 1 << 16
_FORKS: Final = hasattr(os, "fork")
_PRELOAD: Final = ("tb_plugin.worker.preload",)
_ENVIRONMENT: Final = {
    # Nothing is imported from where TensorBoard happens to be started (Python 3.11).
    "PYTHONSAFEPATH": "1",
    # Threads that are never used would take of the address space.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
_CODE: Final = (
    "import pickle, sys; sys.path[:] = sys.argv[2:];"
    " pickle.loads(bytes.fromhex(sys.argv[1])).run(0, 1, 2)"
)
_START: Final = threading.Lock()
_started: Final = threading.Event()
"""The fork server was started, and is not known to have ended."""


class _Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """The progress, or the end: `kind` of an error, or empty where all is written."""

    progress: float | None = None
    kind: str = ""
    what: str = ""
    where: str = ""
    remedy: str = ""


# -- inside the process ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Task:
    """What a process has to do."""

    kind: Kind
    limits: Limits

    def _bootstrap(self, parent_sentinel: int) -> int:
        """Called by `multiprocessing` in the forked process."""
        del parent_sentinel
        self.run(*forkserver.get_inherited_fds() or ())

    def run(self, file: int, columns: int, messages: int) -> NoReturn:
        """Read, write, say how it went, and end this process."""
        kind, reporter = self.kind, _Reporter(os.fdopen(messages, "wb"))
        try:
            module = import_module(kind.module)
            apply(self.limits)
            with (
                os.fdopen(file, "rb", closefd=False) as content,
                os.fdopen(columns, "wb", buffering=1 << 20) as out,
            ):
                tables, meta = module.imported(content, reporter.read)
                write_columns(out, tables, meta)
        except ImportFailedError as error:
            ending = _Message(None, error.kind, error.what, error.where, error.remedy)
        except MemoryError:
            # What was held is gone with the traceback: there is room for a message.
            what = "Reading it needs more memory than a file of its size may take."
            ending = _Message(None, "limit", what, "", memory_remedy(kind))
        except OSError as error:
            what = f"Reading or caching it failed: {error.strerror or error}."
            remedy = "Make room on the disk, or set MEMBOARD_CACHE_DIR to another one."
            ending = _Message(None, "file", what, "", remedy)
        except BaseException as error:  # noqa: BLE001  # the one guard of the process
            what = f"Reading it failed: {type(error).__name__}: {error}"
            ending = _Message(None, "reader", what[:2000], "", REPORT)
        else:
            ending = _Message()
        reporter.send(ending)
        # Nothing is left to tidy up, and freeing a million objects takes its time.
        os._exit(0)


class _Reporter:
    """Writes messages to the parent."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._next = 0.0

    def read(self, share: float) -> None:
        """So much of the file was read."""
        if (now := time.monotonic()) >= self._next:
            self._next = now + _REPORT_S
            self.send(_Message(progress=_READ_SHARE * min(1.0, share)))

    def send(self, message: _Message) -> None:
        """Send a line; without a parent there is nothing to do any more."""
        try:
            self._stream.write(msgspec.json.encode(message) + b"\n")
            self._stream.flush()
        except OSError:
            os._exit(1)


# -- inside TensorBoard ---------------------------------------------------------------


class SetAsideError(Exception):
    """The worker was stopped so that others have their turn; it is to begin again."""


class WorkerProcess:
    """One worker, from start to end."""

    def __init__(
        self, file: IO[Any], columns: IO[bytes], kind: Kind, limits: Limits
    ) -> None:
        """Start reading `file` into `columns`.

        Raises:
            ReaderError: no process can be started.
        """
        self._kind, self._limits = kind, limits
        self._lock = threading.Lock()
        self._code: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        """None: it was forked."""
        task = _Task(kind, limits)
        try:
            if not (_FORKS and self._fork(task, file, columns)):
                self._spawn(task, file, columns)
        except (OSError, ValueError, EOFError) as error:
            _started.clear()
            raise ReaderError(
                f"No process could be started to read it: {error}.",
                "",
                "Check how many processes the user who runs TensorBoard may have.",
            ) from error

    def kill(self) -> None:
        """Stop it, if it still runs; `follow` raises then."""
        with self._lock, suppress(OSError):
            if self._code is None:
                os.kill(self.pid, getattr(signal, "SIGKILL", signal.SIGTERM))

    def follow(
        self, note: Callable[[float], object], may_go_on: Callable[[float], bool]
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
        lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._listen, args=(lines,), daemon=True).start()
        began = last_sign = next_look = time.monotonic()
        before, stopped = 0.0, cast("Exception | None", None)
        ending: _Message | None = None
        has_ended = False
        try:
            while line := _next(lines):
                now = time.monotonic()
                if line is not _NOTHING:
                    last_sign = now
                    message = _decoded(line)
                    if message is not None and message.progress is not None:
                        note(message.progress)
                    else:
                        ending = message or ending
                if now < next_look or stopped is not None:
                    continue
                next_look = now + _LOOK_S
                used = cpu_seconds_of(self.pid)
                if used is not None and used > before:
                    before, last_sign = used, now
                silent = now - last_sign
                taken = now - began if used is None else max(used, silent)
                if not may_go_on(taken):
                    stopped = SetAsideError()
                elif silent > self._limits.silent_s:
                    stopped = self._halted()
                if stopped is not None:
                    self.kill()
            has_ended = True
        finally:
            if not has_ended:
                self.kill()
            code = self._ended()
        # A worker that says so has written all, however it ended.
        if ending is None:
            raise self._death(code) if stopped is None else stopped
        if ending.kind:
            raise error_of(ending.kind, ending.what, ending.where, ending.remedy)

    def _fork(self, task: _Task, file: IO[Any], columns: IO[bytes]) -> bool:
        """Whether the fork server gave a process."""
        reading, writing = os.pipe()
        try:
            with _START:
                if not _started.is_set():
                    with _environment():
                        forkserver.set_forkserver_preload(list(_PRELOAD))
                        forkserver.ensure_running()
                    _started.set()
                self._status, data = forkserver.connect_to_new_process(
                    [file.fileno(), columns.fileno(), writing]
                )
        except OSError:  # no room for its socket, or no process
            os.close(reading)
            return False
        finally:
            os.close(writing)
        self._messages: IO[bytes] = os.fdopen(reading, "rb")
        with os.fdopen(data, "wb") as out:
            # Not the parent's main module, as `multiprocessing.Process` has it: that is
            # a whole TensorBoard.
            pickle.dump({"sys_path": _search_path()}, out)
            pickle.dump(task, out)
        self.pid = int(forkserver.read_signed(self._status))
        return True

    def _spawn(self, task: _Task, file: IO[Any], columns: IO[bytes]) -> None:
        """Where no process can be forked: slower, and nothing else."""
        self._process = subprocess.Popen(  # noqa: S603  # our own interpreter
            [
                sys.executable,
                "-I",
                "-c",
                _CODE,
                pickle.dumps(task).hex(),
                *_search_path(),
            ],
            stdin=file,
            stdout=columns,
            stderr=subprocess.PIPE,
            env={**os.environ, **_ENVIRONMENT},
        )
        assert self._process.stderr is not None  # noqa: S101  # a pipe
        self._messages, self.pid = self._process.stderr, self._process.pid

    def _listen(self, lines: queue.SimpleQueue[bytes]) -> None:
        """Thread: pass on what the worker writes; empty at the end."""
        with self._messages as stream:
            while line := stream.readline(_MAX_LINE):
                lines.put(line)
        lines.put(b"")

    def _ended(self) -> int:
        """Its exit code; waits for it."""
        if self._process is None:
            try:
                code = int(forkserver.read_signed(self._status))
            except EOFError:  # the fork server is gone
                code = 255
                _started.clear()
            os.close(self._status)
        else:
            code = self._process.wait()
        with self._lock:
            self._code = code
        return code

    def _halted(self) -> ImportFailedError:
        return FileError(
            f"Reading it stalled: for {self._limits.silent_s:.0f} s it made no"
            f" progress.",
            "",
            "Check the disk or network drive that it lies on, and open it again.",
        )

    def _death(self, code: int) -> ImportFailedError:
        cpu = getattr(signal, "SIGXCPU", None)
        if cpu is not None and code == -cpu:
            return LimitError(
                f"Reading it took more than {self._limits.cpu_s} s of processor time.",
                "",
                self._kind.remedy,
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


def _decoded(line: bytes) -> _Message | None:
    try:
        return msgspec.json.decode(line, type=_Message)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _search_path() -> list[str]:
    return [entry or os.getcwd() for entry in sys.path]  # noqa: PTH109


@contextmanager
def _environment() -> Iterator[None]:
    """What the fork server has in its environment, while it is started.

    It imports what we import: before Python 3.13 it is not told where from. No longer
    than that: threads of C libraries that read the environment meanwhile may crash.
    """
    wanted = {**_ENVIRONMENT, "PYTHONPATH": os.pathsep.join(_search_path())}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
