"""A device simulated from its rules, and the trace that a profiler would write of it.

A thread prepares and launches; a stream runs one piece of work after the other, after what
an event told it to wait for, or when a callback of the host at last let it. The truth of
each idle time comes from these rules, not from the trace.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import NamedTuple

from tests.kineto_files import KinetoFile

CALL_US = 4
LATENCY_US = 6
"""From the call's return to the start on an empty stream."""
BETWEEN_US = 1
AFTER_EVENT_US = 2


class Work(NamedTuple):
    start: int
    end: int
    stream: int
    called: int
    is_held: bool
    """By what is not in the trace."""


class MadeDevice:
    """A run of one step, with the truth about it.

    `idle`: microseconds in which the device was idle, by `host`, `launch`, `kernel` and
    `other`. `waits`: by the start of work the one that its event made it wait for. The trace
    has these events where `records` is set.
    """

    def __init__(
        self,
        seed: int,
        *,
        holds: bool = False,
        records: bool = False,
        num_streams: int = 3,
    ) -> None:
        self._records = records
        self.waits: dict[int, Work] = {}
        self._random = Random(seed)
        self.file = KinetoFile()
        self.works: list[Work] = []
        self._ends: Counter[int] = Counter()
        """By stream: when its work ends."""
        now = 10
        for number in range(60):
            now = self._one(number, now, num_streams, holds=holds)
        self.took = max([now, *self._ends.values()]) + 20
        self.file.step(1, 0, self.took)
        self.idle = self._idle()

    def _one(self, number: int, now: int, num_streams: int, *, holds: bool) -> int:
        """Prepare and launch one kernel; when the call returned."""
        random, file = self._random, self.file
        prepares = random.choice((2, 5, 20, 150))
        file.slice("aten::mm", now, prepares + CALL_US)
        called = now + prepares
        returned = called + CALL_US
        stream = random.randrange(num_streams)
        start = max(returned + LATENCY_US, self._ends[stream] + BETWEEN_US)
        producer = None
        if random.random() < 0.3:
            other = random.randrange(num_streams)
            self._wait_for_event(called, stream, other)
            if self._ends[other] + AFTER_EVENT_US > start and other != stream:
                producer = [work for work in self.works if work.stream == other][-1]
                start = producer.end + AFTER_EVENT_US
        is_held = holds and random.random() < 0.1
        if is_held:
            start = max([start, *self._ends.values()]) + 500
        while any(work.start == start for work in self.works):
            start += 1
        end = start + random.choice((3, 30, 120, 400))
        self._ends[stream] = end
        file.slice(
            "cudaLaunchKernel", called, CALL_US, "cuda_runtime", correlation=number + 1
        )
        file.device_slice(
            "gemm",
            start,
            end - start,
            device=0,
            stream=stream + 7,
            correlation=number + 1,
        )
        if producer is not None and not is_held:
            self.waits[start] = producer
        self.works.append(Work(start, end, stream, called, is_held))
        if random.random() < 0.1:
            # The host waits for all of the device.
            ended = max([returned + 1, *self._ends.values()])
            file.slice(
                "cudaDeviceSynchronize", returned, ended + 3 - returned, "cuda_runtime"
            )
            return ended + 3
        return returned + random.choice((0, 1, 10))

    def _wait_for_event(self, called: int, stream: int, other: int) -> None:
        """The calls just before a launch that make its stream wait for another one."""
        if not self._records:
            return
        record, wait = 1_000 + 2 * called, 1_001 + 2 * called
        at = called - 1
        self.file.slice("cudaEventRecord", at, 0.2, "cuda_runtime", correlation=record)
        self.file.slice(
            "cudaStreamWaitEvent", at + 0.5, 0.2, "cuda_runtime", correlation=wait
        )
        self.file.device_slice(
            "Stream Wait Event",
            at + 0.5,
            0,
            "cuda_sync",
            device=0,
            stream=stream + 7,
            correlation=wait,
            wait_on_stream=other + 7,
            wait_on_cuda_event_record_corr_id=record,
        )

    def _idle(self) -> Counter[str]:
        """Microsecond by microsecond."""
        busy = {time for work in self.works for time in range(work.start, work.end)}
        first = min(work.start for work in self.works)
        last = max(work.end for work in self.works)
        idle: Counter[str] = Counter()
        works = sorted(self.works)
        for time in range(first, last):
            if time in busy:
                continue
            # What ended this idle time is the first work that starts after it.
            ended_by = next(work for work in works if work.start > time)
            returned = ended_by.called + CALL_US
            ran_dry = max(work.end for work in works if work.start < ended_by.start)
            late = ended_by.start - max(returned, ran_dry)
            is_long = late > (100 if returned > ran_dry else 20)
            if time < ended_by.called:
                idle["host"] += 1
            elif time < returned:
                idle["launch"] += 1
            elif ended_by.is_held and is_long:
                idle["other"] += 1
            else:
                idle["launch" if returned > ran_dry else "kernel"] += 1
        return idle
