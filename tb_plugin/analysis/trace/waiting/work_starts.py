"""What work of a device waited for: the time before it, split at its launch.

A stream, or a device, runs dry when all work that began earlier has ended. From then until
its next work starts, in this order:

- **host**: until the call that launched the work begins;
- **launch**: until this call returns, and what follows where it is no longer than
  `LAUNCH_NS`, the time that devices need to begin what came while they had nothing to do;
- **another stream**: until the work ended for which this one waited. Few traces record
  events (`synchronisations`). Else it is work that ended within `NEAR_NS` before a start that is late by more, or work
  of the same device that lay between launch and a start that nothing else explains;
- **gap between kernels**: launched before the stream ran dry, and started within `NEAR_NS`;
- **not explained**: what is left.

What was launched before a profiler started is not recorded, so the first work of a device
may begin long after its launch. That is **before the recorded work**, and no idle time.

The parts add up to the time. Idle time and the critical path are both made of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.trace.waiting.synchronisations import (
    AwaitedWork,
    LaunchedWork,
    awaited_work,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.time.intervals import Ranges
    from memboard.tb_plugin.analysis.trace.trace import Trace

NEAR_NS: Final = 20_000
"""Between two works of a stream that are both launched. 99 of 100 take 2 to 13 us (T4, V100,
A100, B200, MI210, MI300X)."""
LAUNCH_NS: Final = 100_000
"""From a call's return to the start of its work on an empty stream. 99 of 100 take 3 to 20 us
there; more where a call returns before its driver has compiled or copied."""
NEVER: Final = -(1 << 62)
"""A time before all others: no earlier work is recorded."""


class Cause(Enum):
    """What time was spent on, in the words of the page."""

    KERNEL = "kernels"
    COMMUNICATION = "communication"
    COPY = "copies and fills"
    OPERATOR = "host operators"
    RUNTIME = "runtime calls"
    LOADING = "data loading"
    PROGRAM = "host outside operators"
    LAUNCH = "launch delay"
    GAP = "gaps between kernels"
    BEFORE = "before the recorded work"
    UNKNOWN = "not explained"


_RESTS: Final = (Cause.LAUNCH, Cause.GAP, Cause.UNKNOWN, Cause.BEFORE)
_IS_LAUNCH, _IS_GAP, _IS_UNKNOWN, _IS_BEFORE = range(4)


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """(works,) columns of ascending times: where the time before each work is split.

    Of works that began while their stream or device was still busy all are the start.
    """

    dry_ns: Ints  # `NEVER` before the first
    called_ns: Ints
    """Until here the time is the host's; as `dry_ns` where no call is recorded."""
    returned_ns: Ints  # Until here the launch's
    awaited_ns: Ints  # Until here another stream's
    start_ns: Ints
    rest: Ints
    """What passed until the start, as an index of `_RESTS`."""

    @property
    def has_gap(self) -> Flags:
        """Whether earlier work is recorded and had ended."""
        has_gap: Flags = (self.dry_ns != NEVER) & (self.dry_ns < self.start_ns)
        return has_gap

    def host_ns(self) -> Ints:
        return self.called_ns - self.dry_ns

    def launch_ns(self) -> Ints:
        return self.returned_ns - self.called_ns + self._rest_ns(_IS_LAUNCH)

    def stream_ns(self) -> Ints:
        return self.awaited_ns - self.returned_ns

    def gap_ns(self) -> Ints:
        return self._rest_ns(_IS_GAP)

    def unknown_ns(self) -> Ints:
        return self._rest_ns(_IS_UNKNOWN)

    def after_call(self, work: int) -> Iterator[tuple[int, Cause]]:
        """Begin and cause of the parts after a work's call began, the last first."""
        yield int(self.awaited_ns[work]), _RESTS[int(self.rest[work])]
        yield int(self.called_ns[work]), Cause.LAUNCH

    def _rest_ns(self, rest: int) -> Ints:
        return np.where(self.rest == rest, self.start_ns - self.awaited_ns, 0)


@dataclass(frozen=True, slots=True, eq=False)
class _Lanes:
    """Of each work, by streams or by devices: what ended last of what began before it."""

    dry_ns: Ints  # `NEVER` before the first
    before: Ints
    """Index of the work that ended last, or NOTHING."""


class WorkStarts:
    """All work of the devices in the order of its start, and what each waited for.

    Columns are (works,).
    """

    def __init__(self, trace: Trace) -> None:
        slices, work, pairs = trace.slices, trace.device_work, trace.launch_pairs
        starts = slices.starts(work.row)
        order = np.argsort(starts, kind="stable")
        launch = np.full(len(work), NOTHING, np.int64)
        launch[np.searchsorted(work.row, pairs[:, 1])] = pairs[:, 0]
        self.row: Ints = work.row[order]
        self.device: Ints = work.device[order]
        self.stream: Ints = work.stream[order]
        self.start_ns: Ints = starts[order]
        self.end_ns: Ints = slices.ends(self.row)
        self.launch: Ints = launch[order]
        """Row of the call, or NOTHING."""
        self.called_ns: Ints = np.full(len(order), NEVER)
        self.returned_ns: Ints = np.full(len(order), NEVER)
        has_call = self.launch != NOTHING
        self.called_ns[has_call] = slices.starts(self.launch[has_call])
        self.returned_ns[has_call] = slices.ends(self.launch[has_call])
        self._trace = trace
        self._by_end = np.argsort(self.end_ns, kind="stable")
        self._ends = self.end_ns[self._by_end]

    @cached_property
    def on_stream(self) -> Splits:
        return self._split(self._of_streams.dry_ns)

    @cached_property
    def on_device(self) -> Splits:
        return self._split(self._of_devices.dry_ns)

    @cached_property
    def late(self) -> Ranges:
        """When a device had nothing to do but work that began late for no recorded reason."""
        splits = self.on_device
        is_late = (splits.rest == _IS_UNKNOWN) | (splits.rest == _IS_BEFORE)
        is_late &= splits.awaited_ns != NEVER
        late: Ranges = np.stack((splits.awaited_ns, splits.start_ns), axis=1)[is_late]
        return late

    @property
    def before(self) -> Ints:
        """The work of the same stream that ended last before, or NOTHING."""
        return self._of_streams.before

    @cached_property
    def awaited(self) -> Ints:
        """The work of another stream that each waited for, or NOTHING."""
        ready = np.maximum(self._of_streams.dry_ns, self.returned_ns)
        is_empty = self.returned_ns > self._of_streams.dry_ns
        late = self.start_ns - ready
        near = self._by_end[np.searchsorted(self._ends, self.start_ns, "right") - 1]
        since = self.start_ns - self.end_ns[near]
        is_near = (since >= 0) & (since <= NEAR_NS) & (late > NEAR_NS)
        near = np.where(is_near, near, NOTHING)
        is_late = late > np.where(is_empty, LAUNCH_NS, NEAR_NS)
        busy = np.where(is_late, self._of_devices.before, NOTHING)
        producer = np.full(len(self.row), NOTHING, np.int64)
        by_event = self.synchronised.producer
        producer[list(by_event)] = list(by_event.values())
        for other in (producer, near, busy):
            # Only what lay between can have been waited for.
            lies_between = (self.end_ns[other] > ready) & (ready > NEVER)
            lies_between &= self.start_ns[other] < self.start_ns
            other[~lies_between] = NOTHING
        guessed = np.where(near != NOTHING, near, busy)
        awaited: Ints = np.where(producer != NOTHING, producer, guessed)
        return awaited

    @cached_property
    def synchronised(self) -> AwaitedWork:
        """What was waited for, where the profiler recorded it."""
        work = np.flatnonzero(self.launch != NOTHING)
        columns = (self.device, self.stream, self.called_ns, self.end_ns)
        launched = LaunchedWork(work, *(column[work] for column in columns))
        return awaited_work(self._trace, launched)

    @cached_property
    def launched(self) -> dict[int, int]:
        """By the row of a call the last work that it launched."""
        calls = self.launch.tolist()
        return dict(zip(calls, range(len(calls)), strict=True))

    def ended_last(self, after_ns: int, until_ns: int) -> int:
        """The work that ended last in a range of time without its begin, or NOTHING."""
        index = int(np.searchsorted(self._ends, until_ns, "right")) - 1
        is_inside = index >= 0 and self._ends[index] > after_ns
        return int(self._by_end[index]) if is_inside else NOTHING

    @cached_property
    def _of_streams(self) -> _Lanes:
        return self._lanes((self.device, self.stream))

    @cached_property
    def _of_devices(self) -> _Lanes:
        return self._lanes((self.device,))

    def _lanes(self, keys: tuple[Ints, ...]) -> _Lanes:
        num = len(self.row)
        dry, before = np.full(num, NEVER), np.full(num, NOTHING, np.int64)
        if not num:
            return _Lanes(dry, before)
        order = np.lexsort((np.arange(num), *keys))
        changes = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
        is_first = np.append([True], changes)
        # One running maximum over all lanes: each lies higher than all before it.
        ends = self.end_ns[order]
        height = int(ends.max()) - int(ends.min()) + 1
        ends = ends - int(ends.min()) + (np.cumsum(is_first) - 1) * height
        is_last_end = ends >= np.maximum.accumulate(ends)
        latest = np.maximum.accumulate(np.where(is_last_end, np.arange(num), 0))
        follows = np.flatnonzero(~is_first)
        before[order[follows]] = order[latest[follows - 1]]
        dry[order[follows]] = self.end_ns[before[order[follows]]]
        return _Lanes(dry, before)

    def _split(self, dry_ns: Ints) -> Splits:
        start, has_launch = self.start_ns, self.launch != NOTHING
        dry = np.minimum(dry_ns, start)
        called = np.clip(np.where(has_launch, self.called_ns, dry), dry, start)
        returned = np.clip(np.where(has_launch, self.returned_ns, dry), called, start)
        ended = np.where(self.awaited != NOTHING, self.end_ns[self.awaited], NEVER)
        awaited = np.clip(ended, returned, start)
        rest_ns = start - awaited
        is_launch = (returned > dry) & (awaited == returned)
        rest = np.where(is_launch, _IS_LAUNCH, _IS_GAP)
        is_late = rest_ns > np.where(is_launch, LAUNCH_NS, NEAR_NS)
        rest[is_late] = np.where(dry_ns[is_late] == NEVER, _IS_BEFORE, _IS_UNKNOWN)
        return Splits(dry, called, returned, awaited, start, rest)
