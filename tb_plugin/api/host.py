"""Responses about the hosts of a run."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from memboard.tb_plugin.api.base import Columns, F64Column, RunSummary, Unit, XKind
from memboard.tb_plugin.api.timeline import AbsentSeries, Mark


class HostLine(Columns, frozen=True):
    """One line of a host track."""

    name: str
    """The column, e.g. `cpu_user_pct`, `rss_bytes`, `gpu_temperature_celsius`."""
    label: str
    rank: int
    """The rank that recorded it."""
    host: str
    """The host it speaks of."""
    x: F64Column
    y: F64Column
    y_low: F64Column
    is_flat: bool
    """Of all that was recorded: its value never changed."""


class HostTrack(Struct, frozen=True):
    """One chart of the Host view."""

    key: Literal[
        "cpu",
        "memory",
        "process_memory",
        "swap",
        "disk",
        "network",
        "gpu_utilization",
        "gpu_memory",
        "gpu_temperature",
        "gpu_power",
    ]
    title: str
    unit: Unit
    limit: float | None
    """Total memory, memory limit or 100 %, where one exists."""
    limit_label: str
    lines: tuple[HostLine, ...]


class HostResponse(Struct, frozen=True):
    """Route `/host` (run, rank, x, x0, x1, px).

    One line per host and column: the lowest rank of each host speaks for it, except
    for process and GPU columns, which are the chosen rank's (default: the lowest).
    """

    run: RunSummary
    rank: int
    hosts: tuple[str, ...]
    """The hosts drawn, at most 16."""
    num_hosts: int
    """All there are, or 1 where a rank is chosen."""
    x: XKind
    x_low: float
    x_high: float
    tracks: tuple[HostTrack, ...]
    absent: tuple[AbsentSeries, ...]
    marks: tuple[Mark, ...]
