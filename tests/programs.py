"""Programs that tests start: forked from a process that has imported torch already.

A fork takes milliseconds where an interpreter and `import torch` take two seconds. Each
program has its own arguments, environment, folder and pipes, and ends as any interpreter
does, up to the last function that was registered for its exit: modules are not taken apart,
which takes a second. What it is called (`/proc/self/cmdline`) and the hash seed are those of
the server, and the recorder's limits those of `limits.py`. A test of start-up, imports or
threads of torch's own starts a real interpreter instead.

As a module it is the server: python -m tests.programs SOCKET [MODULE ...]
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import IO, TYPE_CHECKING, Any

from tests.limits import lift

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
_SECONDS = 300.0
_PRELOADED = (
    "torch",
    "torch._dynamo",
    "numpy.random",
    "psutil",
    "msgspec",
    "google_crc32c",
    "fsspec",
    "yaml",
    "tensorboard.compat.proto.event_pb2",
)
_STREAMS = ("stdin", "stdout", "stderr")
_FLAGS = ("-I", "-P", "-S", "-u")


_PYTHON = """#!{python} -IS
import json, os, signal, socket, sys
words = sys.argv[1:]
request = {{"words": words, "env": dict(os.environ), "folder": os.getcwd()}}
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
sent = json.dumps(request).encode()
socket.send_fds(server, [len(sent).to_bytes(4, "little")], [0, 1, 2])
server.sendall(sent)
said = server.makefile()
pid = int(said.readline())
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: os.kill(pid, number))
code = int(said.readline())
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""
"""Stands for Python: hands its words, variables, folder and streams to a server."""

_SERVERS: dict[tuple[str, ...], str] = {}
"""Their addresses, by the Python they run and what it has imported besides."""


def run(
    code: str | None,
    *arguments: object,
    check: bool = True,
    env: Mapping[str, str] | None = None,
    python: str = sys.executable,
) -> subprocess.CompletedProcess[str]:
    """Run Python code, or without any a script, to its end, from the repository's root.

    Raises:
        subprocess.CalledProcessError: it ended with another code than 0, where
            `check`.
    """
    program = Program(code, *arguments, env=env, python=python)
    out, err = program.communicate()
    done = subprocess.CompletedProcess([code or "script"], program.wait(), out, err)
    if check and done.returncode:
        sys.stderr.write(err)
        done.check_returncode()
    return done


def run_script(
    path: Path, *arguments: object, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a script as Python runs it; `options` are those of `run`."""
    return run(None, path, *arguments, **options)


def python_that_forks(
    path: Path, env: Mapping[str, str] | None = None, python: str = sys.executable
) -> Path:
    """Write a command `path` that runs what `python` would, forked as `run` does.

    It knows `-c`, `-m`, scripts, `-u` and, of where modules are looked for, `-I` and `-P`. As PYTHON_EXEC it has torchrun's ranks forked.
    Signals reach the program, which is killed if the command is.

    Args:
        path: of the file that is written.
        env: names the libraries of the process that imports torch, where it is the first.
        python: as for `Program`.
    """
    address = _address_of(python, (), dict(os.environ if env is None else env))
    path.write_text(_PYTHON.format(python=sys.executable, address=address))
    path.chmod(0o755)
    return path


class Program:
    """One that runs. `returncode` and methods are those of `subprocess.Popen`.

    Libraries are those that the first program of a `python` has named in its environment.
    `preloaded` are modules that are imported once for all programs that name them.
    """

    def __init__(
        self,
        code: str | None,
        *arguments: object,
        env: Mapping[str, str] | None = None,
        new_session: bool = False,
        python: str = sys.executable,
        preloaded: Sequence[str] = (),
    ) -> None:
        pipes = [os.pipe(), os.pipe(), os.pipe()]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        ours = [pipes[0][1], pipes[1][0], pipes[2][0]]
        variables = dict(os.environ if env is None else env)
        request = {
            "words": [*(() if code is None else ("-c", code)), *map(str, arguments)],
            "env": variables,
            "new_session": new_session,
        }
        address = _address_of(python, preloaded, variables)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(address)
        sent = json.dumps(request).encode()
        socket.send_fds(self._server, [len(sent).to_bytes(4, "little")], theirs)
        self._server.sendall(sent)
        for descriptor in theirs:
            os.close(descriptor)
        self.stdin: IO[str]
        self.stdout: IO[str]
        self.stderr: IO[str]
        self.stdin, self.stdout, self.stderr = (
            os.fdopen(descriptor, mode, encoding="utf-8", errors="replace")
            for descriptor, mode in zip(ours, "wrr", strict=True)
        )
        self._words = self._server.makefile("r")
        self.pid = int(self._words.readline())
        self.returncode: int | None = None

    def communicate(self, timeout: float = _SECONDS) -> tuple[str, str]:
        """Close its input and read its outputs to their ends."""
        found: dict[str, str] = {}

        def read(name: str, stream: IO[str]) -> None:
            found[name] = stream.read()

        if not self.stdin.closed:
            self.stdin.close()
        outputs = {"out": self.stdout, "err": self.stderr}
        readers = [threading.Thread(target=read, args=one) for one in outputs.items()]
        ends = time.monotonic() + timeout
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(max(ends - time.monotonic(), 0))
            if reader.is_alive():
                self.kill()
                raise subprocess.TimeoutExpired(["-c"], timeout)
        self.wait(timeout)
        self.stdout.close()
        self.stderr.close()
        return found["out"], found["err"]

    def wait(self, timeout: float = _SECONDS) -> int:
        """Its exit code, or minus the signal that ended it."""
        if self.returncode is None:
            self._server.settimeout(timeout)
            try:
                self.returncode = int(self._words.readline())
            except TimeoutError:
                raise subprocess.TimeoutExpired(["-c"], timeout) from None
            self._words.close()
            self._server.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def _package(variables: dict[str, str]) -> Iterator[str]:
    """Where a Python finds ours in which it is not installed."""
    yield str(ROOT / ".package")
    yield from _folders(variables)


def _folders(variables: Mapping[str, str]) -> Iterator[str]:
    return filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))


def _address_of(
    python: str, preloaded: Sequence[str], variables: dict[str, str]
) -> str:
    """The address of a server, which is started where there is none yet."""
    if (server := (python, *preloaded)) not in _SERVERS:
        _SERVERS[server] = _serving(python, preloaded, variables)
    return _SERVERS[server]


def _serving(python: str, preloaded: Sequence[str], variables: dict[str, str]) -> str:
    """The address of a server that is started now."""
    folder = tempfile.TemporaryDirectory(prefix="memboard-programs-")
    address = f"{folder.name}/socket"
    server = subprocess.Popen(
        [python, "-m", "tests.programs", address, *preloaded],
        cwd=ROOT,
        env={**variables, "PYTHONPATH": os.pathsep.join([*_package(variables)])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    with server.stdout as ready:
        assert ready.readline(), f"{python} cannot serve programs: its error is above"

    def stop() -> None:
        server.terminate()
        server.wait()
        folder.cleanup()

    atexit.register(stop)
    return address


def _served(address: str) -> dict[str, Any]:
    """Serve until this process is a program; what it shall run."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(64)
    os.write(1, b"ready\n")
    os.close(1)
    os.open(os.devnull, os.O_WRONLY)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the watchers
    while True:
        asked, _ = listening.accept()
        if not os.fork():
            break
        asked.close()
    listening.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, streams, _, _ = socket.recv_fds(asked, 4, len(_STREAMS))
    with asked.makefile("rb") as body:
        request = json.loads(body.read(int.from_bytes(head, "little")))
    pid = os.fork()
    if pid:  # the watcher, which says how the program ends
        for descriptor in streams:
            os.close(descriptor)
        asked.sendall(f"{pid}\n".encode())
        ends = select.poll()
        ends.register(os.pidfd_open(pid), select.POLLIN)
        ends.register(asked, 0)  # tells of a hang-up: nobody waits for it any more
        if asked.fileno() in dict(ends.poll()):
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(BrokenPipeError):
            asked.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    asked.close()
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    return request


def _become(request: dict[str, Any]) -> tuple[CodeType, ModuleType]:
    """Take on arguments, environment and folder; the code to run, and `__main__`."""
    if request.get("new_session"):
        os.setsid()
    os.environ.clear()
    os.environ.update(request["env"])
    if "OMP_NUM_THREADS" in os.environ and "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    os.chdir(request.get("folder", ROOT))
    main = ModuleType("__main__")
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    words, flags = list(request["words"]), set()
    while words[0] in _FLAGS:
        flags.add(words.pop(0))
    if "-u" in flags:
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)
    beside = ""
    if words[0] == "-c":
        code = compile(words.pop(1), "<string>", "exec")
    elif words[0] == "-m":
        name, beside = words.pop(1), str(Path.cwd())
        run = f"import runpy\nrunpy._run_module_as_main({name!r})"
        code = compile(run, "<string>", "exec")
    else:
        main.__file__, beside = words[0], str(Path(words[0]).resolve().parent)
        code = compile(Path(words[0]).read_bytes(), words[0], "exec")
    sys.argv[:] = words
    path = [] if "-I" in flags else [*_folders(os.environ)]
    if not flags & {"-I", "-P"} and not os.environ.get("PYTHONSAFEPATH"):
        path.insert(0, beside)
    sys.path[:] = dict.fromkeys([*path, *sys.path])
    return code, main


def _leave() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    if _code < 0:
        signal.signal(-_code, signal.SIG_DFL)
        os.kill(os.getpid(), -_code)
    os._exit(_code)


if __name__ == "__main__":
    _code = 0
    """It ends with this, or by the signal that is minus it."""
    atexit.register(_leave)  # the first to be registered is the last to be called
    for _name in _PRELOADED:
        if find_spec(_name.partition(".")[0]):
            __import__(_name)
    for _name in sys.argv[2:]:
        __import__(_name)
    lift(setattr)
    gc.collect()
    gc.freeze()
    _request = _served(sys.argv[1])
    try:
        _program, _main = _become(_request)
        exec(_program, _main.__dict__)
    except SystemExit as _error:
        _code = (_error.code or 0) if isinstance(_error.code, int | None) else 1
        raise
    except KeyboardInterrupt:
        _code = -signal.SIGINT
        raise
    except BaseException:
        _code = 1
        raise
