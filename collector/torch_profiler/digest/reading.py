"""Has a saved trace read by a process of its own, in which the page's analysis runs.

A trace is thus summed up by one definition, wherever its numbers are shown; training pays
for neither the reading nor the sums with its interpreter. The process has a low priority,
and is the first to go where memory runs out. It is handed the open file: retention may
delete the trace meanwhile, the program may move it.
"""

from __future__ import annotations

import tempfile
import time
from typing import IO, TYPE_CHECKING, Final, Literal

import msgspec

from memboard.collector.afterwards import detached
from memboard.collector.format.capture import MAX_BODY_BYTES, decode_body

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from memboard.collector.format.records import CaptureTable

_MODULE: Final = "memboard.tb_plugin.cli.afterwards.digest"
_POLL_SECONDS: Final = 0.02
_MAX_TEXT: Final = 500


class TraceTask(msgspec.Struct, kw_only=True):
    """What is to be read out of a trace, and what its file does not say."""

    flops: dict[int, int]
    """By external id of the operator."""
    stacks: Literal["", "self_cpu", "self_device"] = ""
    """What stacks are weighed by; empty: none are wanted."""


class TraceAnswer(msgspec.Struct, kw_only=True):
    """What was read, besides tables; `problems` name what could not be."""

    num_events: int | None = None
    stacks: str | None = None
    problems: list[str] = []  # msgspec copies it


class ReadingError(Exception):
    """The process came to nothing; the text says why."""


def read_trace(
    file: IO[bytes],
    task: TraceTask,
    pause: Callable[[float], None] = time.sleep,
) -> tuple[TraceAnswer, Mapping[str, CaptureTable]]:
    """The answer and the tables of a trace; waits for the process.

    Args:
        file: of the trace, open, at its start.
        task: what is wanted.
        pause: is called while it is being read.

    Raises:
        ReadingError: nothing could be read.
        OSError: the process cannot be started.
    """
    with (
        tempfile.TemporaryFile() as asked,
        tempfile.TemporaryFile() as answered,
        tempfile.TemporaryFile() as failed,
    ):
        asked.write(msgspec.json.encode(task))
        asked.seek(0)
        descriptor = file.fileno()
        process = detached.reader(
            _MODULE, descriptor, asked=asked, answered=answered, failed=failed
        )
        try:
            while process.poll() is None:
                pause(_POLL_SECONDS)
        finally:
            process.kill()
            process.wait()
        if process.returncode:
            raise ReadingError(_why(process.returncode, _content(failed)))
        return _answer(_content(answered))


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(MAX_BODY_BYTES)


def _answer(body: bytes) -> tuple[TraceAnswer, Mapping[str, CaptureTable]]:
    meta, tables = decode_body(body)
    return msgspec.convert(meta, TraceAnswer), tables


def _why(code: int, output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    last = lines[-1][:_MAX_TEXT] if lines else ""
    ended = f"signal {-code}" if code < 0 else f"exit status {code}"
    return f"the process that reads it ended with {ended}" + (last and f": {last}")
