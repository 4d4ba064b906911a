"""What threads of the host did, and which of them only waited.

A thread is busy in operators, in calls of a device's runtime, in loading and in
communication of its own. Frames of Python and annotations say where it was; some of them
wait for another thread, or for a device.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.analysis.time.slice_tree import innermost
from memboard.tb_plugin.analysis.trace.categories import ANNOTATION
from memboard.tb_plugin.analysis.trace.texts import are
from memboard.tb_plugin.analysis.trace.waiting.work_starts import Cause

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile

WAITS_FOR_THREAD: Final = re.compile(
    r".*(?:threading|queue|queues|selectors|sched|subprocess|connection|popen_\w+"
    r"|concurrent/futures/\w+|multiprocessing/\w+|asyncio/\w+|zmq/\w+(?:/\w+)?|tqdm/_monitor"
    r"|compile_worker/\w+)"
    r"\.py\(\d+\): (?:_?wait\w*|_?join\w*|get|put|_?acquire\w*|result|as_completed|_?select"
    r"|_?poll\w*|_?recv\w*|_?read\w*|communicate|run|_run_once|run_forever|main|_worker)"
    r"|<built-in (?:method|function) (?:acquire(?:_lock)?|wait\w*|poll|select|epoll_wait"
    r"|sleep|recv\w*|read)\b(?! of (?:str|dict|list|_io\.)).*"
    r"|<method '(?:acquire|wait|poll|select|control|recv\w*|get)' of '(?!dict).*"
)
"""Frames of Python in which a thread waits for another one, or sleeps."""
WAITS_FOR_DEVICE: Final = re.compile(
    r"(?:cuda|hip|cu|ze|mu)\w*Synchroni[sz]e\w*"
    r"|<built-in (?:method|function) _?\w*synchronize\b.*"
)
"""Calls that return once work of a device has ended."""
_POLLS: Final = re.compile(
    r"(?:cuda|hip|cu|mu)(?:Event|Stream)Query\w*|" + WAITS_FOR_DEVICE.pattern
)
"""What a thread calls that watches a device, and starts nothing."""

OF_ROLE: Final = {
    Role.KERNEL: Cause.KERNEL,
    Role.MEMCPY: Cause.COPY,
    Role.MEMSET: Cause.COPY,
    Role.COMMUNICATION: Cause.COMMUNICATION,
    Role.RUNTIME: Cause.RUNTIME,
    Role.DATALOADER: Cause.LOADING,
    Role.CPU_EXEC: Cause.OPERATOR,
    Role.OTHER: Cause.PROGRAM,
}

CAUSES: Final = tuple(Cause)


class ThreadSlices:
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
        rows = innermost_rows[kept]
        self.track = track
        self.start: list[int] = times[kept].tolist()
        self.row: list[int] = rows.tolist()
        busy = np.flatnonzero(is_busy(profile, rows))
        cause = np.full(len(rows), CAUSES.index(Cause.PROGRAM))
        cause[rows != NOTHING] = causes_of(profile, rows[rows != NOTHING])
        self._cause: list[int] = cause.tolist()
        stops = np.append(times[kept][1:], t1)
        self._busy_start: list[int] = times[kept][busy].tolist()
        self._busy_end: list[int] = stops[busy].tolist()
        self._busy = set(busy.tolist())

    def at(self, time_ns: int) -> tuple[int, int, bool]:
        """Begin and slice of what ran just before a time, and whether it is busy."""
        place = max(bisect_left(self.start, time_ns) - 1, 0)
        return self.start[place], self.row[place], place in self._busy

    def cause_at(self, time_ns: int) -> Cause:
        """What the time just before a time was spent on."""
        place = max(bisect_left(self.start, time_ns) - 1, 0)
        return CAUSES[self._cause[place]]

    def busy_until(self, time_ns: int) -> int:
        """When it last was busy before a time; NOTHING if it was not."""
        place = bisect_left(self._busy_start, time_ns) - 1
        return min(self._busy_end[place], time_ns) if place >= 0 else NOTHING


def is_busy(profile: TraceProfile, rows: Ints) -> Flags:
    """Whether slices are operators, calls or loading rather than annotations or code."""
    trace, roles = profile.trace, profile.roles
    has_row = rows != NOTHING
    valid_rows = np.where(has_row, rows, 0)
    noted = are(
        trace.strings,
        trace.slices.category[valid_rows],
        lambda category: category.lower() == ANNOTATION,
    )
    role = roles[valid_rows]
    loads = (role == Role.DATALOADER) | (role == Role.COMMUNICATION)
    busy: Flags = has_row & (role != Role.OTHER) & (loads | ~noted)
    return busy


def busy_threads(
    profile: TraceProfile, start_ns: int, end_ns: int
) -> dict[int, tuple[int, int]]:
    """By track: launches, and operators and calls, in a range of time.

    Threads that only watch a device are none of them.
    """
    trace, slices = profile.trace, profile.trace.slices
    kinds = np.array([track.kind for track in trace.tracks])
    inside = (slices.start_ns < end_ns) & (slices.ends() > start_ns)
    rows = np.flatnonzero(inside & np.isin(kinds, ("host", "python"))[slices.track])
    rows = rows[is_busy(profile, rows)]
    works = ~are(trace.strings, slices.name[rows], _POLLS.fullmatch)
    launched = rows[np.isin(rows, np.unique(trace.launch_pairs[:, 0]))]
    num = len(trace.tracks)
    num_launches = np.bincount(slices.track[launched], minlength=num).tolist()
    num_busy = np.bincount(slices.track[rows], minlength=num).tolist()
    is_worker = np.bincount(slices.track[rows[works]], minlength=num).tolist()
    return {
        track: (num_launches[track], num_busy[track])
        for track in range(num)
        if is_worker[track]
    }


def causes_of(profile: TraceProfile, rows: Ints) -> Ints:
    """What time in slices of the host, none of them NOTHING, was spent on: in `CAUSES`.

    Python inside an operator is the operator's: that of a custom one is its body.
    """
    roles, around = profile.roles, profile.times.operators.parent[rows]
    of_operator = np.where(around == NOTHING, Role.OTHER, roles[around])
    role = np.where(is_busy(profile, rows), roles[rows], of_operator)
    causes: Ints = np.array([CAUSES.index(OF_ROLE[each]) for each in Role])[role]
    return causes
