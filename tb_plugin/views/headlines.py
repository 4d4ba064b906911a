"""The six headline numbers: each with its worst rank, a sparkline and its caveats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from tb_plugin import api
from tb_plugin.analysis.buckets import pooled, windows
from tb_plugin.analysis.growth import FEW_ROWS, WARMUP_FRACTION
from tb_plugin.analysis.heatmap import step_edges
from tb_plugin.views.rank_columns import PerRank, RankColumns, medians, peaks
from tb_plugin.wire import f64, finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tb_plugin.readers.series import SeriesReader
    from tb_plugin.run import Run
    from tb_plugin.views.rank_columns import Wanted
    from tb_plugin.views.strip import Strip

    Floats: TypeAlias = npt.NDArray[np.float64]

ALLOCATED: Final[Wanted] = ("allocated_peak_bytes", "max")
RESERVED: Final[Wanted] = ("reserved_peak_bytes", "max")
RESERVED_NOW: Final[Wanted] = ("reserved_bytes", "max")
DEVICE_USED: Final[Wanted] = ("device_used_bytes", "max")
RSS: Final[Wanted] = ("rss_bytes", "max")
STEP_TIME: Final[Wanted] = ("step_time_seconds", "mean")
CPU: Final[Wanted] = ("cpu_total_pct", "mean")
WORKERS: Final[Wanted] = ("workers_rss_bytes", "max")
MEMORY_USED: Final[Wanted] = ("memory_used_bytes", "max")
LIMIT_USED: Final[Wanted] = ("memory_limit_used_bytes", "max")
RETRIES: Final[Wanted] = ("num_alloc_retries", "max")
OOMS: Final[Wanted] = ("num_ooms", "max")

_SPARKLINE_VALUES: Final = 120

_SOURCES: Final = {
    "allocated_peak_bytes": "device",
    "reserved_peak_bytes": "device",
    "device_used_bytes": "device_free",
    "rss_bytes": "rss",
    "cpu_total_pct": "cpu",
    "workers_rss_bytes": "workers",
}
"""Which source records a column: its words explain an absence."""

Caveat: TypeAlias = Literal[
    "sampled",
    "estimated",
    "cumulative_peak",
    "no_limit",
    "few_steps",
    "after_warmup",
    "one_host",
]


def wanted_columns(run: Run) -> list[Wanted]:
    """What the overview reads of every rank."""
    if run.catalogue.find(ALLOCATED[0]) is not None:
        return [ALLOCATED, RESERVED, RESERVED_NOW, DEVICE_USED, RETRIES, OOMS]
    return [RSS, STEP_TIME, CPU, WORKERS, MEMORY_USED, LIMIT_USED]


@dataclass(frozen=True, slots=True)
class Headlines:
    """What the numbers are made from."""

    reader: SeriesReader
    run: Run
    ranks: Sequence[int]
    columns: RankColumns
    strip: Strip

    def all(self) -> tuple[api.Headline, ...]:
        """Six numbers for the device, or six for the host where there is none."""
        if self.columns.has(ALLOCATED[0]):
            return self._of_device()
        return self._of_host()

    def _of_device(self) -> tuple[api.Headline, ...]:
        capacity = self.strip.capacity_bytes
        allocated = peaks(self.columns, self.ranks, ALLOCATED)
        reserved = peaks(self.columns, self.ranks, RESERVED)
        used = peaks(self.columns, self.ranks, DEVICE_USED)
        highest = np.fmax(used.value, reserved.value)
        at = np.where(used.value >= reserved.value, used.step, reserved.step)
        peak_caveats = self._peak_caveats()
        sampled: tuple[Caveat, ...] = ("sampled",) if self._has(DEVICE_USED) else ()
        fragmented, fragmented_width = self._fragmentation(reserved.value)
        other, other_width = self._non_torch()
        return (
            self._headline(
                "peak_allocated",
                allocated.value,
                allocated.step,
                ALLOCATED,
                peak_caveats,
            ),
            self._headline(
                "peak_reserved", reserved.value, reserved.step, RESERVED, peak_caveats
            ),
            self._headline(
                "headroom",
                capacity - highest,
                at,
                DEVICE_USED if self._has(DEVICE_USED) else RESERVED,
                sampled,
                worst="lowest",
                missing="" if np.isnan(capacity).all() else None,
            ),
            self._headline(
                "fragmentation",
                fragmented,
                reserved.step,
                RESERVED,
                (*peak_caveats, *_estimated(fragmented_width)),
            ),
            self._headline(
                "non_torch",
                other.value,
                other.step,
                DEVICE_USED,
                ("sampled", *_estimated(other_width)),
            ),
            self._growth("growth", ALLOCATED),
        )

    def _of_host(self) -> tuple[api.Headline, ...]:
        rss = peaks(self.columns, self.ranks, RSS)
        pace = medians(self.columns, self.ranks, STEP_TIME, WARMUP_FRACTION)
        cpu = medians(self.columns, self.ranks, CPU, 0.0)
        workers = peaks(self.columns, self.ranks, WORKERS)
        room, room_step = self._host_headroom()
        few: tuple[Caveat, ...] = (
            ("few_steps",) if self.strip.num_steps < FEW_ROWS else ()
        )
        no_limit: tuple[Caveat, ...] = ()
        if self.strip.capacity_kind != "cgroup_limit":
            no_limit = ("no_limit",)
        one_host: tuple[Caveat, ...] = ()
        if (
            len(set(self.strip.host)) > 1
            and np.count_nonzero(~np.isnan(cpu.value)) == 1
        ):
            one_host = ("one_host",)
        return (
            self._headline("rss_peak", rss.value, rss.step, RSS, ("sampled",)),
            self._headline(
                "rss_headroom",
                room,
                room_step,
                RSS,
                ("sampled", *no_limit),
                worst="lowest",
                missing="" if np.isnan(self.strip.capacity_bytes).all() else None,
            ),
            self._growth("rss_growth", RSS),
            self._headline(
                "step_time",
                pace.value,
                pace.step,
                STEP_TIME,
                ("after_warmup", *_estimated(pace.widest), *few),
                unit="seconds",
            ),
            self._headline(
                "cpu", cpu.value, cpu.step, CPU, ("sampled", *one_host), unit="percent"
            ),
            self._headline(
                "workers_rss", workers.value, workers.step, WORKERS, ("sampled",)
            ),
        )

    def _growth(
        self, key: Literal["growth", "rss_growth"], wanted: Any
    ) -> api.Headline:
        caveats: tuple[Caveat, ...] = ("after_warmup",)
        if self.strip.num_steps < FEW_ROWS:
            caveats += ("few_steps",)
        nowhere = np.full(len(self.ranks), np.nan)
        return self._headline(
            key,
            self.strip.growth,
            nowhere,
            wanted,
            caveats,
            unit="bytes_per_step",
            missing="too few steps" if self._has(wanted) else None,
        )

    def _fragmentation(self, reserved_peak: Floats) -> tuple[Floats, int]:
        """Reserved at its peak less what was allocated there at most.

        Reserved memory often stands at its peak for thousands of steps; the step that
        used most of it tells what could not be used even then.
        """
        value = np.full(len(self.ranks), np.nan)
        widest = 1
        for index, rank in enumerate(self.ranks):
            reserved = self.columns.pieces(rank, RESERVED)
            allocated = self.columns.pieces(rank, ALLOCATED)
            for (_, held), (_, used) in zip(reserved, allocated, strict=False):
                if len(held.values) != len(used.values):
                    continue
                at_peak = used.values[held.values == reserved_peak[index]]
                if len(at_peak) and not np.isnan(at_peak).all():
                    value[index] = reserved_peak[index] - np.nanmax(at_peak)
                    widest = max(widest, held.width)
        return value, widest

    def _non_torch(self) -> tuple[PerRank, int]:
        """Most that was used on the device beside what torch had reserved then."""
        value = np.full(len(self.ranks), np.nan)
        step = np.full(len(self.ranks), np.nan)
        widest = 1
        for index, rank in enumerate(self.ranks):
            by_attempt = {
                attempt.index: piece
                for attempt, piece in self.columns.pieces(rank, RESERVED_NOW)
            }
            for attempt, used in self.columns.pieces(rank, DEVICE_USED):
                reserved = by_attempt.get(attempt.index)
                if reserved is None:
                    continue
                beside = used.values - _during(used, reserved)
                if np.isnan(beside).all():
                    continue
                at = int(np.nanargmax(beside))
                if not beside[at] <= value[index]:
                    value[index], step[index] = beside[at], used.first[at]
                widest = max(widest, used.width, reserved.width)
        return PerRank(np.maximum(value, 0.0), step, widest), widest

    def _host_headroom(self) -> tuple[Floats, Floats]:
        """Limit less the most that was used of it, host by host.

        Ranks of a host share its memory. Where its use was not recorded, the ranks'
        own peaks are added up.
        """
        limited = self.strip.capacity_kind == "cgroup_limit"
        wanted = LIMIT_USED if limited else MEMORY_USED
        everyone = self.run.ranks
        used = peaks(self.columns, everyone, wanted)
        own = peaks(self.columns, everyone, RSS)
        hosts = np.array([self.strip.host_of.get(rank, -1) for rank in everyone])
        value = np.full(len(self.ranks), np.nan)
        step = np.full(len(self.ranks), np.nan)
        for host in set(self.strip.host):
            there = hosts == host
            mine = np.asarray(self.strip.host) == host
            if not np.isnan(used.value[there]).all():
                most = np.nanmax(used.value[there])
                step[mine] = used.step[there][np.nanargmax(used.value[there])]
            elif not np.isnan(own.value[there]).all():
                most = np.nansum(own.value[there])
            else:
                continue
            value[mine] = self.strip.capacity_bytes[mine] - most
        return value, step

    def _headline(
        self,
        key: Any,
        value: Floats,
        step: Floats,
        series: Any,
        caveats: tuple[Caveat, ...],
        *,
        unit: api.Unit = "bytes",
        worst: Literal["highest", "lowest"] = "highest",
        missing: str | None = None,
    ) -> api.Headline:
        """One number: the worst rank's; `missing` overrides the reason for its absence."""
        if np.isnan(value).all():
            reason = self._why_absent(series[0]) if missing is None else missing
            return api.Headline(
                key=key,
                value=None,
                unit=unit,
                rank=None,
                step=None,
                sparkline=f64([]),
                caveats=(),
                absent_reason=reason or "the capacity is not known",
            )
        at = int(np.nanargmax(value) if worst == "highest" else np.nanargmin(value))
        rank = self.ranks[at]
        return api.Headline(
            key=key,
            value=finite(value[at]),
            unit=unit,
            rank=rank,
            step=None if np.isnan(step[at]) else int(step[at]),
            sparkline=f64(self._sparkline(rank, series)),
            caveats=tuple(dict.fromkeys(caveats)),
            absent_reason=None,
        )

    def _sparkline(self, rank: int, series: Any) -> Floats:
        pieces = [piece for _, piece in self.columns.pieces(rank, series)]
        if not pieces:
            return np.empty(0)
        low = min(int(piece.first.min()) for piece in pieces)
        high = max(int(piece.last.max()) for piece in pieces)
        edges, _ = step_edges(low, high, _SPARKLINE_VALUES)
        lines = [
            pooled(piece.values, *windows(piece.first, piece.last, edges))
            for piece in pieces
        ]
        # Steps that were run twice show the higher of both: a peak never vanishes.
        return np.fmax.reduce(lines)  # type: ignore[no-any-return]

    def _why_absent(self, column: str) -> str:
        source = _SOURCES.get(column)
        for absent in self.run.catalogue.absent():
            if absent.source == source and absent.reason:
                return absent.reason
        return "it was not recorded"

    def _has(self, wanted: Any) -> bool:
        return self.columns.has(wanted[0])

    def _peak_caveats(self) -> tuple[Caveat, ...]:
        headers = [file.header for file in self.run.files.values()]
        resets = [header.config.get("reset_peaks", True) for header in headers[:1]]
        return (
            () if all(value is not False for value in resets) else ("cumulative_peak",)
        )


def _estimated(width: int) -> tuple[Caveat, ...]:
    """Numbers from two columns are exact only where buckets are single rows."""
    return ("estimated",) if width > 1 else ()


def _during(used: Any, other: Any) -> Floats:
    """The other column's highest value over the steps of each of `used`'s buckets."""
    start = np.searchsorted(other.last, used.first, "left")
    stop = np.searchsorted(other.first, used.last, "right")
    # A sample before or between steps belongs to the step before it.
    start = np.minimum(start, len(other.first) - 1)
    stop = np.maximum(stop, start + 1)
    return pooled(other.values, start, stop)
