"""Reads a saved trace: operators, summary, stacks, memory timeline.

Each part stands by itself: what fails or cannot be had is said in words and the others
are there. Operators and stacks are read out of the file; FLOP, and what torch's own
analysis says of memory, are not in it and come from the stopped profiler.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.config.rules import NEEDED_BY_MEMORY
from memboard.collector.core.guard import Block
from memboard.collector.core.source import Unavailable
from memboard.collector.torch_profiler.digest.memory_page import timeline_page
from memboard.collector.torch_profiler.digest.memory_timeline import (
    MAX_EVENTS,
    MAX_EVENTS_WANTED,
    memory_timelines,
    timeline_csv,
)
from memboard.collector.torch_profiler.digest.reading import (
    TraceTask,
    read_trace,
)
from memboard.collector.torch_profiler.digest.summary import summary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memboard.collector.config.sections import TorchProfilerConfig
    from memboard.collector.format.records import CaptureTable
    from memboard.collector.torch_profiler.digest.memory_timeline import DeviceTimeline
    from memboard.collector.torch_profiler.trace import Trace

_PORTION: Final = 1000
"""Events whose FLOP is read in one go: less than the interpreter gives a thread."""

_PAUSE_SECONDS: Final = 0.003


@dataclass(slots=True)
class Digest:
    operators: CaptureTable | None = None
    flops: float | None = None
    """Of all its steps; None where they were not counted."""
    summary: str = ""
    stacks: str | None = (
        None  # Folded; see `tb_plugin.analysis.operators.folded_stacks`
    )
    timelines: Sequence[DeviceTimeline] | None = None
    why_no_timeline: tuple[str, str] | None = None
    """Reason and remedy, where settings switch it on and it cannot be had."""
    num_events: int | None = None
    problems: list[str] = field(default_factory=list)

    def memory_text(self, filename: str, title: str) -> str | None:
        """The memory timeline in the form that a file's name asks for: a page or values.

        None where there is no timeline, and where no file is wanted.
        """
        if self.timelines is None or not filename:
            return None
        if filename.removesuffix(".gz").endswith(".html"):
            return timeline_page(self.timelines, title)
        return timeline_csv(self.timelines)


def digest_of(
    trace: Trace,
    file: IO[bytes],
    settings: TorchProfilerConfig,
    *,
    rank: int,
    pause: Callable[[float], None] = time.sleep,
) -> Digest:
    """Read what the settings ask for.

    `file`: the trace's, open. `pause` is called between portions of the work, so that
    training goes on. Never raises.
    """
    digest = Digest()
    flops: dict[int, int] = {}
    if trace.wanted.options["with_flops"]:
        counted = _tried(digest, "FLOP", lambda: flops_of(trace.profile, pause))
        if counted is not None:
            flops = counted
    _tried(
        digest,
        "operators",
        lambda: _read(digest, trace, file, settings, flops, rank, pause),
    )
    if all(trace.wanted.options[name] for name in NEEDED_BY_MEMORY):
        try:
            most = MAX_EVENTS_WANTED if settings.memory_filename else MAX_EVENTS
            digest.timelines = memory_timelines(
                trace.profile, digest.num_events or 0, most
            )
        except Unavailable as missing:
            digest.why_no_timeline = missing.reason, missing.remedy
            digest.problems.append(f"no memory timeline: {missing.reason}")
    return digest


def flops_of(
    profile: Any, pause: Callable[[float], None] = time.sleep
) -> dict[int, int]:
    """What torch counted, by the id that the trace calls `External id`."""
    events = profile.profiler.kineto_results.events()
    flops: dict[int, int] = {}
    while events:  # from the end: what was looked at is let go
        portion = events[-_PORTION:]
        del events[-_PORTION:]
        for event in portion:
            if num := event.flops():
                flops[event.correlation_id()] = num
        pause(_PAUSE_SECONDS)
    return flops


def _read(
    digest: Digest,
    trace: Trace,
    file: IO[bytes],
    settings: TorchProfilerConfig,
    flops: dict[int, int],
    rank: int,
    pause: Callable[[float], None],
) -> None:
    task = TraceTask(flops=flops)
    if settings.stacks_filename:
        task.stacks = settings.stacks_metric
    answer, tables = read_trace(file, task, pause)
    digest.problems += answer.problems
    digest.num_events = answer.num_events
    digest.stacks = answer.stacks
    digest.operators = tables.get("operators")
    if digest.operators is None:
        return
    if trace.wanted.options["with_flops"]:
        digest.flops = float(np.asarray(digest.operators["flops"]).sum())
    digest.summary = summary(digest.operators, rank=rank)


def _tried(digest: Digest, noun: str, make: Callable[[], Any]) -> Any:
    def failed(error: BaseException) -> None:  # one part must not cost the others
        digest.problems.append(f"no {noun}: {type(error).__name__}: {error}"[:500])

    with Block(failed):
        return make()
    return None
