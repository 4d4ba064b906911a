"""The critical path of a step: the chain of work without waiting that its length is made of.

It is followed from the end of the step back to its begin, as performance analysis does
since Yang and Miller's "Critical Path Analysis for the Execution of Parallel and Distributed
Programs" (1988). At each piece of work the path goes on with what that piece waited for last:

- **work of a device** waited for what `work_starts` says: work of another stream, the work
  before it on its stream or, where the stream was empty when it was launched, its launch.
- **a call that waits for a device** (a synchronisation, or a copy that blocks) waited for
  the work that ended last while it waited; so does a frame of Python that does.
- **an operator that launched long work and outlasted it**, most of its time since being
  that work's, waited for it too: by a call that the profiler did not record. So did
  the end of a step of which nothing is recorded, while that work took most of the time.
- **a thread that neither operates nor calls** waited for the thread of autograd, where that
  worked, or, if it is in a call of Python that waits, for the thread that worked last; else
  it ran code of the program outside operators.

The path begins on the thread that the step is marked on; without marks, on the one that
launches most, never on one that only waits. What no rule explains is called so.

The pieces follow each other without a gap, so that they add up to the step. Work off the
path was hidden behind it: to make that faster makes no step shorter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.analysis.time.step_marks import is_step_mark
from memboard.tb_plugin.analysis.trace.texts import are
from memboard.tb_plugin.analysis.trace.waiting.host_threads import (
    OF_ROLE,
    WAITS_FOR_DEVICE,
    WAITS_FOR_THREAD,
    ThreadSlices,
    busy_threads,
)
from memboard.tb_plugin.analysis.trace.waiting.work_starts import NEVER, Cause

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile

_AUTOGRAD: Final = re.compile(r"autograd::engine::evaluate_function.*")
NO_SLICE: Final = "nothing recorded"
"""Name of time in which no slice was open."""
_FRAME: Final = "python_function"
_MOSTLY: Final = 0.75
"""Of an operator's time, and `_LONG_NS`: less may be chance, its own work beside a kernel."""
_LONG_NS: Final = 100_000


class Piece(NamedTuple):
    """One piece of the path."""

    start_ns: int
    end_ns: int
    cause: Cause
    row: int
    """The slice: of a launch delay the call, of a gap the work after it; or NOTHING."""


@dataclass(frozen=True, slots=True)
class OnPath:
    """All pieces of one name and cause."""

    name: str
    cause: str
    path_ns: int
    pieces: int


def critical_path(profile: TraceProfile, step: int) -> list[Piece]:
    """Of the step at an index of `profile.steps`, from its begin to its end."""
    return _Walk(profile, step).pieces()


def by_name(profile: TraceProfile, path: list[Piece]) -> list[OnPath]:
    """The path summed by name and cause, the longest first."""
    sums: dict[tuple[str, Cause], list[int]] = {}
    for piece in path:
        name = profile.trace.name_of(piece.row) if piece.row != NOTHING else NO_SLICE
        time_and_count = sums.setdefault((name, piece.cause), [0, 0])
        time_and_count[0] += piece.end_ns - piece.start_ns
        time_and_count[1] += 1
    names_on_path = [
        OnPath(name, cause.value, *time_and_count)
        for (name, cause), time_and_count in sums.items()
    ]
    return sorted(names_on_path, key=lambda on_path: -on_path.path_ns)


class _Walk:
    """From the end of a step back to its begin."""

    def __init__(self, profile: TraceProfile, step: int) -> None:
        self._profile = profile
        self._trace = profile.trace
        steps = profile.steps
        self._t0, self._t1 = int(steps.start_ns[step]), int(steps.end_ns[step])
        self._host_end = int(steps.host_end_ns[step])
        self._works = profile.work_starts
        self._threads: dict[int, ThreadSlices] = {}
        self._activity = busy_threads(profile, self._t0, self._t1)
        self._main = self._main_track(int(steps.host_start_ns[step]))
        self._workers = self._autograd_tracks()
        self._pieces: list[Piece] = []
        self._time = self._t1

    def _main_track(self, host_start: int) -> int:
        """The thread that the step is marked on; else the one that launches most.

        Of traces without devices it is the one with most operators and calls.
        """
        trace, slices = self._trace, self._trace.slices
        if self._profile.steps.are_marked:
            marks = (slices.start_ns == host_start) & (slices.ends() == self._host_end)
            for row in np.flatnonzero(marks).tolist():
                track = int(slices.track[row])
                is_host = trace.tracks[track].kind in ("host", "python")
                if is_host and is_step_mark(trace.name_of(row)):
                    return track
        return max(
            self._activity, key=lambda track: self._activity[track], default=NOTHING
        )

    def _autograd_tracks(self) -> list[int]:
        slices = self._trace.slices
        rows = are(self._trace.strings, slices.name, _AUTOGRAD.fullmatch)
        tracks: list[int] = np.unique(slices.track[rows]).tolist()
        return tracks

    def _thread(self, track: int) -> ThreadSlices:
        if track not in self._threads:
            made = ThreadSlices(self._profile, track, self._t0, self._t1)
            self._threads[track] = made
        return self._threads[track]

    def _back_to(self, time_ns: int, cause: Cause, row: int) -> None:
        """Add what lies between a time and the time reached so far."""
        start = max(min(int(time_ns), self._time), self._t0)
        if start == self._time:
            return
        end = self._time
        if self._pieces and self._pieces[-1][2:] == (cause, row):
            end = self._pieces.pop().end_ns
        self._pieces.append(Piece(start, end, cause, row))
        self._time = start

    def pieces(self) -> list[Piece]:
        work = self._works.ended_last(self._host_end, self._t1)
        thread = self._main
        if work != NOTHING:
            self._back_to(self._works.end_ns[work], Cause.UNKNOWN, NOTHING)
        while self._time > self._t0:
            if work != NOTHING:
                work, thread = self._before_work(work, thread)
            elif thread != NOTHING:
                work, thread = self._before_host(self._thread(thread))
            else:
                self._back_to(self._t0, Cause.UNKNOWN, NOTHING)
        return self._pieces[::-1]

    def _before_work(self, work: int, thread: int) -> tuple[int, int]:
        works = self._works
        row, launch = int(works.row[work]), int(works.launch[work])
        role = Role(int(self._profile.roles[row]))
        self._back_to(works.start_ns[work], OF_ROLE[role], row)
        awaited, before = int(works.awaited[work]), int(works.before[work])
        ready = works.end_ns[before] if before != NOTHING else self._t0
        called = works.called_ns[work]
        if awaited != NOTHING:
            until, previous = works.end_ns[awaited], (awaited, thread)
        elif launch != NOTHING and (before == NOTHING or called > ready):
            until, previous = called, (NOTHING, int(self._trace.slices.track[launch]))
        else:
            until, previous = ready, (before, thread)
        # While the device was idle as its idle time is split, before that as the stream's.
        for splits in (works.on_device, works.on_stream):
            for begin, cause in splits.after_call(work):
                of_call = cause == Cause.LAUNCH and launch != NOTHING
                self._back_to(max(begin, until), cause, launch if of_call else row)
        return previous

    def _before_host(self, thread: ThreadSlices) -> tuple[int, int]:
        start, row, is_busy = thread.at(self._time)
        awaited, role = self._awaited(start, row, is_busy=is_busy)
        cause = OF_ROLE[role] if is_busy else thread.cause_at(self._time)
        if awaited != NOTHING:
            self._back_to(self._works.end_ns[awaited], cause, row)
            return awaited, thread.track
        if not is_busy:
            awaited = self._awaited_in_pause(start, row)
            if awaited != NOTHING:
                self._back_to(self._works.end_ns[awaited], cause, row)
                return awaited, thread.track
            return NOTHING, self._before_pause(thread, start, row)
        self._back_to(start, cause, row)
        return NOTHING, thread.track

    def _awaited(self, start: int, row: int, *, is_busy: bool) -> tuple[int, Role]:
        """The work of a device that a thread waited for, or NOTHING; and the slice's role."""
        if row == NOTHING:
            return NOTHING, Role.OTHER
        role = Role(int(self._profile.roles[row]))
        if WAITS_FOR_DEVICE.fullmatch(self._trace.name_of(row)):
            return self._awaited_by_synchronisation(row), role
        if is_busy and role == Role.RUNTIME:
            return self._awaited_by_call(row), role
        if is_busy and role == Role.CPU_EXEC:
            return self._awaited_by_operator(row, start), role
        return NOTHING, role

    def _awaited_by_synchronisation(self, row: int) -> int:
        """The work that ended last while a call waited, or that is recorded; or NOTHING."""
        works, called = self._works, int(self._trace.slices.start_ns[row])
        by_call = works.synchronised.of_call
        if row not in by_call:
            return works.ended_last(called, self._time)
        awaited = by_call[row]
        ended = awaited != NOTHING and called < works.end_ns[awaited] <= self._time
        return awaited if ended else NOTHING

    def _awaited_by_call(self, row: int) -> int:
        """The work that a call launched and ended with, or NOTHING."""
        works, called = self._works, int(self._trace.slices.start_ns[row])
        awaited = works.launched.get(row, NOTHING)
        ended = awaited != NOTHING and called < works.end_ns[awaited] <= self._time
        return awaited if ended else NOTHING

    def _awaited_in_pause(self, start: int, row: int) -> int:
        """The work that took most of a step's last pause, or NOTHING."""
        is_frame = row != NOTHING and self._trace.category_of(row) == _FRAME
        if is_frame or self._time < self._host_end:
            return NOTHING
        awaited = self._works.ended_last(start, self._time)
        if awaited == NOTHING or not NEVER < self._works.called_ns[awaited] < start:
            return NOTHING
        waited = int(self._works.end_ns[awaited]) - start
        is_most = waited > max(_MOSTLY * (self._time - start), _LONG_NS)
        return awaited if is_most else NOTHING

    def _awaited_by_operator(self, row: int, start: int) -> int:
        """The work of an operator that took most of its own time until now, or NOTHING."""
        works = self._works
        awaited = works.ended_last(start, self._time)
        if awaited == NOTHING or works.launch[awaited] == NOTHING:
            return NOTHING
        called = int(works.called_ns[awaited])
        begun = int(works.start_ns[awaited])
        is_own = int(self._trace.slices.start_ns[row]) <= called < begun
        ran = int(works.end_ns[awaited]) - max(begun, start)
        is_most = ran > max(_MOSTLY * (self._time - start), _LONG_NS)
        return awaited if is_own and is_most else NOTHING

    def _before_pause(self, thread: ThreadSlices, start: int, row: int) -> int:
        """The thread that worked last while this one neither operated nor called."""
        if row == NOTHING and thread.track != self._main:
            return self._main  # its annotations say what it was
        tracks = {self._main, *self._workers}
        waits = row != NOTHING and WAITS_FOR_THREAD.fullmatch(self._trace.name_of(row))
        if waits or self._main not in self._activity:
            tracks.update(self._activity)
        until, other = max(
            (
                (self._thread(track).busy_until(self._time), track)
                for track in tracks - {thread.track, NOTHING}
            ),
            default=(NOTHING, NOTHING),
        )
        cause = thread.cause_at(self._time)
        if until > start:
            self._back_to(until, cause, row)
            return other
        self._back_to(start, cause, row)
        return thread.track
