"""The plain figures of a trace that anybody could count in its file: what a report says.

Times are microseconds as the file has them. Sums and unions are of whole kernels; steps
are as they are marked, without what their device work adds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.time.intervals import Overlay, total_ns
from memboard.tb_plugin.analysis.time.profiled_steps import profiler_steps
from memboard.tb_plugin.analysis.time.slice_roles import Role

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile

_US: Final = 1_000
_TOTALS: Final = (
    "peak_total_allocated",
    "peak_total_allocated_ts",
    "peak_total_reserved",
    "first_total_allocated",
    "last_total_allocated",
)


def trace_figures(profile: TraceProfile, source_base_ns: int = 0) -> dict[str, Any]:
    """Plain data: `gpu`, `memory_by_device_type_id`, `profiler_steps`.

    `source_base_ns`: what the file's own times count from (`baseTimeNanoseconds`).
    """
    origin = profile.trace.base_ns - source_base_ns
    figures: dict[str, Any] = {
        "memory_by_device_type_id": _memory(profile, origin),
        "profiler_steps": _steps(profile, origin),
    }
    if profile.has_devices:
        figures["gpu"] = _gpu(profile)
    return figures


def _gpu(profile: TraceProfile) -> dict[str, Any]:
    trace, roles = profile.trace, profile.roles
    rows = trace.device_work.row
    computing = rows[roles[rows] == Role.KERNEL]
    talking = rows[roles[rows] == Role.COMMUNICATION]
    durations = trace.slices.duration_ns

    ranges = trace.slices.ranges
    both = Overlay((ranges(computing), ranges(talking)))
    kernels = np.concatenate((computing, talking))
    return {
        "kernels": len(kernels),
        "kernel_us_sum": int(durations[kernels].sum(dtype=np.int64)) / _US,
        "kernel_us_union": total_ns(ranges(kernels)) / _US,
        "nccl_kernels": len(talking),
        "nccl_us_sum": int(durations[talking].sum(dtype=np.int64)) / _US,
        "nccl_us_union": total_ns(ranges(talking)) / _US,
        "compute_us_union": total_ns(ranges(computing)) / _US,
        "overlap_us": both.overlap_ns(0, 1) / _US,
        "nccl_with_collective_metadata": int(
            np.isin(talking, trace.collectives.row).sum()
        ),
    }


def _memory(profile: TraceProfile, origin_ns: int) -> dict[str, dict[str, Any]]:
    """By `device type:device`; without addresses nothing is paired, and counts are 0."""
    memory, pairs = profile.trace.memory, profile.memory_pairs
    memory_by_device = {}
    devices = profile.memory_devices
    places = zip(devices.device_type.tolist(), devices.device.tolist(), strict=True)
    for place, (kind, device) in enumerate(places):
        rows = devices.events_of(place)
        num_bytes = memory.num_bytes[rows].astype(np.int64)
        made, freed = num_bytes > 0, num_bytes < 0
        times = (memory.time_ns[rows] + origin_ns) / _US
        has_address = bool((memory.address[rows] != 0).any())
        alive = (
            rows[made & (pairs.release[rows] == NOTHING) & ~pairs.is_reused[rows]]
            if has_address
            else rows[:0]
        )
        lost = freed & (pairs.allocation[rows] == NOTHING) & has_address
        memory_by_device[f"{kind}:{device}"] = {
            "events": len(rows),
            "allocs": int(made.sum()),
            "frees": int(freed.sum()),
            "alloc_bytes": int(num_bytes[made].sum()),
            "free_bytes": int(-num_bytes[freed].sum()),
            "net_bytes": int(num_bytes.sum()),
            **_totals(memory.allocated_bytes[rows], memory.reserved_bytes[rows], times),
            "first_ts": float(times[0]),
            "last_ts": float(times[-1]),
            "unmatched_frees": int(lost.sum()),
            "double_allocs": int(pairs.is_reused[rows].sum()),
            "has_addr": has_address,
            "live_at_end_count": len(alive),
            "live_at_end_bytes": int(memory.num_bytes[alive].sum(dtype=np.int64)),
        }
    return memory_by_device


def _totals(allocated: Any, reserved: Any, times: Any) -> dict[str, Any]:
    """What the events say of the allocator; None where they do not."""
    is_known = allocated >= 0
    if not is_known.any():
        return dict.fromkeys(_TOTALS)
    peak = int(np.argmax(np.where(is_known, allocated, -1)))
    return {
        "peak_total_allocated": int(allocated[peak]),
        "peak_total_allocated_ts": float(times[peak]),
        "peak_total_reserved": int(reserved.max()),
        "first_total_allocated": int(allocated[is_known][0]),
        "last_total_allocated": int(allocated[is_known][-1]),
    }


def _steps(profile: TraceProfile, origin_ns: int) -> list[list[Any]]:
    number, start, end = profiler_steps(profile.trace)
    return [
        [f"ProfilerStep#{step_number}", (begin + origin_ns) / _US, took / _US]
        for step_number, begin, took in zip(
            number.tolist(), start.tolist(), (end - start).tolist(), strict=True
        )
    ]
