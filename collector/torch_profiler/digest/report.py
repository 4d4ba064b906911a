"""Captures of kind `trace`: what a page and other tools know of a saved trace.

There is one as soon as the trace's file is there. What is read out of the trace may take
minutes: it comes in another one of the same time (context `digest`), which says all that
the first one does and takes its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collector.format.records import Capture
from collector.functions.contract import WHOLE_STEP
from collector.steps.progress import TRAIN
from collector.torch_profiler.digest.memory_timeline import timeline_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.torch_profiler.digest.digest import Digest
    from collector.torch_profiler.source import Trace

KIND: Final = "trace"

DIGEST: Final = "digest"
"""The context of the second one."""


def capture_of(
    trace: Trace,
    digest: Digest | None,
    *,
    path: str = "",
    num_bytes: int = 0,
    beside: Sequence[str] = (),
    kept: bool = False,
    remote: str | None = None,
    problem: str = "",
) -> Capture:
    """The capture of a trace; see `collector.format.records` for its parts.

    Args:
        trace: as it was handed on.
        digest: None where nothing was read out of it yet, or it was not saved.
        path: POSIX, below the folder beside the rank's file; empty: not saved.
        num_bytes: of that file.
        beside: paths of what belongs to it: stacks, page.
        kept: whether it stays on this disk.
        remote: its url where it is mirrored.
        problem: what is wrong with it, in words.
    """
    meta: dict[str, Any] = {
        "path": path,
        "num_bytes": num_bytes,
        "cycle": trace.cycle,
        "first_step": trace.first_step,
        "last_step": trace.last_step,
        "num_steps": trace.num_steps,
        "start_ns": trace.start_ns,
        "end_ns": trace.end_ns,
        "activities": list(trace.wanted.activities),
        "options": dict(trace.wanted.options),
        "flops": None if digest is None else digest.flops,
        "kept": kept,
        "remote": remote,
        "problem": problem,
        "complete": not trace.problem,
        "beside": list(beside),
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
        context="" if digest is None else DIGEST,
        meta=meta,
        tables=tables,
    )
