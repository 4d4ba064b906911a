"""The critical path of a step: the chain of work without waiting that its length is made of.

It is followed from the end of the step back to its begin, as performance analysis does
since Yang and Miller's "Critical Path Analysis for the Execution of Parallel and Distributed
Programs" (1988). At each piece of work the path goes on with what that piece waited for last:

- **work of a device** waited for the work before it on its stream; where the stream was
  empty when it was launched, for its launch. Where it began later than either explains
  (`NEAR_NS`), and work of another stream had just ended, for that: an event between
  streams, which traces seldom record.
- **a call that waits for a device** (a synchronisation, or a copy that blocks) waited for
  the work that ended last while it waited.
- **an operator that launched long work and outlasted it**, most of its time since being
  that work's, waited for it too: by a call that the profiler did not record.
- **a thread that neither operates nor calls** waited for the thread of autograd, where that
  worked, or, if it is in a call of Python that waits, for the thread that worked last; else
  it ran code of the program outside operators.

The path begins on the thread that the step is marked on; without marks, on the one that
launches most, never on one that only waits.

The pieces follow each other without a gap, so that they add up to the step. Work off the
path was hidden behind it: to make that faster makes no step shorter.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.analysis.time.slice_tree import innermost
from memboard.tb_plugin.analysis.trace.texts import are

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile

NEAR_NS: Final = 10_000
"""A device begins what was waiting within this time of what it waited for."""

_WAITS: Final = re.compile(r"(?:cuda|hip|cu|ze|mu)\w*Synchroni[sz]e\w*")
_AUTOGRAD: Final = re.compile(r"autograd::engine::evaluate_function.*")
_STEP: Final = re.compile(r"ProfilerStep#\d+")
_ANNOTATION: Final = "user_annotation"
_WAITING: Final = re.compile(
    r".*(?:threading|queue|selectors|concurrent/futures/\w+|multiprocessing/\w+|asyncio/\w+)"
    r"\.py\(\d+\): (?:wait\w*|join|get|put|acquire|result|select|poll|recv\w*|_wait\w*)"
    r"|<built-in method (?:acquire|wait|poll|select|epoll_wait|sleep|recv\w*|join) .*"
    r"|<method '(?:acquire|wait|poll|select|recv\w*|get)' of .*"
)
"""Frames of Python in which a thread waits for another one."""
_MOSTLY: Final = 0.75
"""Of an operator's time, and `_LONG_NS`: less may be chance, its own work beside a kernel."""
_LONG_NS: Final = 100_000


class Cause(Enum):
    """What a piece of the path is, in the words of the page."""

    KERNEL = "kernels"
    COMMUNICATION = "communication"
    COPY = "copies and fills"
    OPERATOR = "host operators"
    RUNTIME = "runtime calls"
    LOADING = "data loading"
    PROGRAM = "host outside operators"
    LAUNCH = "launch delay"
    GAP = "gaps between kernels"
    UNKNOWN = "unknown waits"


_OF_ROLE: Final = {
    Role.KERNEL: Cause.KERNEL,
    Role.MEMCPY: Cause.COPY,
    Role.MEMSET: Cause.COPY,
    Role.COMMUNICATION: Cause.COMMUNICATION,
    Role.RUNTIME: Cause.RUNTIME,
    Role.DATALOADER: Cause.LOADING,
    Role.CPU_EXEC: Cause.OPERATOR,
    Role.OTHER: Cause.PROGRAM,
}


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
        name = "" if piece.row == NOTHING else profile.trace.name_of(piece.row)
        time_and_count = sums.setdefault((name, piece.cause), [0, 0])
        time_and_count[0] += piece.end_ns - piece.start_ns
        time_and_count[1] += 1
    names_on_path = [
        OnPath(name, cause.value, *time_and_count)
        for (name, cause), time_and_count in sums.items()
    ]
    return sorted(names_on_path, key=lambda on_path: -on_path.path_ns)


class _Works:
    """All work of the devices by its start, as plain lists."""

    def __init__(self, profile: TraceProfile) -> None:
        trace = profile.trace
        work, pairs = trace.device_work, trace.launch_pairs
        starts = trace.slices.starts(work.row)
        order = np.argsort(starts, kind="stable")
        launch = np.full(len(work), NOTHING, np.int64)
        launch[np.searchsorted(work.row, pairs[:, 1])] = pairs[:, 0]
        ends, launch = trace.slices.ends(work.row)[order], launch[order]
        place = np.arange(len(order))
        by_stream = np.lexsort((place, work.stream[order], work.device[order]))
        before = np.full(len(order), NOTHING, np.int64)
        if len(order) > 1:
            lanes = np.stack((work.device[order], work.stream[order]))[:, by_stream]
            same = (lanes[:, 1:] == lanes[:, :-1]).all(axis=0)
            before[by_stream[1:][same]] = by_stream[:-1][same]
        by_end = np.argsort(ends, kind="stable")
        self.row: list[int] = work.row[order].tolist()
        self.start: list[int] = starts[order].tolist()
        self.end: list[int] = ends.tolist()
        self.launch: list[int] = launch.tolist()
        self.before: list[int] = before.tolist()
        self._by_end: list[int] = by_end.tolist()
        self._ends: list[int] = ends[by_end].tolist()
        self.launched = dict(zip(self.launch, range(len(order)), strict=True))
        """By the row of a call the last work that it launched."""

    def ended_last(self, after: int, until: int) -> int:
        """The work that ended last in a range of time without its begin, or NOTHING."""
        index = bisect_right(self._ends, until) - 1
        return (
            self._by_end[index] if index >= 0 and self._ends[index] > after else NOTHING
        )


class _Thread:
    """The innermost slices of a thread in a range of time, one after the other."""

    def __init__(self, profile: TraceProfile, track: int, t0: int, t1: int) -> None:
        trace = profile.trace
        rows = np.concatenate(
            [
                np.arange(*trace.rows_of_level(track, level, t0, t1))
                for level in range(trace.tracks[track].num_levels)
            ]
        )
        changes = np.concatenate((trace.slices.ranges(rows).ravel(), (t0, t1)))
        times = np.unique(np.clip(changes, t0, t1))[:-1]
        innermost_rows = innermost(trace, np.full(len(times), track), times)
        kept = np.diff(innermost_rows, prepend=-2) != 0
        self.track = track
        self.start: list[int] = times[kept].tolist()
        self.row: list[int] = innermost_rows[kept].tolist()
        busy = np.flatnonzero(_is_busy(profile, innermost_rows[kept]))
        stops = np.append(times[kept][1:], t1)
        self._busy_start: list[int] = times[kept][busy].tolist()
        self._busy_end: list[int] = stops[busy].tolist()
        self._busy = set(busy.tolist())

    def at(self, time_ns: int) -> tuple[int, int, bool]:
        """Begin and slice of what ran just before a time, and whether it is busy."""
        place = max(bisect_left(self.start, time_ns) - 1, 0)
        return self.start[place], self.row[place], place in self._busy

    def busy_until(self, time_ns: int) -> int:
        """When it last was busy before a time; NOTHING if it was not."""
        place = bisect_left(self._busy_start, time_ns) - 1
        return min(self._busy_end[place], time_ns) if place >= 0 else NOTHING


def _is_busy(profile: TraceProfile, rows: Ints) -> Ints:
    """Whether slices are operators, calls or loading rather than annotations or code."""
    trace, roles = profile.trace, profile.roles
    has_row = rows != NOTHING
    valid_rows = np.where(has_row, rows, 0)
    noted = are(
        trace.strings,
        trace.slices.category[valid_rows],
        lambda x: x.lower() == _ANNOTATION,
    )
    role = roles[valid_rows]
    loads = (role == Role.DATALOADER) | (role == Role.COMMUNICATION)
    is_busy: Ints = has_row & (role != Role.OTHER) & (loads | ~noted)
    return is_busy


class _Walk:
    """From the end of a step back to its begin."""

    def __init__(self, profile: TraceProfile, step: int) -> None:
        self._profile = profile
        self._trace = profile.trace
        steps = profile.steps
        self._t0, self._t1 = int(steps.start_ns[step]), int(steps.end_ns[step])
        self._host_end = int(steps.host_end_ns[step])
        self._works = _Works(profile)
        self._threads: dict[int, _Thread] = {}
        self._activity = self._busy_tracks()
        self._main = self._main_track(int(steps.host_start_ns[step]))
        self._workers = self._autograd_tracks()
        self._found: list[Piece] = []
        self._time = self._t1

    def _busy_tracks(self) -> dict[int, tuple[int, int]]:
        """By thread of the host: its launches and its operators and calls in the step."""
        trace, slices = self._trace, self._trace.slices
        kinds = np.array([track.kind for track in trace.tracks])
        inside = (slices.start_ns < self._t1) & (slices.ends() > self._t0)
        rows = np.flatnonzero(inside & np.isin(kinds, ("host", "python"))[slices.track])
        rows = rows[_is_busy(self._profile, rows)]
        launches = np.unique(trace.launch_pairs[:, 0])
        launched = rows[np.isin(rows, launches)]
        num = len(trace.tracks)
        counts = (
            np.bincount(slices.track[launched], minlength=num).tolist(),
            np.bincount(slices.track[rows], minlength=num).tolist(),
        )
        return {
            track: pair
            for track, pair in enumerate(zip(*counts, strict=True))
            if pair[1]
        }

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
                if is_host and _STEP.fullmatch(trace.name_of(row)):
                    return track
        return max(
            self._activity, key=lambda track: self._activity[track], default=NOTHING
        )

    def _autograd_tracks(self) -> list[int]:
        slices = self._trace.slices
        rows = are(self._trace.strings, slices.name, _AUTOGRAD.fullmatch)
        tracks: list[int] = np.unique(slices.track[rows]).tolist()
        return tracks

    def _thread(self, track: int) -> _Thread:
        if track not in self._threads:
            made = _Thread(self._profile, track, self._t0, self._t1)
            self._threads[track] = made
        return self._threads[track]

    def _back_to(self, time_ns: int, cause: Cause, row: int) -> None:
        """Add what lies between a time and the time reached so far."""
        start = max(min(time_ns, self._time), self._t0)
        if start < self._time:
            self._found.append(Piece(start, self._time, cause, row))
            self._time = start

    def pieces(self) -> list[Piece]:
        work = self._works.ended_last(self._host_end, self._t1)
        thread = self._main
        if work != NOTHING:
            self._back_to(self._works.end[work], Cause.UNKNOWN, NOTHING)
        while self._time > self._t0:
            if work != NOTHING:
                work, thread = self._before_work(work, thread)
            elif thread != NOTHING:
                work, thread = self._before_host(self._thread(thread))
            else:
                self._back_to(self._t0, Cause.UNKNOWN, NOTHING)
        return self._found[::-1]

    def _before_work(self, work: int, thread: int) -> tuple[int, int]:
        works, slices = self._works, self._trace.slices
        row, start, launch = works.row[work], works.start[work], works.launch[work]
        self._back_to(start, _OF_ROLE[Role(int(self._profile.roles[row]))], row)
        before = works.before[work]
        ready = works.end[before] if before != NOTHING else self._t0
        called = returned = ready
        if launch != NOTHING:
            called, returned = slices.ranges(np.array([launch]))[0].tolist()
        is_dry = before == NOTHING or called > ready
        if start - max(ready, returned if is_dry else ready) > NEAR_NS:
            other = works.ended_last(max(ready, start - NEAR_NS), start)
            if other != NOTHING and works.start[other] < start:
                self._back_to(works.end[other], Cause.GAP, row)
                return other, thread
        if is_dry and launch != NOTHING:
            self._back_to(called, Cause.LAUNCH, launch)
            return NOTHING, int(slices.track[launch])
        if before != NOTHING:
            near = start - ready <= NEAR_NS
            self._back_to(ready, Cause.GAP if near else Cause.UNKNOWN, row)
        return before, thread

    def _before_host(self, thread: _Thread) -> tuple[int, int]:
        start, row, is_busy = thread.at(self._time)
        if not is_busy:
            return NOTHING, self._before_pause(thread, start, row)
        role = Role(int(self._profile.roles[row]))
        awaited = NOTHING
        if role == Role.RUNTIME:
            awaited = self._awaited_by_call(row)
        elif role == Role.CPU_EXEC:
            awaited = self._awaited_by_operator(row, start)
        if awaited != NOTHING:
            self._back_to(self._works.end[awaited], _OF_ROLE[role], row)
            return awaited, thread.track
        self._back_to(start, _OF_ROLE[role], row)
        return NOTHING, thread.track

    def _awaited_by_call(self, row: int) -> int:
        """The work that a call of the runtime ended with, or NOTHING."""
        works, called = self._works, int(self._trace.slices.start_ns[row])
        awaited = works.launched.get(row, NOTHING)
        if _WAITS.fullmatch(self._trace.name_of(row)):
            awaited = works.ended_last(called, self._time)
        ended = awaited != NOTHING and called < works.end[awaited] <= self._time
        return awaited if ended else NOTHING

    def _awaited_by_operator(self, row: int, start: int) -> int:
        """The work of an operator that took most of its own time until now, or NOTHING."""
        works = self._works
        awaited = works.ended_last(start, self._time)
        if awaited == NOTHING or works.launch[awaited] == NOTHING:
            return NOTHING
        called = int(self._trace.slices.start_ns[works.launch[awaited]])
        is_own = int(self._trace.slices.start_ns[row]) <= called < works.start[awaited]
        ran = works.end[awaited] - max(works.start[awaited], start)
        is_most = ran > max(_MOSTLY * (self._time - start), _LONG_NS)
        return awaited if is_own and is_most else NOTHING

    def _before_pause(self, thread: _Thread, start: int, row: int) -> int:
        """The thread that worked last while this one neither operated nor called."""
        if row == NOTHING and thread.track != self._main:
            return self._main  # its annotations say what it was
        tracks = {self._main, *self._workers}
        waits = row != NOTHING and _WAITING.fullmatch(self._trace.name_of(row))
        if waits or self._main not in self._activity:
            tracks.update(self._activity)
        until, other = max(
            (
                (self._thread(track).busy_until(self._time), track)
                for track in tracks - {thread.track, NOTHING}
            ),
            default=(NOTHING, NOTHING),
        )
        if until > start:
            self._back_to(until, Cause.PROGRAM, row)
            return other
        self._back_to(start, Cause.PROGRAM, row)
        return thread.track
