"""What a column of a table is, and the catalogue of the columns MemBoard records.

Readers never depend on the catalogue: a file's own schema records describe its columns,
so columns that a newer collector invents are still read and drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: equal-length values over the rows of a table."""

    name: str
    unit: Unit
    group: Group
    dtype: Dtype = "i8"
    kind: Kind = "gauge"
    headline: bool = False
    """Rolled up finely while writing, so any number of ranks is drawn at once."""


TIME_NS: Final = Column(name="time_ns", unit="nanoseconds", group="axis")
"""First column of every table: wall-clock nanoseconds since the epoch."""

STEP: Final = Column(name="step", unit="index", group="axis")
"""Second column of every table: the training step the row belongs to."""

AXES: Final = (TIME_NS, STEP)


def _bytes(
    name: str, group: Group, kind: Kind = "gauge", *, headline: bool = False
) -> Column:
    return Column(name=name, unit="bytes", group=group, kind=kind, headline=headline)


TIMING: Final = (
    Column(
        name="step_time_seconds",
        unit="seconds",
        group="timing",
        dtype="f4",
        headline=True,
    ),
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
"""What a step's time goes to: categories of the spans that come by themselves."""

PARTS: Final = tuple(
    Column(
        name=f"{part}_seconds",
        unit="seconds",
        group="timing",
        dtype="f4",
        headline=True,
    )
    for part in STEP_PARTS
)
"""Exclusive times on the training thread: of each part without the parts inside it, so
that all of them together are at most `step_time_seconds`. Absent where a part cannot be
seen, 0 where it was seen and took nothing."""

FLOPS: Final = (Column(name="flops", unit="count", group="timing", dtype="f8"),)
"""Floating point operations of the step on this rank, as the settings say."""

PROGRESS: Final = (
    Column(name="epoch", unit="index", group="progress"),
    Column(name="samples", unit="count", group="progress", kind="counter"),
    Column(name="tokens", unit="count", group="progress", kind="counter"),
)
"""Totals since the start of the run, as the user reported them."""

RSS: Final = (_bytes("rss_bytes", "process", headline=True),)

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
    columns = []
    for pool in ("", "_small_pool", "_large_pool"):
        for stat in DEVICE_STATS:
            for suffix, kind in (("bytes", "gauge"), ("peak_bytes", peak)):
                name = f"{stat}{pool}_{suffix}"
                headline = name in _DEVICE_HEADLINES
                columns.append(_bytes(name, "device", kind, headline=headline))  # type: ignore[arg-type]
    return tuple(columns)


DEVICE_COUNTERS: Final = tuple(
    Column(name=name, unit="count", group="device", kind="counter")
    for name in ("num_alloc_retries", "num_ooms")
)

DEVICE_FREE: Final = (
    _bytes("device_free_bytes", "device"),
    _bytes("device_total_bytes", "device"),
    _bytes("device_used_bytes", "device", headline=True),
)
"""The whole device, whoever uses it: used = total - free."""

PINNED: Final = (
    _bytes("pinned_allocated_bytes", "process"),
    _bytes("pinned_allocated_peak_bytes", "process", "cumulative_peak"),
    _bytes("pinned_reserved_bytes", "process"),
)
"""torch's host (pinned) allocator."""

PROCESS: Final = (
    _bytes("process_rss_bytes", "process"),
    _bytes("process_vms_bytes", "process"),
    _bytes("process_shared_bytes", "process"),
    Column(name="process_num_threads", unit="count", group="process"),
    Column(name="process_num_fds", unit="count", group="process"),
    Column(name="process_cpu_pct", unit="percent", group="process", dtype="f4"),
)

PROCESS_FULL: Final = (
    _bytes("process_uss_bytes", "process"),
    _bytes("process_pss_bytes", "process"),
)
"""Needs a walk over the page tables (milliseconds): sampled slowly."""

WORKERS: Final = (
    Column(name="num_workers", unit="count", group="process"),
    _bytes("workers_rss_bytes", "process", headline=True),
    _bytes("workers_max_rss_bytes", "process"),
)
"""Dataloader workers: processes that a DataLoader of torch started."""

CPU: Final = tuple(
    Column(name=name, unit="percent", group="host", dtype="f4", headline=first)
    for name, first in (
        ("cpu_total_pct", True),
        ("cpu_user_pct", False),
        ("cpu_system_pct", False),
        ("cpu_iowait_pct", False),
    )
)

MEMORY: Final = (
    _bytes("memory_total_bytes", "host"),
    _bytes("memory_used_bytes", "host", headline=True),
    _bytes("memory_available_bytes", "host"),
    _bytes("memory_cached_bytes", "host"),
    _bytes("memory_limit_bytes", "host"),
    _bytes("memory_limit_used_bytes", "host"),
)
"""The limit is the control group's, where there is one."""

SWAP: Final = (
    _bytes("swap_total_bytes", "host"),
    _bytes("swap_used_bytes", "host"),
)


def _rate(name: str) -> Column:
    return Column(name=name, unit="bytes_per_second", group="host", dtype="f4")


DISK: Final = (
    _rate("disk_read_bytes_per_second"),
    _rate("disk_write_bytes_per_second"),
    Column(name="disk_ops_per_second", unit="per_second", group="host", dtype="f4"),
)

NETWORK: Final = (
    _rate("network_sent_bytes_per_second"),
    _rate("network_received_bytes_per_second"),
)

GPU: Final = (
    Column(
        name="gpu_utilization_pct",
        unit="percent",
        group="sensor",
        dtype="f4",
        headline=True,
    ),
    Column(
        name="gpu_memory_utilization_pct", unit="percent", group="sensor", dtype="f4"
    ),
    Column(name="gpu_temperature_celsius", unit="celsius", group="sensor", dtype="f4"),
    Column(name="gpu_power_watts", unit="watts", group="sensor", dtype="f4"),
    _bytes("gpu_memory_used_bytes", "sensor"),
    _bytes("gpu_process_memory_bytes", "sensor"),
)
"""NVML's view of the device; the last is what this process holds by NVML's account."""
