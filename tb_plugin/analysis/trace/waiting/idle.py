"""Why a device is idle, how late its work starts, and how much work is queued.

Of the work of one stream, or of all streams of a device:

- **idle** is all time between its first start and its last end in which nothing ran. It
  is split at the launch of the work that ended it, as `work_starts` says: the sum of the
  parts is the gap.
- **host parts**: what the thread that launched did while the device waited for the launch,
  by its innermost slices.
- **launch delay**: start of the work - end of its call, at least 0 (calls of graphs and
  of kernels that start at once end later).
- **queue length**: calls that began - their work that began. It changes at both; its mean
  is over time, from the first call to the last start.

Holistic Trace Analysis (its pages "Idle Time Breakdown", "CUDA Kernel Launch Statistics"
and "Augmented Counters") has the same gaps, delays and queues. It gives the host the whole
gap before work that was launched late, and `other` all else beyond 30 of the trace's ticks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.time.intervals import covered_ns, union
from memboard.tb_plugin.analysis.trace.waiting.host_threads import CAUSES, causes_of
from memboard.tb_plugin.analysis.trace.waiting.work_starts import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.analysis.arrays import Flags, Floats, Ints
    from memboard.tb_plugin.analysis.time.intervals import Ranges
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.analysis.trace.trace import Trace
    from memboard.tb_plugin.analysis.trace.waiting.work_starts import Splits


class HostPart(NamedTuple):
    """What the host did while a device waited for a launch."""

    cause: Cause
    duration_ns: int
    longest: str
    """Name of the slices with most of this time; empty where none was open."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Of one stream, or of a device."""

    device: int
    stream: int
    """NOTHING: all streams of the device."""
    num_works: int
    span_ns: int
    """From the first start to the last end; with the next five, busy is the rest."""
    host_ns: int
    launch_ns: int
    kernel_ns: int
    stream_ns: int
    other_ns: int
    """Began late for no reason that is recorded."""
    host_parts: tuple[HostPart, ...]
    """Of a device, the longest first; their sum is `host_ns`."""
    num_launched: int
    """Works whose call is known: what the next numbers are of; NaN without any."""
    delay_p50_ns: float
    delay_p95_ns: float
    queue_mean: float
    queue_max: float

    @property
    def idle_ns(self) -> int:
        parts = (self.host_ns, self.launch_ns, self.kernel_ns)
        return sum(parts) + self.stream_ns + self.other_ns


def idle_times(profile: TraceProfile) -> tuple[Idle, ...]:
    """Of every device, each followed by its streams where it has several."""
    return tuple(_idle_times(profile))


def _idle_times(profile: TraceProfile) -> Iterator[Idle]:
    works = profile.work_starts
    for device in np.unique(works.device).tolist():
        on_device = works.device == device
        streams = np.unique(works.stream[on_device]).tolist()
        yield _idle(profile, on_device, works.on_device, device, NOTHING)
        for stream in streams if len(streams) > 1 else ():
            own = on_device & (works.stream == stream)
            yield _idle(profile, own, works.on_stream, device, stream)


def _idle(
    profile: TraceProfile, own: Flags, splits: Splits, device: int, stream: int
) -> Idle:
    works = profile.work_starts
    begun, start = works.called_ns, works.start_ns
    delay = np.maximum(start - works.returned_ns, 0)
    launched = own & (works.launch != NOTHING)
    p50, p95 = _percentiles(delay[launched])
    queue_mean, queue_max = _queue(begun[launched], start[launched])
    gaps = own & splits.has_gap
    return Idle(
        device=device,
        stream=stream,
        num_works=int(own.sum()),
        span_ns=int(works.end_ns[own].max() - start[own].min()),
        host_ns=int(splits.host_ns()[gaps].sum()),
        launch_ns=int(splits.launch_ns()[gaps].sum()),
        kernel_ns=int(splits.gap_ns()[gaps].sum()),
        stream_ns=int(splits.stream_ns()[gaps].sum()),
        other_ns=int(splits.unknown_ns()[gaps].sum()),
        host_parts=_host_parts(profile, gaps, splits) if stream == NOTHING else (),
        num_launched=int(launched.sum()),
        delay_p50_ns=p50,
        delay_p95_ns=p95,
        queue_mean=queue_mean,
        queue_max=queue_max,
    )


def _host_parts(
    profile: TraceProfile, gaps: Flags, splits: Splits
) -> tuple[HostPart, ...]:
    """What the launching threads did from when the device ran dry until each launch."""
    trace, works = profile.trace, profile.work_starts
    gaps = gaps & (splits.host_ns() > 0)
    ranges = np.stack((splits.dry_ns[gaps], splits.called_ns[gaps]), axis=1)
    track = trace.slices.track[works.launch[gaps]]
    sums: dict[Cause, dict[str, int]] = {}
    for number in np.unique(track).tolist():
        waits = union(ranges[track == number])
        rows, own_ns = _own_ns(trace, number, waits)
        outside = (Cause.PROGRAM, "", int(np.diff(waits).sum() - own_ns.sum()))
        for cause, name, duration in (outside, *_by_name(profile, rows, own_ns)):
            names = sums.setdefault(cause, {})
            names[name] = names.get(name, 0) + duration
    parts = [
        HostPart(cause, sum(names.values()), max(names, key=lambda name: names[name]))
        for cause, names in sums.items()
        if any(names.values())
    ]
    return tuple(sorted(parts, key=lambda part: -part.duration_ns))


def _own_ns(trace: Trace, track: int, waits: Ranges) -> tuple[Ints, Ints]:
    """Slices of a track that were innermost during a set of time, and for how long."""
    line = trace.tracks[track]
    rows = np.arange(line.first_row, line.first_row + line.num_slices)
    covered = covered_ns(waits, trace.slices.ranges(rows).ravel())
    inside_ns = np.diff(covered.reshape(-1, 2), axis=1)[:, 0]
    parent = trace.slices.parent[rows]
    is_inner = parent != NOTHING
    own_ns = inside_ns.copy()
    np.subtract.at(own_ns, parent[is_inner] - line.first_row, inside_ns[is_inner])
    # Slices that overlap without nesting count for the one that began first.
    own_ns = np.maximum(own_ns, 0)
    return rows[own_ns > 0], own_ns[own_ns > 0]


def _by_name(
    profile: TraceProfile, rows: Ints, own_ns: Ints
) -> Iterator[tuple[Cause, str, int]]:
    names, of_name = np.unique(profile.trace.slices.name[rows], return_inverse=True)
    cause = causes_of(profile, rows)
    for number in np.unique(cause).tolist():
        own = cause == number
        sums = np.bincount(of_name[own], own_ns[own], len(names))
        for place in np.flatnonzero(sums).tolist():
            yield CAUSES[number], profile.trace.strings[names[place]], int(sums[place])


def _percentiles(delay: Floats | Ints) -> tuple[float, float]:
    p50, p95 = np.percentile(delay, (50, 95)) if len(delay) else (np.nan, np.nan)
    return float(p50), float(p95)


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
