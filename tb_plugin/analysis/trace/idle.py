"""Why a device is idle, how late its work starts, and how much work is queued.

After the definitions of Holistic Trace Analysis (its documentation's pages "Idle Time
Breakdown", "CUDA Kernel Launch Statistics" and "Augmented Counters"). Of the work of one
stream, or of all streams of a device, in order of its start:

- **gap** of a piece of work: its start - the latest end of any work before it, where that
  is more than 0. All gaps together are the idle time.
- **host**: the call that launched the work began after the gap did, so the host was
  late: the gap until the work started, if it did within `NEAR_NS` of the call's end; else
  the gap until the call, and the rest is `other` (that tool counts the whole gap).
- **kernel**: it was launched in time, and the gap is shorter than 30 of the trace's ticks
  (30 ns; 30 us where all times are whole microseconds, as that tool takes them): what
  the device itself needs between two kernels.
- **other**: every other gap, also where no call is known, and what follows a late launch:
  waiting for another stream or device, or slow starts.
- **launch delay**: start of the work - end of its call, at least 0 (calls of graphs and
  of kernels that start at once end later).
- **queue length**: calls that began - their work that began. It changes at both; its mean
  is over time, from the first call to the last start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.trace.critical_path import NEAR_NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.trace.trace import Trace

KERNEL_GAP_TICKS: Final = 30  # Holistic Trace Analysis's `consecutive_kernel_delay`


@dataclass(frozen=True, slots=True)
class Idle:
    """Of one stream, or of a device."""

    device: int
    stream: int
    """NOTHING: all streams of the device."""
    num_works: int
    span_ns: int
    """From the first start to the last end; with the next four, busy is the rest."""
    host_ns: int
    kernel_ns: int
    other_ns: int
    num_launched: int
    """Works whose call is known: what the next numbers are of; NaN without any."""
    delay_p50_ns: float
    delay_p95_ns: float
    queue_mean: float
    queue_max: float

    @property
    def idle_ns(self) -> int:
        return self.host_ns + self.kernel_ns + self.other_ns


def idle_times(trace: Trace) -> tuple[Idle, ...]:
    """Of every device, each followed by its streams where it has several."""
    return tuple(_idle_times(trace))


def _idle_times(trace: Trace) -> Iterator[Idle]:
    work = trace.device_work
    start, end = trace.slices.starts(work.row), trace.slices.ends(work.row)
    launch = np.full(len(work.row), NOTHING, np.int64)
    pairs = trace.launch_pairs
    launch[np.searchsorted(work.row, pairs[:, 1])] = pairs[:, 0]
    for device in np.unique(work.device).tolist():
        on_device = work.device == device
        streams = np.unique(work.stream[on_device]).tolist()
        yield _of(trace, on_device, start, end, launch, device, NOTHING)
        for stream in streams if len(streams) > 1 else ():
            own = on_device & (work.stream == stream)
            yield _of(trace, own, start, end, launch, device, stream)


def _of(
    trace: Trace,
    own: Flags,
    start: Ints,
    end: Ints,
    launch: Ints,
    device: int,
    stream: int,
) -> Idle:
    order = np.flatnonzero(own)
    order = order[np.argsort(start[order], kind="stable")]
    start, end, launch = start[order], end[order], launch[order]
    reach = np.maximum.accumulate(end)
    gap = np.maximum(start[1:] - reach[:-1], 0)
    has_launch = launch != NOTHING
    begun, ended = np.zeros((2, len(launch)), np.int64)
    begun[has_launch] = trace.slices.starts(launch[has_launch])
    ended[has_launch] = trace.slices.ends(launch[has_launch])
    is_host = has_launch[1:] & (begun[1:] > reach[:-1])
    is_kernel = (
        has_launch[1:] & ~is_host & (gap < KERNEL_GAP_TICKS * trace.facts.resolution_ns)
    )
    delay = np.maximum(start - ended, 0)[has_launch]
    is_held_up = is_host & (start[1:] - ended[1:] > NEAR_NS)
    until_call = np.where(is_held_up, begun[1:] - reach[:-1], gap)
    host_ns = int(until_call[is_host].sum())
    kernel_ns = int(gap[is_kernel].sum())
    p50, p95 = np.percentile(delay, (50, 95)) if len(delay) else (np.nan, np.nan)
    queue_mean, queue_max = _queue(begun[has_launch], start[has_launch])
    return Idle(
        device=device,
        stream=stream,
        num_works=len(order),
        span_ns=int(reach[-1] - start[0]),
        host_ns=host_ns,
        kernel_ns=kernel_ns,
        other_ns=int(gap.sum()) - host_ns - kernel_ns,
        num_launched=int(has_launch.sum()),
        delay_p50_ns=float(p50),
        delay_p95_ns=float(p95),
        queue_mean=queue_mean,
        queue_max=queue_max,
    )


def _queue(begun: Ints, start: Ints) -> tuple[float, float]:
    """Mean over time and highest number of calls whose work has not begun."""
    if not len(begun):
        return np.nan, np.nan
    # A clock's error may let work begin before its call: it never waited.
    times = np.concatenate((begun, np.maximum(start, begun)))
    order = np.argsort(times, kind="stable")
    length = np.cumsum(np.repeat((1, -1), len(begun))[order])
    took = np.diff(times[order])
    mean = float((length[:-1] * took).sum() / took.sum()) if took.any() else 0.0
    return mean, float(length.max())
