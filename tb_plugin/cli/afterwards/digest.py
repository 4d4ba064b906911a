"""Reads a trace for the recording it is of.

It is run as `python -m memboard.tb_plugin.cli.afterwards.digest FD`.
A recording's process starts this one and hands it the open file; the task comes as JSON
on standard input, the answer goes to standard output as the body of a capture. What is
summed up here is what the page's analysis says of the file.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from memboard.collector.format.capture import encode_body
from memboard.collector.format.records import Capture
from memboard.collector.torch_profiler.digest.reading import TraceAnswer, TraceTask
from memboard.tb_plugin.analysis.operators.folded_stacks import (
    folded_stacks,
    python_calls,
)
from memboard.tb_plugin.analysis.operators.operator_sums import operator_sums
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.formats.traces.bytes.stored import trace_of
from memboard.tb_plugin.formats.traces.trace_file import imported
from memboard.tb_plugin.worker.columns import open_columns, write_columns
from memboard.tb_plugin.worker.limits import give_way

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.collector.format.records import CaptureTable
    from memboard.tb_plugin.analysis.trace.trace import Trace

_Part = TypeVar("_Part")

_OOM_SCORE: Final = Path("/proc/self/oom_score_adj")
_MAX_TEXT: Final = 500


def digest(
    file: IO[bytes], task: TraceTask
) -> tuple[TraceAnswer, dict[str, CaptureTable]]:
    """What is wanted of a trace; a part that fails is named and costs no other."""
    answer = TraceAnswer()
    tables: dict[str, CaptureTable] = {}
    trace = _part(answer, "events", lambda: read(file))
    if trace is None:
        return answer, tables
    answer.num_events = sum(trace.num_events.values())
    profile = TraceProfile(trace)
    operators = _part(answer, "operators", lambda: operator_sums(profile, task.flops))
    if operators is not None:
        tables["operators"] = operators
    if not task.stacks:
        return answer, tables
    if python_calls(trace).any():
        metric = task.stacks
        answer.stacks = _part(
            answer, "stacks", lambda: folded_stacks(profile.times, metric)
        )
    else:
        answer.problems.append("no stacks: this torch has no Python calls as events")
    return answer, tables


def read(file: IO[bytes]) -> Trace:
    """The trace of an open file.

    Raises:
        RefusedError: it is none.
        OSError: the file cannot be read, or no temporary one written.
    """
    tables, meta = imported(file)
    with tempfile.NamedTemporaryFile() as columns:
        write_columns(columns, tables, meta)
        del tables
        return trace_of(open_columns(Path(columns.name)))


def _part(answer: TraceAnswer, name: str, make: Callable[[], _Part]) -> _Part | None:
    try:
        return make()
    except Exception as error:  # noqa: BLE001  # one part must not cost the others
        why = f"no {name}: {type(error).__name__}: {error}"
        answer.problems.append(why[:_MAX_TEXT])
    return None


def main(descriptor: int) -> None:
    """Read the task, and write the answer."""
    give_way()
    with suppress(OSError):  # where memory runs out, training is to stay
        _OOM_SCORE.write_text("1000")
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=TraceTask)
    with os.fdopen(descriptor, "rb") as file:
        answer, tables = digest(file, task)
    meta: dict[str, Any] = msgspec.to_builtins(answer)
    capture = Capture(
        kind="trace",
        time_ns=0,
        step=None,
        phase="",
        function="",
        iteration=0,
        meta=meta,
        tables=tables,
    )
    sys.stdout.buffer.write(encode_body(capture))


if __name__ == "__main__":
    main(int(sys.argv[1]))
