"""Counters that a trace gets beside its own: of devices' memory, and of their use.

Memory is what the trace says at each `[memory]` event: the allocator's totals in bytes.
Use is in per cent, by the formulas of `device_use` over pieces of time:

- utilization: of each bucket, the share in which any kernel ran. Buckets are a power of
  ten microseconds long, the last one up to twice that. A bucket has one value: what is
  shorter than a bucket is not seen in it.
- est. SM efficiency: min(1, blocks per SM of the kernels that run), exact, from one start
  or end of a kernel to the next.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.time.device_use import filled_levels
from memboard.tb_plugin.analysis.time.intervals import covered_ns, union
from memboard.tb_plugin.analysis.time.slice_roles import Role, slice_roles
from memboard.tb_plugin.analysis.trace.devices import device_title, torch_device_type
from memboard.tb_plugin.analysis.trace.trace import Counters, Series, Track

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.analysis.time.intervals import Ranges
    from memboard.tb_plugin.analysis.trace.trace import Trace


MEMORY: Final = "Memory"
"""Process of the tracks whose numbers are bytes."""

DEVICE_USE: Final = "Device use"
"""Process of the tracks whose numbers are per cent."""

_GPU_TYPES: Final = frozenset({"CUDA", "HIP"})
_FIRST_BUCKET_NS: Final = 10_000
MAX_BUCKETS: Final = 10_000


class _Line(NamedTuple):
    process: str
    track: str
    series: str
    device: int
    time_ns: Ints
    value: Floats


def with_counters(trace: Trace) -> Trace:
    """The trace with the counters of memory and of use."""
    tracks, series = list(trace.tracks), list(trace.series)
    times, values = [trace.counters.time_ns], [trace.counters.value]
    first_row = len(trace.counters)
    for line in (*_use(trace), *_memory(trace)):
        series.append(Series(len(tracks), line.series, first_row, len(line.time_ns)))
        tracks.append(
            Track(
                name=line.track,
                process=line.process,
                kind="counter",
                rank=trace.facts.rank,
                device=line.device,
            )
        )
        times.append(line.time_ns)
        values.append(line.value)
        first_row += len(line.time_ns)
    if len(tracks) == len(trace.tracks):
        return trace
    return replace(
        trace,
        tracks=tuple(tracks),
        series=tuple(series),
        counters=Counters(np.concatenate(times), np.concatenate(values)),
    )


def value_range(trace: Trace, track: int) -> tuple[float | None, float | None]:
    """Lowest and highest finite value of a counter's track; None where it has none."""
    parts = [
        trace.counters.value[
            has_blocks.first_row : has_blocks.first_row + has_blocks.num_points
        ]
        for has_blocks in trace.series
        if has_blocks.track == track
    ]
    values = np.concatenate(parts).astype(np.float64) if parts else np.empty(0)
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (None, None)


def _memory(trace: Trace) -> Iterator[_Line]:
    """Allocated and reserved bytes of each device.

    Events that say no total are passed over: sums of sizes would begin anywhere.
    """
    memory = trace.memory
    if not len(memory):
        return
    keys = np.stack((memory.device_type, memory.device), axis=1).astype(np.int64)
    for kind, device in np.unique(keys, axis=0).tolist():
        of_device = (keys[:, 0] == kind) & (keys[:, 1] == device)
        where = torch_device_type(trace, kind)
        where = "GPU" if where in _GPU_TYPES else where
        for word, totals in (
            ("Allocated", memory.allocated_bytes),
            ("Reserved", memory.reserved_bytes),
        ):
            rows = np.flatnonzero(of_device & (totals >= 0))
            if not len(rows) or not np.any(totals[rows]):
                continue
            order = rows[np.argsort(memory.time_ns[rows], kind="stable")]
            title = f"{word}, {where}{f' {device}' if device >= 0 else ''}"
            times = memory.time_ns[order].astype(np.int64)
            values = totals[order].astype(np.float64)
            yield _Line(MEMORY, title, word, device, times, values)


def _use(trace: Trace) -> Iterator[_Line]:
    """Two counters for each device that ran kernels.

    They reach from the first kernel's start to the last one's end, whatever the device.
    Without `blocks per SM` a device has no SM efficiency.
    """
    work = trace.device_work
    if not len(work.row):
        return
    roles = slice_roles(trace)[work.row]
    is_kernel = (roles == Role.KERNEL) | (roles == Role.COMMUNICATION)
    ranges = trace.slices.ranges(work.row)
    if not is_kernel.any():
        return
    span = int(ranges[is_kernel, 0].min()), int(ranges[is_kernel, 1].max())
    for device in np.unique(work.device[is_kernel]).tolist():
        chosen = is_kernel & (work.device == device)
        blocks = work.blocks_per_sm[chosen]
        for word, time_ns, share in _shares(ranges[chosen], blocks, span):
            title = f"{device_title(trace, device)} {word}"
            yield _Line(DEVICE_USE, title, word, device, time_ns, 100 * share)


def utilization_buckets(
    ranges: Ranges, span_ns: tuple[int, int], most: int = MAX_BUCKETS
) -> tuple[Ints, Floats]:
    """Edges (buckets + 1,), and the share of each bucket that the ranges cover.

    None where the span has no length.
    """
    start, end = span_ns
    if end <= start:
        return np.empty(0, np.int64), np.empty(0)
    width = _FIRST_BUCKET_NS
    while (end - start) // width > most:
        width *= 10
    num = max((end - start) // width, 1)
    edges = start + width * np.arange(num + 1, dtype=np.int64)
    edges[-1] = end
    share: Floats = np.diff(covered_ns(union(ranges), edges)) / np.diff(edges)
    return edges, share


def _shares(
    ranges: Ranges, blocks: Floats, span_ns: tuple[int, int]
) -> Iterator[tuple[str, Ints, Floats]]:
    """Name, times and shares of each counter of a device; both end at 0."""
    edges, share = utilization_buckets(ranges, span_ns)
    if len(edges):
        yield "utilization", edges, np.append(share, 0.0)
    has_blocks = ~np.isnan(blocks)
    if has_blocks.any():
        time_ns, level = filled_levels(ranges[has_blocks], blocks[has_blocks])
        if time_ns[0] > span_ns[0]:
            time_ns = np.concatenate((span_ns[:1], time_ns))
            level = np.concatenate(([0.0], level))
        yield "est. SM efficiency", time_ns, level
