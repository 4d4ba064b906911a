"""Training steps of a trace: as it names them, and as far as their device work reaches.

`steps_of` has what the timeline marks: annotations as `step_marks` has them, and spans of
category `step`.
`profiled_steps` has what times are of:

A step of the host begins before its kernels run and ends before they are done. So where
a trace has device work, a step lasts from its own begin, or the end of the step before,
to the end of the last work that was launched in it. Steps at the end of a trace whose
device work is missing, or cut short (less than four fifths of the step before; those of an
engine differ anyway), are left out. These are torch-tb-profiler's rules, so its step times are the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, Table
from memboard.tb_plugin.analysis.spans.tracks import STEP
from memboard.tb_plugin.analysis.time.step_marks import ENGINE_STEP, PROFILER_STEP
from memboard.tb_plugin.analysis.trace.texts import are, looked_up

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.trace.trace import Trace


_PROFILER_STEP: Final = re.compile(r"ProfilerStep[#*](\d{1,9})")
MAX_STEPS: Final = 20_000
_ON_DEVICE: Final = "gpu_user_annotation"
"""A copy of the annotation on a stream: no step of its own."""
_PYTHON: Final = re.compile(r"python(?:_function)?", re.IGNORECASE)
_WHOLE_SHARE: Final = 0.8


@dataclass(frozen=True, slots=True, eq=False)
class ProfiledSteps(Table):
    """Ascending, and none overlaps another; columns of equal length."""

    number: Ints
    """N of `ProfilerStep#N`; 0 where the trace has no steps and counts as one."""
    start_ns: Ints
    """With what its device work adds; see the module."""
    end_ns: Ints
    host_start_ns: Ints
    host_end_ns: Ints
    num_works: Ints
    """Kernels, copies and fills that were launched in it."""
    are_marked: bool = True
    """Whether the trace has steps at all."""

    @property
    def span_ns(self) -> tuple[int, int]:
        """From the first one's start to the last one's end."""
        return (int(self.start_ns[0]), int(self.end_ns[-1])) if len(self) else (0, 0)

    def index_of(self, number: int | None) -> int | None:
        """The first step with a number; None where there is none."""
        rows = np.flatnonzero(self.number == number)
        return int(rows[0]) if len(rows) else None

    def of(self, time_ns: Ints) -> Ints:
        """Index of the step that holds each time; -1 where none does."""
        index = np.searchsorted(self.start_ns, time_ns, "right") - 1
        is_inside = (index >= 0) & (time_ns < self.end_ns[np.maximum(index, 0)])
        return np.where(is_inside, index, -1)


def profiled_steps(trace: Trace) -> ProfiledSteps:
    """The steps of a trace; all of it as one where it has none."""
    number, start, end = profiler_steps(trace)
    may_differ = not len(number)
    if may_differ:
        number, start, end = _engine_steps(trace)
    are_marked = len(number) > 0
    if not are_marked:
        number, start, end = _whole(trace)
    launched, step_of_work = _work_of_steps(trace, start, end)
    num_works = np.bincount(step_of_work[launched], minlength=len(number))
    reaching = _reaching(trace, start, end, step_of_work)
    kept = slice(_num_whole(num_works, may_differ=may_differ))
    return ProfiledSteps(
        number=number[kept],
        start_ns=reaching[0][kept],
        end_ns=reaching[1][kept],
        host_start_ns=start[kept],
        host_end_ns=end[kept],
        num_works=num_works[kept],
        are_marked=are_marked,
    )


def profiler_steps(trace: Trace) -> tuple[Ints, Ints, Ints]:
    """Number, start and end of every step that a profiler marks, in order."""
    rows = _marks(trace, PROFILER_STEP)
    number = looked_up(trace.strings, trace.slices.name[rows], _number, np.int64)
    return number, trace.slices.starts(rows), trace.slices.ends(rows)


def _engine_steps(trace: Trace) -> tuple[Ints, Ints, Ints]:
    """Those that an inference engine marks, numbered from 1."""
    rows = _marks(trace, ENGINE_STEP)
    start, end = trace.slices.starts(rows), trace.slices.ends(rows)
    reach = np.maximum.accumulate(end)
    # A mark inside another one is of a part.
    outermost = np.append(True, start[1:] >= reach[:-1])[: len(rows)]
    start, end = start[outermost], end[outermost]
    return np.arange(1, len(start) + 1, dtype=np.int64), start, end


def _marks(trace: Trace, pattern: re.Pattern[str]) -> Ints:
    """Rows of the host's annotations of a name, in order of time, each once."""
    slices, strings = trace.slices, trace.strings
    rows = np.flatnonzero(are(strings, slices.name, pattern.fullmatch))
    on_device = are(
        strings, slices.category[rows], lambda category: category.lower() == _ON_DEVICE
    )
    # One without a length is a mistake of the file, which says so.
    rows = rows[~on_device & (slices.duration_ns[rows] > 0)]
    rows = rows[np.argsort(slices.starts(rows), kind="stable")]
    start = slices.starts(rows)
    # One annotation, seen twice (as operator and annotation), is one step.
    marks: Ints = rows[np.diff(start, prepend=start[:1] - 1) > 0]
    return marks


def _number(step_name: str) -> int:
    match = PROFILER_STEP.fullmatch(step_name)
    return -1 if match is None else int(match[1])


def _whole(trace: Trace) -> tuple[Ints, Ints, Ints]:
    """All that the host did, as one step; where it did nothing, all there is.

    A thread of nothing but Python frames only waits, where others operate.
    """
    slices = trace.slices
    spans = [
        (first, stop)
        for track in trace.tracks
        if track.kind in ("host", "python")
        for first, stop in ((track.first_row, track.first_row + track.num_slices),)
        if stop > first
    ]
    is_frame = are(trace.strings, slices.category, _PYTHON.fullmatch)
    spans = [rows for rows in spans if not is_frame[slice(*rows)].all()] or spans
    start, end = trace.start_ns, trace.end_ns
    if spans:
        starts, durations = trace.slices.start_ns, trace.slices.duration_ns
        start = min(int(starts[a:b].min()) for a, b in spans)
        end = max(int((starts[a:b] + durations[a:b]).max()) for a, b in spans)
    zero = np.zeros(1, np.int64)
    return zero, zero + start, zero + end


def _work_of_steps(trace: Trace, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Of the device work: which was launched in a step, and in which (-1: in none)."""
    work = trace.device_work.row
    steps = np.full(len(work), -1, np.int64)
    pairs = trace.launch_pairs
    if len(pairs) and len(start):
        launch = trace.slices.start_ns[pairs[:, 0]]
        index = np.searchsorted(start, launch, "right") - 1
        inside = (index >= 0) & (launch < end[np.maximum(index, 0)])
        steps[np.searchsorted(work, pairs[:, 1])] = np.where(inside, index, -1)
    return steps >= 0, steps


def _reaching(
    trace: Trace, start: Ints, end: Ints, step_of_work: Ints
) -> tuple[Ints, Ints]:
    """Starts and ends with the device work that was launched in each step."""
    if not (step_of_work >= 0).any():
        return start, end
    rows = trace.device_work.row
    begins, ends = trace.slices.starts(rows), trace.slices.ends(rows)
    last = np.full(len(start), np.iinfo(np.int64).min)
    np.maximum.at(last, step_of_work[step_of_work >= 0], ends[step_of_work >= 0])
    before = int(start[0])
    in_first = step_of_work == 0
    if in_first.any():
        earlier = (step_of_work < 0) & (begins < begins[in_first].min())
        before = max(before, int(ends[earlier].max(initial=before)))
    starts, stops = start.copy(), end.copy()
    for index in range(len(start)):
        starts[index] = max(before, int(start[index]))
        stops[index] = max(int(end[index]), int(starts[index]), int(last[index]))
        before = int(stops[index])
    return starts, stops


def _num_whole(num_works: Ints, *, may_differ: bool) -> int:
    """How many steps are left without those at the end that are not whole.

    `may_differ`: whether whole ones may have any number of works.
    """
    with_work = np.flatnonzero(num_works)
    if not len(with_work) or len(num_works) < 2:
        return len(num_works)
    last = int(with_work[-1])
    if (
        not may_differ
        and last > 0
        and num_works[last] < _WHOLE_SHARE * num_works[last - 1]
    ):
        return last
    return last + 1


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Steps in order of time; columns of equal length."""

    number: Ints
    start_ns: Ints
    end_ns: Ints


def steps_of(trace: Trace) -> Steps:
    """Steps of the host's tracks; the newest 20,000."""
    slices, strings = trace.slices, trace.strings
    named = are(strings, slices.name, _PROFILER_STEP.fullmatch)
    rows = np.flatnonzero(named | are(strings, slices.category, STEP.__eq__))
    kinds = np.array([track.kind for track in trace.tracks], "U8")[slices.track[rows]]
    rows = rows[(kinds == "span") | (named[rows] & (kinds != "device"))]
    if not len(rows):
        number, start, end = _engine_steps(trace)
        return Steps(number[-MAX_STEPS:], start[-MAX_STEPS:], end[-MAX_STEPS:])
    rows = rows[np.lexsort((slices.ends(rows), slices.start_ns[rows]))][-MAX_STEPS:]
    number = looked_up(strings, slices.name[rows], _marked_number, np.int64)
    for row in np.flatnonzero(number == NOTHING).tolist():
        step = trace.args_of(int(rows[row])).get("step")
        number[row] = step if isinstance(step, int) else NOTHING
    return Steps(number, slices.starts(rows), slices.ends(rows))


def _marked_number(annotation: str) -> int:
    match = _PROFILER_STEP.fullmatch(annotation)
    return NOTHING if match is None else int(match[1])
