"""Workers forked from a process that has everything imported, as their parent sees them.

Where that is not to be had (Windows, no sockets left) every worker is a process started
from nothing, which is slower and nothing else.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from tb_plugin.jobs.worker.fork_server import Answer, Request
    from tb_plugin.jobs.worker.kinds import Kind
    from tb_plugin.jobs.worker.limits import Limits

_CODE: Final = (
    "import sys; kinds = sys.argv[1]; sys.path[:] = sys.argv[2:];"
    " from tb_plugin.jobs.worker.fork_server import serve; serve(kinds)"
)
_ANSWER_S: Final = 30.0
"""A server that has not answered by then hangs."""


class ForkedProcess:
    """One worker; speaks like `subprocess.Popen`, as far as its parent asks."""

    def __init__(self, pid: int, stderr: IO[bytes], server: ForkServer) -> None:
        self.pid = pid
        self.stderr: IO[bytes] | None = stderr
        self.returncode: int | None = None
        self._server = server
        self._lock = threading.Lock()

    def kill(self) -> None:
        """Stop it, if it still runs."""
        with self._lock:
            # Until somebody waited for it, its id is nobody else's.
            if self.returncode is None:
                with suppress(OSError):
                    os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Its exit code; waits for it."""
        if self.returncode is None:
            code = self._server.wait_for(self.pid)
            with self._lock:
                self.returncode = code
        return self.returncode


class ForkServer:
    """The process that forks workers of some kinds, started when first needed.

    Safe for threads.
    """

    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        self._kinds = kinds
        self._lock = threading.Lock()
        self._channel: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(
        self, file: IO[Any], columns: IO[bytes], kind: Kind, limits: Limits
    ) -> ForkedProcess | None:
        """A worker for a file; None where none can be forked."""
        from tb_plugin.jobs.worker.fork_server import Request

        if kind not in self._kinds or not hasattr(socket, "send_fds"):
            return None
        reading, writing = os.pipe()
        files = [file.fileno(), columns.fileno(), writing]
        request = Request(kind.name, msgspec.json.encode(limits).decode())
        try:
            # The one that is there may have ended for want of requests.
            answer = self._ask(request, files) or self._ask(request, files)
        finally:
            os.close(writing)
        if answer is None or answer.error:
            os.close(reading)
            return None
        return ForkedProcess(answer.pid, os.fdopen(reading, "rb"), self)

    def wait_for(self, pid: int) -> int:
        """How a worker ended."""
        from tb_plugin.jobs.worker.fork_server import Request

        answer = self._ask(Request(wait_for=pid), [])
        return 1 if answer is None else answer.code

    def close(self) -> None:
        """End it."""
        with self._lock:
            self._end()

    def _ask(self, request: Request, files: list[int]) -> Answer | None:
        """Its answer; None where there is none, and then it is gone."""
        from tb_plugin.jobs.worker.fork_server import MAX_MESSAGE, Answer

        with self._lock:
            try:
                if self._channel is None:
                    if not files:
                        return None
                    self._begin()
                assert self._channel is not None  # noqa: S101  # begun just now
                socket.send_fds(self._channel, [msgspec.json.encode(request)], files)
                data = self._channel.recv(MAX_MESSAGE)
                if data:
                    return msgspec.json.decode(data, type=Answer)
            except (OSError, ValueError, msgspec.MsgspecError):
                pass
            self._end()
            return None

    def _begin(self) -> None:
        """Start the process.

        Raises:
            OSError: it cannot be started.
        """
        from tb_plugin.jobs.worker.worker_process import ONE_THREAD

        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        names = ",".join(kind.name for kind in self._kinds)
        command = [sys.executable, "-I", "-c", _CODE, names]
        command += (entry or os.getcwd() for entry in sys.path)  # noqa: PTH109
        try:
            self._process = subprocess.Popen(  # noqa: S603  # our own interpreter
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **ONE_THREAD},
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.settimeout(_ANSWER_S)
        self._channel = ours

    def _end(self) -> None:
        channel, self._channel = self._channel, None
        process, self._process = self._process, None
        if channel is not None:
            channel.close()
        if process is not None:
            process.kill()
            process.wait()
