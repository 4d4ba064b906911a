"""Recorded columns that numbers of a rank are made of, by what they hold."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

ALLOCATED: Final = "allocated_peak_bytes"
RESERVED: Final = "reserved_peak_bytes"
ALLOCATED_NOW: Final = "allocated_bytes"
RESERVED_NOW: Final = "reserved_bytes"
DEVICE_USED: Final = "device_used_bytes"
RSS: Final = "rss_bytes"
STEP_TIME: Final = "step_time_seconds"
CPU: Final = "cpu_total_pct"
WORKERS: Final = "workers_rss_bytes"
MEMORY_USED: Final = "memory_used_bytes"
LIMIT_USED: Final = "memory_limit_used_bytes"
AVAILABLE: Final = "memory_available_bytes"
NUM_WORKERS: Final = "num_workers"
PINNED: Final = "pinned_reserved_bytes"
FULL_COLLECTIONS: Final = "gc_full_collections"
RETRIES: Final = "num_alloc_retries"
OOMS: Final = "num_ooms"

PEAKS: Final = (
    ALLOCATED,
    RESERVED,
    DEVICE_USED,
    RSS,
    WORKERS,
    MEMORY_USED,
    LIMIT_USED,
    RETRIES,
    OOMS,
)
LATEST: Final = (*PEAKS, AVAILABLE)
"""Columns of which the last rows count."""
MEDIANS: Final = (STEP_TIME, CPU)
"""Columns summed up by their median."""

Aggregate: TypeAlias = Literal["max", "mean"]
WANTED: Final[dict[str, Aggregate]] = {
    **dict.fromkeys(
        (*LATEST, RESERVED_NOW, NUM_WORKERS, PINNED, FULL_COLLECTIONS), "max"
    ),
    **dict.fromkeys((*MEDIANS, ALLOCATED_NOW), "mean"),
}
"""What facts of a rank are made of."""
