"""The process that reads one file, so that a bad one harms nobody else.

Its standard input is the file, its standard output the column file to write, its
standard error a line of JSON at a time: `Message`. It is given no path and opens none.
"""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

from tb_plugin.jobs.worker.column_file import write_into
from tb_plugin.jobs.worker.errors import ImportFailedError
from tb_plugin.jobs.worker.kinds import KINDS, Kind
from tb_plugin.jobs.worker.limits import Limits, apply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_READ_SHARE: Final = 0.9
"""Of the progress; the rest is writing."""
_REPORT_S: Final = 0.05


class Failure(msgspec.Struct, frozen=True):
    """An error, as its parts."""

    kind: str
    what: str
    where: str
    remedy: str


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the parent is told: how far it is, or how it ended."""

    progress: float | None = None
    done: bool = False
    failure: Failure | None = None


def main(kind_name: str, limits: str) -> None:
    """Read, write, and say how it went; `limits`: JSON of `Limits`."""
    kind = KINDS[kind_name]
    messages, columns = _take_over()
    # What Python takes for the reader's code is not the file's, and extension modules
    # that find no room are ImportErrors.
    import_module(kind.module)
    apply(Limits(*msgspec.json.decode(limits, type=tuple[int, int, float])))
    reporter = Reporter(messages)
    try:
        with os.fdopen(0, "rb", closefd=False) as file:
            tables, meta = read_tables(kind, file, reporter.read)
        write_into(columns, tables, meta)
        columns.close()
    except ImportFailedError as error:
        reporter.failed(error.kind, error.what, error.where, error.remedy)
    except MemoryError:
        # What was held is gone with the traceback, or there is no room for a message.
        reporter.failed(*_OUT_OF_MEMORY, kind.remedy)
    except OSError as error:
        what = f"Reading or keeping it failed: {error.strerror or error}"
        remedy = "Make room on the disk, or set MEMBOARD_CACHE_DIR to another one."
        reporter.failed("file", what, "", remedy)
    else:
        reporter.say(Message(done=True))
    # Nothing is left to tidy up, and freeing a million objects takes its time.
    os._exit(0)


_OUT_OF_MEMORY: Final = (
    "limit",
    "Reading it needs more memory than a file of its size may take.",
    "",
)


def read_tables(
    kind: Kind, file: IO[bytes], report: Callable[[float], None]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The tables of an open file, and what is written with them.

    Raises:
        ImportFailedError: there are none.
        OSError: the file cannot be read.
    """
    return import_module(kind.module).imported(file, report)  # type: ignore[no-any-return]


class Reporter:
    """Tells the parent."""

    def __init__(self, messages: IO[bytes]) -> None:
        self._messages = messages
        self._next = 0.0

    def read(self, share: float) -> None:
        """So much of the file was read."""
        if (now := time.monotonic()) >= self._next:
            self._next = now + _REPORT_S
            self.say(Message(progress=_READ_SHARE * min(1.0, share)))

    def failed(self, kind: str, what: str, where: str, remedy: str) -> None:
        """There will be no tables."""
        self.say(Message(failure=Failure(kind, what, where, remedy)))

    def say(self, message: Message) -> None:
        """Send a line; without a parent there is nothing to do any more."""
        try:
            self._messages.write(msgspec.json.encode(message) + b"\n")
            self._messages.flush()
        except OSError:
            os._exit(1)


def _take_over() -> tuple[IO[bytes], IO[bytes]]:
    """Standard error and standard output, neither in reach of a stray print."""
    messages = os.fdopen(os.dup(2), "wb")
    columns = os.fdopen(os.dup(1), "wb", buffering=1 << 20)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return messages, columns
