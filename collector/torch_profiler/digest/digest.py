"""Reads a stopped profiler: operators, summary, stacks, memory timeline.

Each part stands by itself: what fails or cannot be had is said in words and the others
are there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memboard.collector.config.rules import NEEDED_BY_MEMORY
from memboard.collector.core.guard import Block
from memboard.collector.core.source import Unavailable
from memboard.collector.torch_profiler.digest.events import read_events
from memboard.collector.torch_profiler.digest.memory_page import timeline_page
from memboard.collector.torch_profiler.digest.memory_timeline import (
    MAX_EVENTS,
    MAX_EVENTS_WANTED,
    memory_timelines,
    timeline_csv,
)
from memboard.collector.torch_profiler.digest.operators import operators_table
from memboard.collector.torch_profiler.digest.recorder import without_recorder
from memboard.collector.torch_profiler.digest.stacks import folded_stacks, has_stacks
from memboard.collector.torch_profiler.digest.summary import summary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memboard.collector.config.sections import TorchProfilerConfig
    from memboard.collector.format.records import CaptureTable
    from memboard.collector.torch_profiler.digest.events import Events
    from memboard.collector.torch_profiler.digest.memory_timeline import DeviceTimeline
    from memboard.collector.torch_profiler.source import Trace


@dataclass(slots=True)
class Digest:
    operators: CaptureTable | None = None
    flops: float | None = None
    """Of all its steps; None where they were not counted."""
    summary: str = ""
    stacks: str | None = None  # Folded; see `stacks`
    timelines: Sequence[DeviceTimeline] | None = None
    why_no_timeline: tuple[str, str] | None = None
    """Reason and remedy, where it was asked for and cannot be had."""
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
    settings: TorchProfilerConfig,
    *,
    rank: int,
    pause: Callable[[float], None] = time.sleep,
) -> Digest:
    """Read what the settings ask for.

    `pause` is called between portions of the work, so that training goes on. Never raises.
    """
    digest = Digest()
    events = _tried(digest, "events", lambda: _events(trace.profile, pause))
    if events is None:
        return digest
    digest.num_events = len(events)
    program = _tried(
        digest,
        "operators without the recorder's",
        lambda: without_recorder(events, tracks_modules=trace.tracks_modules),
    )
    if program is None:
        program = events
    _tried(digest, "operators", lambda: _sum_up(digest, program, trace, rank))
    if settings.stacks_filename:
        if has_stacks(events):
            digest.stacks = _tried(
                digest,
                "stacks",
                lambda: folded_stacks(program, settings.stacks_metric, pause),
            )
        else:
            digest.problems.append(
                "no stacks: this torch has no Python calls as events"
            )
    if all(trace.wanted.options[name] for name in NEEDED_BY_MEMORY):
        try:
            most = MAX_EVENTS_WANTED if settings.memory_filename else MAX_EVENTS
            digest.timelines = memory_timelines(trace.profile, len(events), most)
        except Unavailable as missing:
            digest.why_no_timeline = missing.reason, missing.remedy
            digest.problems.append(f"no memory timeline: {missing.reason}")
    return digest


def _events(profile: Any, pause: Callable[[float], None]) -> Events:
    return read_events(profile.profiler.kineto_results, pause)


def _sum_up(
    digest: Digest,
    events: Events,
    trace: Trace,
    rank: int,
) -> None:
    digest.operators = operators_table(events)
    if trace.wanted.options["with_flops"]:
        digest.flops = float(events.flops.sum())
    digest.summary = summary(digest.operators, rank=rank)


def _tried(digest: Digest, what: str, make: Callable[[], Any]) -> Any:
    def failed(error: BaseException) -> None:  # one part must not cost the others
        digest.problems.append(f"no {what}: {type(error).__name__}: {error}"[:500])

    with Block(failed):
        return make()
    return None
