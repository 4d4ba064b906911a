"""Columns of tables, and the catalogue of those that MemBoard records.

Readers never depend on the catalogue: a file's own schema records describe its columns,
so columns that a newer collector invents are still read and drawn.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

Dtype: TypeAlias = Literal["i8", "f8", "f4"]
"""int64, float64 or float32 on disk."""

Unit: TypeAlias = Literal[
    "bytes",
    "bytes_per_second",
    "count",
    "per_second",
    "percent",
    "seconds",
    "celsius",
    "watts",
    "index",
    "nanoseconds",
]

Group: TypeAlias = Literal[
    "axis", "device", "process", "timing", "host", "sensor", "progress"
]

Kind: TypeAlias = Literal["gauge", "peak", "cumulative_peak", "counter"]
"""A momentary value; the highest since the last row; the highest since the start or the
user's last reset; a running count."""

STEP_TABLE: Final = "step"
"""One row per training step; every other table is named after its timed source."""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One column: equal-length values over the rows of a table."""

    name: str
    unit: str
    """A `Unit`; that of a newer MemBoard may be another text."""
    group: str
    """A `Group`, or another text."""
    dtype: Dtype = "i8"
    kind: str = "gauge"
    """A `Kind`, or another text."""
    headline: bool = False
    """Rolled up finely while writing, so any number of ranks is drawn at once."""


TIME_NS: Final = Column(name="time_ns", unit="nanoseconds", group="axis")
"""First column of every table: wall-clock nanoseconds since the epoch."""

STEP: Final = Column(name="step", unit="index", group="axis")
"""Second column of every table: the training step the row belongs to."""

AXES: Final = (TIME_NS, STEP)


def _column(
    name: str,
    group: Group,
    unit: Unit = "bytes",
    dtype: Dtype = "i8",
    kind: Kind = "gauge",
    *,
    headline: bool = False,
) -> Column:
    return Column(
        name=name, unit=unit, group=group, dtype=dtype, kind=kind, headline=headline
    )


TIMING: Final = (
    _column("step_time_seconds", "timing", "seconds", "f4", headline=True),
)

STEP_PARTS: Final = (
    "dataloader",
    "forward",
    "backward",
    "optimizer",
    "zero_grad",
    "checkpoint",
    "eval",
    "communication",
)
"""Parts of a step's time: categories of the automatic spans."""

PARTS: Final = tuple(
    _column(f"{part}_seconds", "timing", "seconds", "f4", headline=True)
    for part in STEP_PARTS
)
"""Exclusive times on the training thread: of each part without the parts inside it, so
that all of them together are at most `step_time_seconds`. Absent where a part cannot be
seen, 0 where it was seen and took nothing."""

FLOPS: Final = (_column("flops", "timing", "count", "f8"),)
"""Floating point operations of the step on this rank, as the settings say."""

PROGRESS: Final = (
    _column("epoch", "progress", "index"),
    _column("samples", "progress", "count", kind="counter"),
    _column("tokens", "progress", "count", kind="counter"),
)
"""Totals since the start of the run, as the user reported them."""

RSS: Final = (_column("rss_bytes", "process", headline=True),)

GARBAGE: Final = (
    _column("gc_partial_collections", "process", "count", kind="counter"),
    _column("gc_full_collections", "process", "count", kind="counter"),
    _column("gc_collected_objects", "process", "count", kind="counter"),
)
"""Python's garbage collector: its runs over young objects, its runs over all, and what all
of them collected, since the process began."""

DEVICE_STATS: Final = ("allocated", "active", "reserved", "inactive_split", "requested")
"""torch's byte statistics; requested is absent before torch 2.1."""

_DEVICE_HEADLINES: Final = frozenset(
    {"allocated_peak_bytes", "reserved_peak_bytes", "reserved_bytes"}
    | {"allocated_bytes", "active_peak_bytes", "inactive_split_bytes"}
)


def device_byte_columns(peak: Kind = "peak") -> tuple[Column, ...]:
    """Current and peak of each byte statistic, in total and by pool.

    Names: `allocated_bytes`, `allocated_peak_bytes`, `allocated_small_pool_bytes`,
    `allocated_small_pool_peak_bytes`, and so on for every entry of `DEVICE_STATS`.
    `peak` is `cumulative_peak` where the counters are never reset.
    """
    kinds: dict[str, Kind] = {"bytes": "gauge", "peak_bytes": peak}
    return tuple(
        _column(name, "device", kind=kind, headline=name in _DEVICE_HEADLINES)
        for pool in ("", "_small_pool", "_large_pool")
        for stat in DEVICE_STATS
        for suffix, kind in kinds.items()
        for name in (f"{stat}{pool}_{suffix}",)
    )


DEVICE_COUNTERS: Final = tuple(
    _column(name, "device", "count", kind="counter")
    for name in ("num_alloc_retries", "num_ooms")
)

DEVICE_FREE: Final = (
    _column("device_free_bytes", "device"),
    _column("device_total_bytes", "device"),
    _column("device_used_bytes", "device", headline=True),
)
"""The whole device, whoever uses it: used = total - free."""

PINNED: Final = (
    _column("pinned_allocated_bytes", "process"),
    _column("pinned_allocated_peak_bytes", "process", kind="cumulative_peak"),
    _column("pinned_reserved_bytes", "process"),
)

PROCESS: Final = (
    _column("process_rss_bytes", "process"),
    _column("process_vms_bytes", "process"),
    _column("process_shared_bytes", "process"),
    _column("process_num_threads", "process", "count"),
    _column("process_num_fds", "process", "count"),
    _column("process_cpu_pct", "process", "percent", "f4"),
)

PROCESS_FULL: Final = (
    _column("process_uss_bytes", "process"),
    _column("process_pss_bytes", "process"),
)
"""Needs a walk over the page tables (milliseconds): sampled slowly."""

WORKERS: Final = (
    _column("num_workers", "process", "count"),
    _column("workers_rss_bytes", "process", headline=True),
    _column("workers_max_rss_bytes", "process"),
)
"""Dataloader workers: processes that a DataLoader of torch started."""

CPU: Final = (
    _column("cpu_total_pct", "host", "percent", "f4", headline=True),
    _column("cpu_user_pct", "host", "percent", "f4"),
    _column("cpu_system_pct", "host", "percent", "f4"),
    _column("cpu_iowait_pct", "host", "percent", "f4"),
    _column("cpu_steal_pct", "host", "percent", "f4"),
    _column("cpu_runnable_pct", "host", "percent", "f4"),
)
"""Of the processors' time. Stolen: given to other virtual machines. Runnable: threads that
run or wait for a processor, in percent of the processors; beyond 100 some wait."""

MEMORY: Final = (
    _column("memory_total_bytes", "host"),
    _column("memory_used_bytes", "host", headline=True),
    _column("memory_available_bytes", "host"),
    _column("memory_cached_bytes", "host"),
    _column("memory_limit_bytes", "host"),
    _column("memory_limit_used_bytes", "host"),
)
"""The limit is the control group's, where there is one."""

SWAP: Final = (
    _column("swap_total_bytes", "host"),
    _column("swap_used_bytes", "host"),
)

DISK: Final = (
    _column("disk_read_bytes_per_second", "host", "bytes_per_second", "f4"),
    _column("disk_write_bytes_per_second", "host", "bytes_per_second", "f4"),
    _column("disk_ops_per_second", "host", "per_second", "f4"),
)

NETWORK: Final = (
    _column("network_sent_bytes_per_second", "host", "bytes_per_second", "f4"),
    _column("network_received_bytes_per_second", "host", "bytes_per_second", "f4"),
)

GPU: Final = (
    _column("gpu_utilization_pct", "sensor", "percent", "f4", headline=True),
    _column("gpu_memory_utilization_pct", "sensor", "percent", "f4"),
    _column("gpu_temperature_celsius", "sensor", "celsius", "f4"),
    _column("gpu_power_watts", "sensor", "watts", "f4"),
    _column("gpu_memory_used_bytes", "sensor"),
    _column("gpu_process_memory_bytes", "sensor"),
)
"""NVML's view of the device; the last is what this process holds by NVML's account."""
