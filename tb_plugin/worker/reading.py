"""A process that reads files, from inside: what it is handed, and what it answers.

It opens no file: over a socket it is handed the file to read and the column file to write,
and answers with messages, a line of JSON each.
"""

from __future__ import annotations

import os
import pickle
import select
import socket
import time
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import forkserver
from typing import IO, Final, NoReturn

import msgspec

from memboard.tb_plugin.worker.columns import write_columns
from memboard.tb_plugin.worker.errors import REPORT, ImportFailedError
from memboard.tb_plugin.worker.limits import (
    Kind,
    Limits,
    apply,
    give_way,
    memory_remedy,
)

MAX_MESSAGE: Final = 1 << 16
_READ_SHARE: Final = 0.9
"""Of the progress; the rest is writing."""
_REPORT_S: Final = 0.05
_IDLE_S: Final = 5.0
"""How long a process waits for another file."""


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """The progress, or the end: `kind` of an error, or empty where all is written."""

    progress: float | None = None
    kind: str = ""
    what: str = ""
    where: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """What a process has to do with a file."""

    kind: Kind
    limits: Limits
    is_last: bool

    def run(self, file: int, columns: int, reporter: _Reporter) -> None:
        """Read, write, and say how it went; ends the process unless another may follow."""
        kind = self.kind
        try:
            module = import_module(kind.module)
            apply(self.limits)
            with (
                os.fdopen(file, "rb") as content,
                os.fdopen(columns, "wb", buffering=1 << 20) as out,
            ):
                tables, meta = module.imported(content, reporter.read)
                write_columns(out, tables, meta)
        except ImportFailedError as error:
            ending = Message(None, error.kind, error.what, error.where, error.remedy)
        except MemoryError:
            # What was held is gone with the traceback: there is room for a message.
            sentence = "Reading it needs more memory than a file of its size may take."
            ending = Message(None, "limit", sentence, "", memory_remedy(kind))
        except OSError as error:
            sentence = f"Reading or caching it failed: {error.strerror or error}."
            remedy = "Make room on the disk, or set MEMBOARD_CACHE_DIR to another one."
            ending = Message(None, "file", sentence, "", remedy)
        except BaseException as error:  # noqa: BLE001  # the one guard of the process
            sentence = f"Reading it failed: {type(error).__name__}: {error}"
            ending = Message(None, "reader", sentence[:2000], "", REPORT)
        else:
            ending = Message()
        reporter.send(ending)
        if self.is_last or ending.kind:
            # Nothing is left to tidy up, and freeing a million objects takes its time.
            os._exit(0)

    def run_alone(self) -> NoReturn:
        """In a process that nobody forked, for this file alone."""
        give_way()
        self.run(0, 1, _Reporter(os.fdopen(2, "wb")))
        os._exit(0)


class ReaderProcess:
    """What a forked process does: read what it is handed, until it fails or idles."""

    def _bootstrap(self, parent_sentinel: int) -> int:
        """Called by `multiprocessing` in the forked process."""
        del parent_sentinel
        give_way()
        [inherited] = forkserver.get_inherited_fds() or []
        tasks = socket.socket(fileno=inherited)
        reporter = _Reporter(tasks.makefile("wb"))
        another = select.poll()  # select() takes file numbers below 1,024 only
        another.register(tasks, select.POLLIN)
        while another.poll(1e3 * _IDLE_S):
            data, files, _, _ = socket.recv_fds(tasks, MAX_MESSAGE, 2)
            if not data:  # there is no other file, or no parent
                break
            pickle.loads(data).run(*files, reporter)  # noqa: S301  # of our parent
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
            self.send(Message(progress=_READ_SHARE * min(1.0, share)))

    def send(self, message: Message) -> None:
        """Send a line; without a parent there is nothing to do any more."""
        try:
            self._stream.write(msgspec.json.encode(message) + b"\n")
            self._stream.flush()
        except OSError:
            os._exit(1)
