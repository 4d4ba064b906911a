"""The training step of each event, from whatever the snapshot says of steps.

In this order: the tags that a recording of ours puts on allocations; `ProfilerStep#N`
ranges of the profiler; ends of `Optimizer.step` ranges, which are counted from 0 because
nothing says how many were before. Ranges are placed by their times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from memboard.collector.format.snapshots.tags import tag_data
from memboard.tb_plugin.analysis.arrays import NOTHING, constant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.snapshots.snapshot import DeviceSnapshot, Snapshot


StepsBy: TypeAlias = Literal["tags", "profiler", "optimizer", "nothing"]

_PROFILER_STEP: Final = re.compile(r"^ProfilerStep#(\d{1,15})$")
_OPTIMIZER_STEP: Final = re.compile(r"^Optimizer\.step#")


@dataclass(frozen=True, slots=True)
class Spans:
    """Named ranges of the program, placed among the events of a device."""

    name: Sequence[str]
    first: Ints
    """The first event at or after its start."""
    end: Ints
    """The first event after its end; their number where the end was not recorded."""
    depth: Ints
    """In how many others it lies."""


@dataclass(frozen=True, slots=True)
class Steps:
    step: Ints
    """(events,): NOTHING where it is not known."""
    phase: Ints
    """(events,): row of `phases`, as tags say it; NOTHING."""
    phases: tuple[str, ...]
    by: StepsBy

    def starts(self) -> tuple[Ints, Ints]:
        """The events at which another step begins, and which one."""
        step = self.step
        changes = np.flatnonzero(step[1:] != step[:-1]) + 1
        rows = np.concatenate([np.arange(min(1, len(step))), changes])
        rows = rows[step[rows] != NOTHING]
        # Behind events of no known step the same one may go on.
        rows = rows[np.diff(step[rows], prepend=NOTHING) != 0]
        return rows, step[rows]


def steps_of(
    snapshot: Snapshot, device: DeviceSnapshot, spans: Spans | None = None
) -> Steps:
    """The steps of a device's events; `spans`: those of `spans_of`, where known."""
    num = len(device.events)
    tagged, phase, phases = _by_tags(snapshot, device)
    if tagged is not None:
        return Steps(tagged, phase, phases, "tags")
    nothing = constant(NOTHING, num)
    spans = spans_of(snapshot, device) if spans is None else spans
    numbers = [_PROFILER_STEP.match(annotation) for annotation in spans.name]
    if any(numbers):
        step = np.full(num, NOTHING, np.int64)
        for row, match in enumerate(numbers):
            if match is not None:
                step[spans.first[row] : spans.end[row]] = int(match.group(1))
        return Steps(step, nothing, (), "profiler")
    ends = [
        int(spans.end[row])
        for row, annotation in enumerate(spans.name)
        if _OPTIMIZER_STEP.match(annotation)
    ]
    if ends:
        # Where a step has several optimizers, each of them ends one.
        step = np.searchsorted(np.unique(ends), np.arange(num), "right")
        return Steps(step, nothing, (), "optimizer")
    return Steps(nothing, nothing, (), "nothing")


def spans_of(snapshot: Snapshot, device: DeviceSnapshot) -> Spans:
    """The annotated ranges of a device, in order of their starts.

    None where its events have no times. Ends close the last open range of their name;
    an end without one is left out.
    """
    notes, time_us = snapshot.annotations, device.events.time_us
    rows: list[tuple[str, int, int | None, int]] = []
    open_rows: dict[str, list[int]] = {}
    num_open = 0
    own = (device.device, NOTHING)
    told = zip(notes.name, notes.device.tolist(), notes.is_start.tolist(), strict=True)
    for event, (name, number, is_start) in enumerate(
        told if time_us is not None else ()
    ):
        if number not in own:
            continue
        if is_start:
            open_rows.setdefault(name, []).append(len(rows))
            rows.append((name, event, None, num_open))
            num_open += 1
        elif open_rows.get(name):
            row = open_rows[name].pop()
            rows[row] = (*rows[row][:2], event, rows[row][3])
            num_open -= 1
    times = notes.time_us
    # Clocks that go back would break the search: a time counts from its highest on.
    clock = np.empty(0) if time_us is None else np.maximum.accumulate(time_us)
    starts = np.array([row[1] for row in rows], np.int64)
    ends = [row[2] for row in rows]
    end = np.searchsorted(
        clock, times[[0 if end is None else end for end in ends]], "right"
    )
    unended = np.array([end is None for end in ends], np.bool_)
    return Spans(
        name=[row[0] for row in rows],
        first=np.searchsorted(clock, times[starts], "left"),
        end=np.where(unended, len(device.events), end),
        depth=np.array([row[3] for row in rows], np.int64),
    )


def _by_tags(
    snapshot: Snapshot, device: DeviceSnapshot
) -> tuple[Ints | None, Ints, tuple[str, ...]]:
    """Steps and phases of our tags; an event without one goes on with the last.

    Allocations of autograd's threads bear no tag: they lie between those that do.
    """
    tag = device.events.tag
    phases: list[str] = []
    step_of = np.full(len(snapshot.texts) + 1, NOTHING, np.int64)
    phase_of = step_of.copy()
    for row in np.unique(tag[tag != NOTHING]).tolist():
        data = tag_data(snapshot.texts[row])
        if data is None or not 0 <= data["step"] < 1 << 62:
            continue
        step_of[row] = data["step"]
        phase = str(data.get("phase", ""))
        if phase not in phases:
            phases.append(phase)
        phase_of[row] = phases.index(phase)
    has_step = step_of[tag] != NOTHING
    if not has_step.any():
        return None, tag, ()
    last = np.maximum.accumulate(np.where(has_step, np.arange(len(tag)), NOTHING))
    carried = np.append(tag, NOTHING)[last]  # before the first tag: the last one, none
    return step_of[carried], phase_of[carried], tuple(phases)
