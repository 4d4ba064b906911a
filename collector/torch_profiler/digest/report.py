"""Captures of kind `trace`: what a page and other tools know of a saved trace.

There is one as soon as the trace has ended, and one as soon as its file is there. What is
read out of the trace may take minutes: it comes in another one. Each has the time of the
one before, says all that it does, and takes its place; see `TRACE_CONTEXTS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

from memboard.collector.core.calls import WHOLE_STEP
from memboard.collector.format.capture import TRACE_READ
from memboard.collector.format.records import Capture
from memboard.collector.steps.progress import TRAIN
from memboard.collector.torch_profiler.digest.memory_timeline import timeline_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from memboard.collector.torch_profiler.digest.digest import Digest
    from memboard.collector.torch_profiler.trace import Trace

KIND: Final = "trace"

NOT_YET: Final = "not saved when this was written"
"""The problem of a trace that has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTrace:
    """A trace whose file is there."""

    trace: Trace
    folder: Path
    path: Path
    file: IO[bytes]
    """The same, open: it is read also where it is moved or deleted first."""
    num_bytes: int
    num_plain_bytes: int
    values: dict[str, Any]
    kept: bool
    """Whether it stays on this disk."""
    remote: str | None
    """Its url where it is mirrored."""
    problem: str
    """What is wrong with it, in words."""

    def name_of(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()


def capture_of(
    trace: Trace,
    digest: Digest | None = None,
    saved: SavedTrace | None = None,
    *,
    beside: Sequence[Path] = (),
    context: str = "",
    problem: str,
) -> Capture:
    """The capture of a trace; see `memboard.collector.format.records` for its parts.

    `digest`: None where nothing was read out of it yet; `saved`: None where it was not, as
    `context` then says. `beside`: what belongs to it, as stacks do.
    """
    meta: dict[str, Any] = {
        "path": "" if saved is None else saved.name_of(saved.path),
        "num_bytes": 0 if saved is None else saved.num_bytes,
        "cycle": trace.cycle,
        "first_step": trace.first_step,
        "last_step": trace.last_step,
        "num_steps": trace.num_steps,
        "start_ns": trace.start_ns,
        "end_ns": trace.end_ns,
        "activities": list(trace.wanted.activities),
        "options": dict(trace.wanted.options),
        "flops": None if digest is None else digest.flops,
        "kept": saved is not None and saved.kept,
        "remote": None if saved is None else saved.remote,
        "problem": problem,
        "complete": not trace.problem,
        "beside": [] if saved is None else list(map(saved.name_of, beside)),
        "summary": "" if digest is None else digest.summary,
        "num_events": None if digest is None else digest.num_events,
        "stop_us": trace.stop_us,
    }
    tables = {}
    if digest is not None and digest.operators is not None:
        tables["operators"] = digest.operators
    if digest is not None and digest.timelines is not None:
        tables["memory_timeline"] = timeline_table(digest.timelines)
    return Capture(
        kind=KIND,
        time_ns=trace.end_ns,
        step=trace.last_step,
        phase=TRAIN,
        function=WHOLE_STEP,
        iteration=trace.cycle,
        context=context if digest is None else TRACE_READ,
        meta=meta,
        tables=tables,
    )
