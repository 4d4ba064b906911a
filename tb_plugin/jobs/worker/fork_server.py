"""A process that has imported what workers need, and forks one for each file.

Starting Python and numpy takes longer than reading a small file; a fork takes
milliseconds and is as much apart: limits, a crash and a kill are its own. Standard input
is a socket. A request is `Request` as JSON with three open files: what to read, the
column file to write, and where messages go. It is answered with the worker's process id,
or, where it asks for a process, with how that ended.
"""

from __future__ import annotations

import gc
import io
import os
import socket
import sys
from contextlib import suppress
from importlib import import_module
from typing import Final

import msgspec

from tb_plugin.jobs.worker.kinds import KINDS, Kind
from tb_plugin.jobs.worker.worker import main

MAX_MESSAGE: Final = 1 << 14
_NUM_FILES: Final = 3
_IDLE_S: Final = 60.0
"""Without requests the process ends; the next request starts another one."""


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the server is asked for."""

    kind: str = ""
    limits: str = ""
    """JSON of `Limits`."""
    wait_for: int = 0
    """A process id that it told before."""


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What it answers."""

    pid: int = 0
    code: int = 0
    """As of `subprocess.Popen.returncode`."""
    error: str = ""


def serve(kinds: str) -> None:
    """Answer requests until nobody is there any more; `kinds`: names, by commas."""
    channel = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    for name in kinds.split(","):
        _warm_up(KINDS[name])
    gc.freeze()
    channel.settimeout(_IDLE_S)
    num_running = 0
    while True:
        try:
            data, files, _, _ = socket.recv_fds(channel, MAX_MESSAGE, _NUM_FILES)
        except TimeoutError:
            if num_running:
                continue
            return
        if not data:
            return
        request = msgspec.json.decode(data, type=Request)
        if request.wait_for:
            answer = _ended(request.wait_for)
            num_running -= 1
        else:
            answer = _forked(request, files, channel)
            num_running += not answer.error
        channel.sendall(msgspec.json.encode(answer))


def _warm_up(kind: Kind) -> None:
    """Import and make what every worker of a kind needs."""
    module = import_module(kind.module)
    if kind.sample:
        # Workers that meet what is wrong here say so; this process only forks them.
        with suppress(Exception):
            module.imported(io.BytesIO(kind.sample))


def _forked(request: Request, files: list[int], channel: socket.socket) -> Answer:
    try:
        pid = os.fork()
    except OSError as error:
        pid = -1
        answer = Answer(error=f"{error.strerror or error}")
    else:
        if not pid:
            _work(request, files, channel)
        answer = Answer(pid=pid)
    for file in files:
        os.close(file)
    return answer


def _work(request: Request, files: list[int], channel: socket.socket) -> None:
    """In the forked process, which ends here."""
    try:
        channel.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115  # of this process
        main(request.kind, request.limits)
    except BaseException as error:  # noqa: BLE001  # nothing is left but to say it
        with suppress(OSError):
            os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(1)


def _ended(pid: int) -> Answer:
    try:
        _, status = os.waitpid(pid, 0)
    except OSError as error:
        return Answer(pid=pid, code=1, error=f"{error.strerror or error}")
    return Answer(pid=pid, code=os.waitstatus_to_exitcode(status))
